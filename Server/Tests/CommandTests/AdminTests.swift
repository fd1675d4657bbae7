import CanonicalJSON
import FaultLab
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// A server that watches the stage's site, where a person decides about new keys.
private struct AdminStage {
  let stage: GetStage
  let server: ChildProcess
  let address: String

  init() async throws {
    stage = try GetStage()
    let keys = stage.directory.path("tls")
    _ = try await Tool.run("keys", "generate", "--out", keys, "--algorithm", "rsa-2048")
    try stage.directory.write(
      """
      keys: [{fqdn: localhost, file: all.json, port: \(stage.server.port), address: 127.0.0.1}]
      storage: {type: memory}
      tls: {dir: \(keys), anchors: \(stage.directory.path("ca.pem")), confirmation_interval: 50ms,
        dump_interval: 1s, approval: manual}
      """, to: "config.yaml")
    server = try Tool.start(
      ["up", "--config-path", stage.directory.path(), "--listen", "127.0.0.1:0"])
    let marker = "listening on "
    try await server.waitForOutput(containing: marker)
    try await server.waitForOutput(containing: "\n")
    let line = try #require(server.stdout.split(separator: "\n").first { $0.hasPrefix(marker) })
    address = String(line.dropFirst(marker.count))
  }

  func admin(_ arguments: String...) async throws -> ChildProcess.Outcome {
    try await Tool.run(
      ["admin"] + arguments
        + ["--server", address, "--config-path", stage.directory.path(), "--name", "ada"])
  }

  var endpoint: [String] {
    ["--file", "all.json", "--endpoint", "localhost:\(stage.server.port) at 127.0.0.1"]
  }

  /// The document as its server gives it.
  func document() async throws -> String {
    try await ChildProcess.run("curl", ["-s", "--noproxy", "*", address + "/api/v1/all.json"])
      .stdout
  }

  func until(_ isSo: (String) -> Bool) async throws -> Bool {
    for _ in 0..<600 {
      if isSo(try await document()) { return true }
      // why: the server looks at its endpoint in its own time, in another process.
      try await Task.sleep(nanoseconds: 50_000_000)
    }
    return false
  }
}

@Suite("admin", .timeLimit(.minutes(2)))
struct AdminTests {
  @Test("a key is staged from a certificate, another waits and is approved, one is revoked")
  func decisions() async throws {
    let stage = try await AdminStage()
    let (site, pin) = (stage.stage, try stage.stage.pin)
    #expect(try await stage.until { $0.contains(pin) })
    #expect(try await stage.admin("pending").stdout == "no key waits\n")

    let next = try site.authority.issue(names: ["localhost"])
    let announced = try SPKIPin(certificateDER: next.leaf.der).base64
    let file = try site.directory.write(next.leaf.pem, to: "next.pem").path(percentEncoded: false)
    let staged = try await Tool.run(
      [
        "admin", "stage", file, "--why", "June", "--server", stage.address, "--config-path",
        site.directory.path(),
      ] + stage.endpoint)
    #expect(staged.exitCode == 0, "\(staged.stderr)")
    #expect(staged.stdout == "\(announced) is published ahead of its use\n")
    #expect(try await stage.document().contains(announced))

    let unknown = try site.authority.issue(names: ["localhost", "127.0.0.1"])
    let waiting = try SPKIPin(certificateDER: unknown.leaf.der).base64
    try site.server.replaceIdentity(unknown)
    var pending = ""
    for _ in 0..<600 where !pending.contains(waiting) {
      // why: as above.
      try await Task.sleep(nanoseconds: 50_000_000)
      pending = try await stage.admin("pending").stdout
    }
    #expect(pending.contains("all.json") && pending.contains("manual"), "\(pending)")
    let row = try #require(pending.split(separator: "\n").first { $0.contains(waiting) })
    // Who signed it, how long it has waited, when it was last seen and from where.
    #expect(
      row.contains("CN=") && row.contains(" s ") && row.contains(" ago ")
        && row.contains(" direct "), "\(row)")
    #expect(try await !stage.document().contains(waiting))
    // The pin of its issuer stands in the list, and an approval that names another one is refused.
    let issuer = try SPKIPin(certificateDER: try #require(unknown.intermediates.first).der).base64
    #expect(row.contains(" \(issuer) "), "\(row)")
    let approve = [
      "admin", "approve", waiting, "--server", stage.address, "--config-path",
      site.directory.path(), "--issuer",
    ]
    let refused = try await Tool.run(approve + [announced] + stage.endpoint)
    #expect(refused.exitCode != 0 && refused.stderr.contains("issue"), "\(refused.stderr)")
    let approved = try await Tool.run(approve + [issuer] + stage.endpoint)
    #expect(approved.exitCode == 0, "\(approved.stderr)")
    #expect(try await stage.document().contains(waiting))

    let revoked = try await Tool.run(
      [
        "admin", "revoke", announced, "--server", stage.address, "--config-path",
        site.directory.path(),
      ] + stage.endpoint)
    #expect(revoked.exitCode == 0, "\(revoked.stderr)")
    #expect(try await !stage.document().contains(announced))
    #expect(try await stage.server.terminate(seconds: 30).exitCode == 0)
  }

