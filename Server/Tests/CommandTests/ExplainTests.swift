import FaultLab
import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What `explain` says, offline: one chain of `api.example.com` under a CA of its own, and a list for each scenario.
@Suite("explain")
struct ExplainTests {
  /// A chain in a file, and the pins of its certificates.
  struct Stage {
    /// The leaf is valid for 100 days from here on.
    static let begin: Int64 = 1_795_600_000
    static let day: Int64 = 86_400

    let directory: TemporaryDirectory
    let leaf, middle, root: String

    init(begin: Int64 = Self.begin) throws {
      directory = try TemporaryDirectory()
      let long = Validity(
        notBefore: begin - 1000 * Self.day, notAfter: begin + 3000 * Self.day)
      let top = try CertificateAuthority.makeRoot(name: "Root", validity: long)
      let authority = try top.issueIntermediate(name: "Middle", validity: long)
      let identity = try authority.issue(
        names: ["api.example.com"],
        validity: Validity(notBefore: begin, notAfter: begin + 100 * Self.day))
      leaf = try SPKIPin(certificateDER: identity.leaf.der).base64
      middle = try SPKIPin(certificateDER: authority.certificate.der).base64
      root = try SPKIPin(certificateDER: top.root.der).base64
      try directory.write(
        identity.leaf.pem + identity.intermediates.map(\.pem).joined(), to: "chain.pem")
      try directory.write(top.root.pem, to: "ca.pem")
    }

