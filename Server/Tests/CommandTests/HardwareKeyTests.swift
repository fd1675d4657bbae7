import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// Keys in SoftHSM, a PKCS #11 module like that of a hardware module, by OpenSC's `pkcs11-tool`.
@Suite("Keys that never leave a hardware module", .timeLimit(.minutes(3)))
struct HardwareKeyTests {
  /// A token with keys, and the files that the pages have the operator write.
  private struct Token {
    static let module = "/usr/lib/softhsm/libsofthsm2.so"
    let folder: TemporaryDirectory
    var environment: [String: String] {
      ["SOFTHSM2_CONF": folder.path("softhsm2.conf"), "HSM_PIN": "4711"]
    }

    init() async throws {
      folder = try TemporaryDirectory()
      try FileManager.default.createDirectory(
        at: folder.file("tokens"), withIntermediateDirectories: true)
      try folder.write("directories.tokendir = \(folder.path("tokens"))\n", to: "softhsm2.conf")
      try await run(
        "softhsm2-util",
        ["--init-token", "--free", "--label", "registry", "--pin", "4711", "--so-pin", "4712"])
      try await make("rsa:2048", id: "01", "shipped.pub")
      try await make("EC:prime256v1", id: "02", "online.pub")
      try file("online.json", id: "02", "online.pub", "ECDSA", ", \"input\": \"digest\"")
      try file("shipped.json", id: "01", "shipped.pub", "SHA512-RSA-PKCS")
    }

    private func make(_ type: String, id: String, _ name: String) async throws {
      try await tool(["--keypairgen", "--key-type", type, "--id", id, "--usage-sign"])
      try await tool([
        "--read-object", "--type", "pubkey", "--id", id, "-o", folder.path("key.der"),
      ])
      try await run(
        "openssl",
        [
          "pkey", "-pubin", "-inform", "DER", "-in", folder.path("key.der"), "-out",
          folder.path(name),
        ])
    }

    /// A file that names the command for a key.
    private func file(
      _ name: String, id: String, _ publicKey: String, _ mechanism: String, _ more: String = ""
    ) throws {
      let words = command(id, mechanism).map { "\"\($0)\"" }.joined(separator: ", ")
      try folder.write(
        "{\"command\": [\(words)], \"public_key\": \"\(folder.path(publicKey))\"\(more)}", to: name)
    }

    func command(_ id: String, _ mechanism: String) -> [String] {
      [
        "pkcs11-tool", "--module", Self.module, "--login", "--pin", "env:HSM_PIN", "--id", id,
        "--sign",
        "--mechanism", mechanism,
      ]
    }

    private func tool(_ arguments: [String]) async throws {
      try await run(
        "pkcs11-tool", ["--module", Self.module, "--login", "--pin", "env:HSM_PIN"] + arguments)
    }

    private func run(_ program: String, _ arguments: [String]) async throws {
      let end = try await ChildProcess.run(program, arguments, environment: environment)
      try #require(end.exitCode == 0, "\(program): \(end.stdout)\(end.stderr)")
    }
  }

  /// A server that a key of the token signs for, and that watches an endpoint.
  private static func configure(_ stage: GetStage, _ token: Token, _ more: String = "") throws {
    try stage.directory.write(
      """
      keys:
        - fqdn: localhost
          port: \(stage.server.port)
          address: 127.0.0.1
      server: {listen: "127.0.0.1:0"}
      storage: {dsn: \(stage.directory.path("registry.db"))}
      tls:
        dir: \(stage.directory.path("tls"))
        anchors: \(stage.directory.path("ca.pem"))
        confirmation_interval: 50ms
      signing:
        command: [\(token.command("01", "SHA512-RSA-PKCS").joined(separator: ", "))]
        public_key: \(token.folder.path("shipped.pub"))
      \(more)
      """, to: "config.yaml")
  }

  private static func start(
    _ stage: GetStage, _ environment: [String: String]
  ) async throws -> (server: ChildProcess, url: String) {
    let server = try Tool.start(
      ["up", "--config-path", stage.directory.path()], environment: environment)
    let marker = "listening on "
    try await server.waitForOutput(containing: marker)
    try await server.waitForOutput(containing: "\n")
    let line = try #require(server.stdout.split(separator: "\n").first { $0.hasPrefix(marker) })
    return (server, "\(line.dropFirst(marker.count))/api/v1/localhost.json")
  }