  /// What `admin pending`, or another command, says of a server that is none.
  private func pending(
    at server: LocalHTTPServer, asking words: [String] = ["pending"]
  ) async throws -> ChildProcess.Outcome {
    let stage = try GetStage()
    _ = try await Tool.run("keys", "generate", "--out", stage.directory.path("tls"))
    try stage.directory.write(
      """
      keys: [{fqdn: localhost, file: all.json}]
      storage: {type: memory}
      tls: {dir: \(stage.directory.path("tls"))}
      """, to: "config.yaml")
    return try await Tool.run(
      ["admin"] + words + [
        "--server", "http://127.0.0.1:\(server.port)", "--config-path", stage.directory.path(),
        "--name", "ada",
      ])
  }

  @Test("what is only proposed is said with how and until when another person confirms it")
  func proposed() async throws {
    let pin = String(repeating: "A", count: 43) + "="
    let proposal = #"{"id": "0123456789abcdef", "expires": 1700000000}"#
    let pages = try LocalHTTPServer { _ in
      .text(
        #"{"pin": "\#(pin)", "changes": [], "warnings": [], "proposal": \#(proposal)}"#, status: 202
      )
    }
    let outcome = try await pending(at: pages, asking: ["deny", pin, "--why", "stolen"])
    #expect(outcome.exitCode == 0, "\(outcome)")
    #expect(
      outcome.stdout
        == "proposed, and not done: another person confirms it by ssl-pinning admin confirm"
        + " 0123456789abcdef, until 2023-11-14T22:13:20Z\n")
  }

  @Test("every key that waits is listed, and not those of the server's first page alone")
  func manyPending() async throws {
    let pages = try LocalHTTPServer { request in
      guard request.target.contains("/pending?") else { return HTTPResponse(status: 404) }
      let hosts = request.target.contains("offset=2") ? ["c"] : ["a", "b"]
      let items = hosts.map { #"{"file": "all.json", "endpoint": "\#($0).test:443"}"# }
      return .text(#"{"items": [\#(items.joined(separator: ", "))], "total": 3}"#)
    }
    let outcome = try await pending(at: pages)
    for host in ["a", "b", "c"] {
      #expect(outcome.stdout.contains(" \(host).test:443 "), "\(outcome)")
    }
  }

  @Test(
    "what waits for a second person and cannot be read is no silence, and what reads sends a token for reading alone",
    arguments: [(200, 0), (404, 0), (503, 3)])
  func unreadProposals(status: Int, exitCode: Int32) async throws {
    let pages = try LocalHTTPServer { request in
      if request.target.hasSuffix("/proposals") {
        return .text(
          status == 200 ? #"{"proposals": []}"# : #"{"error": "the store is away"}"#,
          status: status)
      }
      return .text(#"{"items": [], "total": 0}"#)
    }
    let outcome = try await pending(at: pages)
    #expect(outcome.exitCode == exitCode, "\(outcome)")
    #expect(outcome.stdout == "no key waits\n")
    #expect(outcome.stderr.contains("the store is away") == (exitCode == 3))
    let tokens = pages.requests.compactMap { request in
      request.headers.first { $0.name.lowercased() == "authorization" }?.value
    }
    #expect(tokens.count == 2)
    for token in tokens {
      let claims = token.split(separator: ".").dropFirst().first.map(String.init) ?? ""
      let base64 = claims.replacing("-", with: "+").replacing("_", with: "/")
      let padding = String(repeating: "=", count: (4 - base64.count % 4) % 4)
      let data = try #require(Data(base64Encoded: base64 + padding))
      #expect(try JSONValue(parsing: [UInt8](data)).objectValue?["scope"] == .string("read"))
    }
  }

  @Test(
    "an endpoint is added, paused, resumed and taken out, and the history has it all, page by page")
  func endpoints() async throws {
    let stage = try await AdminStage()
    #expect(try await stage.until { $0.contains("localhost") })
    let second = "two.example:\(stage.stage.server.port)"
    let added = try await stage.admin(
      "add", "two.example", "--port", "\(stage.stage.server.port)", "--file", "all.json",
      "--pattern",
      "*.two.example", "--why", "the new gateway")
    #expect(added.exitCode == 0 && added.stdout == "\(second) is watched\n", "\(added)")
    #expect(try await stage.admin("add", "two.example", "--file", "none.json").exitCode == 1)
    let endpoint = ["--file", "all.json", "--endpoint", second]
    func act(_ words: [String]) async throws -> String {
      let outcome = try await Tool.run(
        ["admin"] + words + endpoint
          + ["--server", stage.address, "--config-path", stage.stage.directory.path()])
      #expect(outcome.exitCode == 0, "\(words): \(outcome.stderr)")
      return outcome.stdout
    }
    #expect(try await act(["pause", "--why", "tonight"]) == "\(second) is paused\n")
    #expect(try await act(["pause"]) == "\(second) is paused already\n")
    #expect(try await act(["resume"]) == "\(second) is probed\n")
    let authority = try stage.stage.pin
    func terms(_ words: String..., at endpoint: [String]) async throws -> ChildProcess.Outcome {
      try await Tool.run(
        ["admin", "terms"] + words + endpoint
          + ["--server", stage.address, "--config-path", stage.stage.directory.path()])
    }
    // What no server of the host shows is set with force alone; then every client reads of it.
    let refused = try await terms("--ca", authority, at: stage.endpoint)
    #expect(refused.exitCode == 1 && refused.stderr.contains("pass --force"), "\(refused)")
    #expect(try await terms("--ca", authority, "--no-ca", at: endpoint).exitCode == 2)
    #expect(try await terms("--why", "nothing named", at: endpoint).exitCode == 2)
    #expect(
      try await act(["terms", "--ca", authority, "--match", "any", "--force"])
        == "\(second) has these terms\n")
    func listed() async throws -> String {
      let token = try await Tool.run(
        "token", "--name", "ada", "--config-path", stage.stage.directory.path()
      ).stdout.trimmingCharacters(in: .whitespacesAndNewlines)
      return try await ChildProcess.run(
        "curl",
        [
          "-s", "--noproxy", "*", "-H", "Authorization: Bearer \(token)",
          stage.address + "/api/v1/admin/documents/all.json/endpoints/"
            + second.replacing(":", with: "%3A"),
        ]
      ).stdout
    }
    #expect(try await listed().contains(#""match":"any""#))
    #expect(try await act(["terms", "--no-ca", "--match", "all"]) == "\(second) has these terms\n")
    #expect(try await !listed().contains(#""match":"any""#))
    #expect(
      try await act(["remove", "--why", "switched off"]) == "\(second) is not watched any more\n")
    let history = try await stage.admin("history", "--file", "all.json").stdout
    let mine = history.split(separator: "\n").filter { $0.contains(second) }
    // The newest first, under the name that the token has.
    #expect(mine.count == 6, "\(history)")
    #expect(
      mine.first?.contains("switched off") == true && mine.last?.contains("the new gateway") == true
    )
    #expect(mine.last?.contains(" ada ") == true)
    let newest = try await stage.admin("history", "--file", "all.json", "--limit", "1", "--json")
    let page = try JSONValue(parsing: [UInt8](newest.stdout.utf8)).objectValue
    #expect(page?["entries"]?.arrayValue?.count == 1)
    #expect(try await stage.server.terminate(seconds: 30).exitCode == 0)
  }

  @Test("denying the last key that a host shows lists the host, and needs --force")
  func force() async throws {
    let stage = try await AdminStage()
    let pin = try stage.stage.pin
    #expect(try await stage.until { $0.contains(pin) })
    let refused = try await stage.admin("deny", pin, "--why", "leaked")
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
    #expect(refused.stderr.contains("localhost") && refused.stderr.contains("pass --force"))
    #expect(try await !stage.document().contains("\"denied\":[\"\(pin)\"]"))
    let forced = try await stage.admin("deny", pin, "--why", "leaked", "--force")
    #expect(forced.exitCode == 0 && forced.stdout == "\(pin) is denied\n", "\(forced.stderr)")
    #expect(try await stage.document().contains("\"denied\":[\"\(pin)\"]"))
    #expect(
      try await stage.admin("deny", pin, "--why", "again").stdout == "\(pin) is denied already\n")
    #expect(try await stage.server.terminate(seconds: 30).exitCode == 0)
  }

  @Test("a token of another server, a private key and what is no pin go nowhere")
  func refused() async throws {
    let stage = try await AdminStage()
    let directory = stage.stage.directory
    let token = try directory.write("not.a.token", to: "token").path(percentEncoded: false)
    let foreign = try await stage.admin("pending", "--token-file", token)
    #expect(foreign.exitCode == 1 && !foreign.stderr.contains("not.a.token"))
    let secret = try directory.write(
      try PrivateKey.generate(.p256).pem, to: "secret.pem"
    ).path(percentEncoded: false)
    for key in [secret, "no-such-file", token] {
      let outcome = try await Tool.run(
        ["admin", "stage", key, "--server", stage.address, "--config-path", directory.path()]
          + stage.endpoint)
      #expect([2, 3].contains(outcome.exitCode), "\(outcome)")
    }
    #expect(try await stage.admin("deny", "pin", "--why", "x").exitCode == 2)
    for text in ["", "two\nlines"] {
      let bad = try directory.write(text, to: "bad").path(percentEncoded: false)
      #expect(try await stage.admin("pending", "--token-file", bad).exitCode == 2)
    }
    for suffix in ["?a=b", "#f"] {
      let outcome = try await Tool.run(
        "admin", "pending", "--server", stage.address + suffix, "--token-file", token)
      #expect(outcome.exitCode == 2)
    }
    let target = "\(stage.address)/api/v1/admin/pending"
    let elsewhere = try LocalHTTPServer { _ in
      HTTPResponse(status: 307, headers: [HTTPField("Location", target)])
    }
    let redirected = try await Tool.run(
      "admin", "pending", "--server", "http://127.0.0.1:\(elsewhere.port)", "--config-path",
      directory.path())
    #expect(redirected.exitCode != 0 && redirected.stdout.isEmpty)
    let away = try await Tool.run(
      "admin", "pending", "--server", "http://pins.example.com", "--token-file", token)
    #expect(away.exitCode == 2 && away.stderr.contains("https://"))
    #expect(try await stage.server.terminate(seconds: 30).exitCode == 0)
  }

  @Test("denying the CA that the hosts are under lists them, and is taken back with allow")
  func authority() async throws {
    let stage = try await AdminStage()
    let pin = try stage.stage.pin
    #expect(try await stage.until { $0.contains(pin) })
    for certificate in [stage.stage.authority.certificate, stage.stage.authority.root] {
      let ca = try SPKIPin(certificateDER: certificate.der).base64
      let refused = try await stage.admin("deny", ca, "--why", "x")
      #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
      #expect(
        refused.stderr.contains(
          "localhost; hint: move their servers to another CA first, or pass --force"))
      #expect(try await stage.admin("denials").stdout == "no key is denied\n")
      #expect(try await stage.admin("deny", ca, "--why", "leaked", "--force").exitCode == 0)
      let denials = try await stage.admin("denials").stdout
      #expect(denials.contains(ca) && denials.contains("leaked"))
      let allowed = try await stage.admin("allow", ca)
      #expect(allowed.exitCode == 0 && allowed.stdout == "\(ca) is denied no more\n")
      #expect(try await stage.admin("allow", ca).exitCode == 1)
    }
    let unseen = try await stage.admin("deny", SignWiderTests.thirdPin, "--why", "x")
    #expect(unseen.exitCode == 0 && unseen.stderr.hasPrefix("warning: no endpoint has shown "))
    #expect(try await stage.server.terminate(seconds: 30).exitCode == 0)
  }

  @Test("a page that answers with an object is no registry server, and a URL is no endpoint")
  func noServer() async throws {
    let page = try LocalHTTPServer { _ in .text("{}") }
    let directory = try TemporaryDirectory()
    let token = try directory.write("a.b.c", to: "token").path(percentEncoded: false)
    let call = ["--server", "http://127.0.0.1:\(page.port)", "--token-file", token]
    let pin = SignWiderTests.thirdPin
    let endpoint = ["--file", "a.json", "--endpoint", "a.example"]
    for words in [
      ["deny", pin, "--why", "x"], ["allow", pin], ["denials"], ["pending"],
      ["stage", pin] + endpoint, ["history", "--file", "a.json"],
      ["add", "a.example", "--file", "a.json"],
      ["pause"] + endpoint, ["resume"] + endpoint, ["remove"] + endpoint,
      ["approve", pin] + endpoint, ["revoke", pin] + endpoint,
    ] {
      let outcome = try await Tool.run(["admin"] + words + call)
      #expect(outcome.exitCode == 3 && outcome.stdout.isEmpty, "\(words): \(outcome.stderr)")
      #expect(outcome.stderr.contains("no answer of a registry server"))
    }
    let url = try await Tool.run(
      ["admin", "stage", pin, "--file", "a.json", "--endpoint", "https://a.example"] + call)
    #expect(url.exitCode == 2 && url.stderr.contains("--endpoint is no URL"))
    let keyless = try await Tool.run(
      "admin", "pending", "--server", "http://127.0.0.1:1", "--config-path", directory.path())
    #expect(keyless.stderr.components(separatedBy: "hint:").count == 2, "\(keyless.stderr)")
  }
}