    /// A payload with these entries: pattern, pin, and when it ends.
    func payload(_ entries: (String, String, Int64?)...) -> String {
      let keys = entries.map { name, pin, end in
        "{\"domainName\": \"\(name)\", \"key\": \"\(pin)\"\(end.map { ", \"expire\": \($0)" } ?? "")}"
      }
      return "{\"keys\": [\(keys.joined(separator: ", "))]}"
    }

    func android(_ body: String) -> String {
      "<network-security-config>\(body)</network-security-config>"
    }

    func run(_ words: [String]) async throws -> ChildProcess.Outcome {
      try await Tool.run(
        words.map { ["chain.pem", "ca.pem", "list"].contains($0) ? directory.path($0) : $0 })
    }
  }

  struct Scenario: CustomTestStringConvertible, Sendable {
    let name: String
    /// A list that is no registry.
    let list: @Sendable (Stage) -> String
    var host = "api.example.com"
    /// Days after the certificate's begin.
    var day: Int64 = 10
    var trustsCA = true
    let exitCode: Int32
    /// Each stands somewhere in the text.
    let says: @Sendable (Stage) -> [String]

    var testDescription: String { name }
  }

  static let begin = Stage.begin
  static let day = Stage.day

  static let scenarios: [Scenario] = [
    Scenario(
      name: "the server's key is listed",
      list: { $0.payload(("api.example.com", $0.leaf, nil)) }, exitCode: 0,
      says: {
        [
          "list (registry)", "api.example.com: 1 leaf", "CN=api.example.com \($0.leaf) listed;",
          "└ CN=Middle \($0.middle) not listed;", "└ CN=Root \($0.root) not listed;",
          "verdict  accepted", "matched: ", "(ChoosingPins)",
          "2026-11-25T09:46:40Z: the certificate CN=api.example.com began",
        ]
      }),
    Scenario(
      name: "another key is listed",
      list: { _ in
        "{\"keys\": [{\"domainName\": \"api.example.com\", \"key\": \"\(CheckTests.pin("A"))\"}]}"
      }, exitCode: 1,
      says: {
        [
          "verdict  refused", "leaf-pin: ", "not listed;",
          "list \($0.leaf) for api.example.com, or show a key that is listed",
        ]
      }),
    Scenario(
      name: "the host is not in the registry",
      list: { $0.payload(("other.example.com", $0.leaf, nil)) }, exitCode: 1,
      says: { _ in ["none matches", "unlisted-host: ", "cure     an entry for api.example.com"] }),
    Scenario(
      name: "Apple's systems do not pin what is not listed",
      list: { CheckTests.apple(CheckTests.domain("other.example.com", [$0.leaf])) }, exitCode: 0,
      says: { _ in ["none matches", "unlisted-host: clients of such a list", "(pin-formats)"] }),
    Scenario(
      name: "the certificate has ended",
      list: { $0.payload(("api.example.com", $0.leaf, nil)) }, day: 130, exitCode: 1,
      says: { _ in
        [
          "not valid, as it was sent:", "chain: ", "(TrustModes)",
          "2027-03-05T09:46:40Z: the certificate CN=api.example.com ended",
        ]
      }),
    Scenario(
      name: "the certificate is for another host",
      list: { $0.payload(("www.example.com", $0.leaf, nil)) }, host: "www.example.com",
      exitCode: 1, says: { _ in ["host-name: ", "1 leaf"] }),
    Scenario(
      name: "nobody vouches for the CA",
      list: { $0.payload(("api.example.com", $0.leaf, nil)) }, trustsCA: false, exitCode: 1,
      says: { _ in ["chain: ", "cure     --ca FILE"] }),
    Scenario(
      name: "the pin ended long ago",
      list: { $0.payload(("api.example.com", $0.leaf, begin + 3 * day)) }, exitCode: 1,
      says: {
        [
          "expired-pins: ", "(OfflineAndRecovery)", "listed, and over since 2026-11-28T09:46:40Z",
          "2026-11-29T11:46:40Z: the pin \($0.leaf) ended",
        ]
      }),
    Scenario(
      name: "the pin ended a day ago, and still counts",
      list: { $0.payload(("api.example.com", $0.leaf, begin + 9 * day)) }, exitCode: 0,
      says: { _ in ["accepted", "listed until 2026-12-04T09:46:40Z"] }),
    Scenario(
      name: "a listed CA is on the path",
      list: {
        CheckTests.apple(CheckTests.domain("api.example.com", [], ca: [$0.root]))
      }, exitCode: 0,
      says: {
        [
          "api.example.com: 1 CA", "└ CN=Root \($0.root) listed;",
          "CN=api.example.com \($0.leaf) not listed;", "accepted",
        ]
      }),
    Scenario(
      name: "the listed CA is another one, though the leaf is listed",
      list: {
        CheckTests.apple(
          CheckTests.domain("api.example.com", [$0.leaf], ca: [CheckTests.pin("A")]))
      }, exitCode: 1,
      says: { _ in
        ["1 leaf and 1 CA, both must match", "ca-pin: ", "a certificate of a listed CA"]
      }),
    Scenario(
      name: "several patterns match, and all count",
      list: {
        $0.payload(
          ("api.example.com", CheckTests.pin("A"), nil), ("*.example.com", $0.leaf, nil))
      }, exitCode: 0,
      says: { _ in ["api.example.com: 1 leaf", "*.example.com: 1 leaf", "all of them count"] }),
    Scenario(
      name: "on Android the closest entry decides",
      list: {
        $0.android(
          """
          <domain-config><domain includeSubdomains="true">example.com</domain><pin-set>
          <pin digest="SHA-256">\($0.leaf)</pin></pin-set></domain-config>
          <domain-config><domain>api.example.com</domain><pin-set>
          <pin digest="SHA-256">\(CheckTests.pin("A"))</pin></pin-set></domain-config>
          """)
      }, exitCode: 1,
      says: { _ in
        [
          "the closest one counts", "**.example.com: 1 leaf and 1 CA, one is enough", "refused",
        ]
      }),
    Scenario(
      name: "Android pins no longer from the expiration on",
      list: {
        $0.android(
          """
          <domain-config><domain>api.example.com</domain><pin-set expiration="2026-12-01">
          <pin digest="SHA-256">\(CheckTests.pin("A"))</pin></pin-set></domain-config>
          """)
      }, exitCode: 0,
      says: { _ in
        [
          "pinned until 2026-12-01T00:00:00Z", "unlisted-host: ",
          "2026-12-01T00:00:00Z: api.example.com is pinned no longer",
        ]
      }),
    Scenario(
      name: "the host is written in another way",
      list: { $0.payload(("api.example.com", $0.leaf, nil)) }, host: "API.Example.com.:8443",
      exitCode: 0,
      says: { _ in ["API.Example.com.:8443, compared as api.example.com"] }),
  ]

  @Test("says what decided, and why", arguments: scenarios)
  func scenario(_ scenario: Scenario) async throws {
    let stage = try Stage()
    try stage.directory.write(scenario.list(stage), to: "list")
    let words =
      [
        "explain", scenario.host, "--policy", "list", "--chain", "chain.pem", "--at",
        "\(Stage.begin + scenario.day * Stage.day)",
      ] + (scenario.trustsCA ? ["--ca", "ca.pem"] : [])
    let outcome = try await stage.run(words)
    #expect(outcome.exitCode == scenario.exitCode, "\(outcome.stderr)")
    for text in scenario.says(stage) {
      #expect(outcome.stdout.contains(text), "\(text) is not in\n\(outcome.stdout)")
    }
    let json = try await stage.run(words + ["--json"])
    #expect(json.exitCode == scenario.exitCode)
    let verdict = try #require(try json.json.objectValue)
    #expect(verdict["decision"] == .string(scenario.exitCode == 0 ? "accept" : "refuse"))
  }

  @Test("of a signed registry it knows what is denied, and when the list was signed and ended")
  func signed() async throws {
    // Now: what is over by the clock is not signed.
    let begin = Int64(Date().timeIntervalSince1970)
    let stage = try Stage(begin: begin)
    func date(_ day: Int64) -> String {
      Date(timeIntervalSince1970: Double(begin + day * Stage.day)).ISO8601Format()
    }
    let key = try Keys.signing.get()
    func path(_ name: String) -> String { stage.directory.path(name) }
    try key.write(to: stage.directory.file("prv.pem"))
    try stage.directory.write(
      stage.payload(
        ("api.example.com", stage.leaf, nil), ("api.example.com", CheckTests.pin("A"), nil)),
      to: "payload.json")
    let public64 = StrictBase64.encode(key.publicKeyDER)
    func sign(_ flags: String...) async throws {
      let signed = try await Tool.run(
        [
          "sign", "--first", "--key", path("prv.pem"), "--online-key", path("prv.pem"),
          "--registry-name", "app.json", "--issued", "\(begin)", path("payload.json"), "--out",
          path("app.json"),
        ] + flags)
      #expect(signed.exitCode == 0, "\(signed.stderr)")
    }
    func explain(day: Int64) async throws -> ChildProcess.Outcome {
      try await stage.run([
        "explain", "api.example.com", "--registry", path("app.json"), "--key", public64, "--chain",
        "chain.pem", "--ca", "ca.pem", "--at", "\(begin + day * Stage.day)",
      ])
    }
    try await sign()
    let good = try await explain(day: 10)
    #expect(good.exitCode == 0, "\(good.stderr)")
    #expect(
      good.stdout.contains("app.json (registry), signed \(date(0)), counts until \(date(90))"))
    let over = try await explain(day: 95)
    #expect(over.exitCode == 1)
    #expect(over.stdout.contains("expired-registry: "), "\(over.stdout)\(over.stderr)")
    #expect(over.stdout.contains("\(date(90)): the list ended"), "\(over.stdout)")
    #expect(over.stdout.contains("a list that is signed anew"))
    try FileManager.default.removeItem(at: stage.directory.file("app.json"))
    try await sign("--deny", stage.middle)
    let denied = try await explain(day: 10)
    #expect(denied.exitCode == 1, "\(denied.stderr)")
    #expect(denied.stdout.contains("denied-key: "))
    #expect(denied.stdout.contains("CN=Middle \(stage.middle) DENIED"))
    #expect(denied.stdout.contains("\(stage.middle) was denied"))
    #expect(denied.stdout.contains("\(date(0)): the certificate CN=api.example.com began"))
  }

  @Test("asks the server for its chain where no file is given")
  func live() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try authority.issue(names: ["localhost"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    try directory.write(authority.root.pem, to: "ca.pem")
    let pin = try SPKIPin(certificateDER: identity.leaf.der).base64
    for (listed, code) in [(pin, Int32(0)), (CheckTests.pin("A"), 1)] {
      try directory.write(
        "{\"keys\": [{\"domainName\": \"localhost\", \"key\": \"\(listed)\"}]}", to: "list")
      let outcome = try await Tool.run(
        "explain", "localhost:\(server.port)", "--policy", directory.path("list"), "--ca",
        directory.path("ca.pem"))
      #expect(outcome.exitCode == code, "\(outcome.stderr)")
      #expect(outcome.stdout.contains("CN=localhost \(pin)"))
    }
    let gone = try ClosedPort()
    let away = try await Tool.run(
      "explain", "localhost:\(gone.port)", "--policy", directory.path("list"))
    #expect(away.exitCode == 3)
    let none = try await Tool.run("explain", "localhost")
    #expect(none.exitCode == 2)
  }

  @Test("names pages of the documentation that there are")
  func pages() async throws {
    let root = Vectors.package
    let source = try String(
      contentsOf: root.appending(path: "Server/Sources/ssl-pinning/Commands/ExplainCommand.swift"),
      encoding: .utf8)
    let names = Set(source.matches(of: /[ ]\((\w[\w-]+)\)"/).map { String($0.1) })
    #expect(names.count >= 5)
    for name in names {
      let places = ["docs/\(name).md", "Sources/SslPinning/SslPinning.docc/\(name).md"]
      #expect(
        places.contains {
          let page = root.appending(path: $0).path(percentEncoded: false)
          return FileManager.default.fileExists(atPath: page)
        }, "\(name)")
    }
  }
}