  /// Waits until a client with the shipped key takes what is served, and is served by the endpoint.
  private static func believes(
    _ stage: GetStage, _ token: Token, _ url: String, containing text: String
  ) async throws {
    let verify = ["verify", "--key", token.folder.path("shipped.pub"), url]
    var verified = try await Tool.run(verify)
    for _ in 0..<300 where !verified.stdout.contains(text) {
      // why: the server probes its endpoint in its own time, in another process.
      try await Task.sleep(nanoseconds: 50_000_000)
      verified = try await Tool.run(verify)
    }
    #expect(verified.exitCode == 0 && verified.stdout.contains(text), "\(verified)")
    let served = try await Tool.run(
      "get", stage.url(), "--registry", url, "--key", token.folder.path("shipped.pub"), "--ca",
      stage.directory.path("ca.pem"))
    #expect(served.stdout == "hello\n", "\(served.stderr)")
  }

  @Test("up publishes by such keys what an app believes, also over a rotation to a second one")
  func up() async throws {
    let stage = try GetStage()
    let token = try await Token()
    let environment = token.environment.merging(["SSL_PINNING_SERVER_KEY": "a-key-for-the-tokens"])
    { $1 }
    try Self.configure(stage, token)
    let check = ["config", "check", "--config-path", stage.directory.path()]
    let checked = try await Tool.run(check, environment: environment)
    #expect(checked.exitCode == 0 && checked.stderr.isEmpty, "\(checked)")
    #expect(!FileManager.default.fileExists(atPath: stage.directory.path("tls")))
    // The same with a wrong PIN, and without a key for tokens.
    let wrong = try await Tool.run(
      check, environment: environment.merging(["HSM_PIN": "1234"]) { $1 })
    #expect(wrong.exitCode == 3 && wrong.stderr.contains("CKR_PIN_INCORRECT"), "\(wrong)")
    let open = try await Tool.run(check, environment: token.environment)
    #expect(open.exitCode == 1 && open.stderr.contains("server.key"), "\(open)")

    let rotate = [
      "keys", "rotate", "--registry-name", "localhost.json", "--config-path",
      stage.directory.path(), "--online-key", token.folder.path("online.json"),
    ]
    let early = try await Tool.run(rotate + ["--first"], environment: environment)
    #expect(early.exitCode == 1 && early.stderr.contains("publish.online_keys"), "\(early)")
    try Self.configure(
      stage, token, "publish: {online_keys: [\(token.folder.path("online.json"))]}")
    let (server, url) = try await Self.start(stage, environment)
    try await Self.believes(stage, token, url, containing: try stage.pin)

    // An online key in the token, of which the shipped one there says that it signs.
    let rotated = try await Tool.run(rotate, environment: environment)
    #expect(rotated.exitCode == 0, "\(rotated)")
    #expect(!FileManager.default.fileExists(atPath: stage.directory.path("tls/online")))
    server.send(SIGHUP)
    try await Self.believes(stage, token, url, containing: "key set    1")
    try await server.terminate()
    // The private keys are in no file.
    for name in try FileManager.default.subpathsOfDirectory(atPath: stage.directory.path("tls")) {
      let bytes =
        FileManager.default.contents(atPath: stage.directory.path("tls/\(name)")) ?? Data()
      #expect(!String(decoding: bytes, as: UTF8.self).contains("PRIVATE KEY"))
    }
  }

  @Test("sign and keys sign-set take the file that names a command")
  func tool() async throws {
    let token = try await Token()
    let payload = try token.folder.write(
      "{\"keys\": [{\"domainName\": \"a.b\", \"key\": \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}]}",
      to: "payload.json")
    let (shipped, online) = (token.folder.path("shipped.json"), token.folder.path("online.json"))
    let made = try await Tool.run(
      [
        "keys", "sign-set", "--out", token.folder.path("sets.json"), "--registry-name", "app.json",
        "--root", token.folder.path("shipped.pub"), "--online", token.folder.path("online.pub"),
        "--sign-with", shipped,
      ], environment: token.environment)
    #expect(made.exitCode == 0, "\(made)")
    let signed = try await Tool.run(
      [
        "sign", "--first", "--key", shipped, "--online-key", online, "--key-sets",
        token.folder.path("sets.json"), "--registry-name", "app.json", payload.path,
        "--out", token.folder.path("app.json"),
      ], environment: token.environment)
    #expect(signed.exitCode == 0, "\(signed)")
    let verified = try await Tool.run(
      "verify", "--key", token.folder.path("shipped.pub"), "--registry-name", "app.json",
      token.folder.path("app.json"))
    #expect(verified.exitCode == 0 && verified.stdout.contains("key set    1"), "\(verified)")
    let refused = try await Tool.run(
      ["sign", "--key", shipped, payload.path],
      environment: token.environment.merging(["HSM_PIN": "1234"]) { $1 })
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty, "\(refused)")
    #expect(refused.stderr.contains("the signing command pkcs11-tool ended with 1"), "\(refused)")
  }
}
