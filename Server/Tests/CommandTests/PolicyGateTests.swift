import CanonicalJSON
import FaultLab
import Foundation
import PolicyFormats
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What `check`, `explain`, `export` and `import` say, held against what clients do.
@Suite("pin lists are judged as their clients judge them")
struct PolicyGateTests {
  private let directory: TemporaryDirectory
  private let key: String

  init() throws {
    directory = try TemporaryDirectory()
    let signing = try Keys.signing.get()
    try signing.write(to: directory.file("prv.pem"))
    key = StrictBase64.encode(signing.publicKeyDER)
  }

  private func path(_ name: String) -> String { directory.file(name).path(percentEncoded: false) }

  private func payload(_ entries: [JSONValue], as name: String = "payload.json") throws -> String {
    try directory.write(
      JSONValue.object(["keys": .array(entries)]).canonicalBytes, to: name
    ).path(percentEncoded: false)
  }

  /// Signs `payload.json` as `app.json`.
  private func sign(_ more: String...) async throws {
    let signed = try await Tool.run(
      [
        "sign", "--first", "--key", path("prv.pem"), "--online-key", path("prv.pem"),
        "--registry-name", "app.json", path("payload.json"), "--out", path("app.json"),
      ] + more)
    #expect(signed.exitCode == 0, "\(signed.stderr)")
  }

  private var registry: [String] { ["--registry", path("app.json"), "--key", key] }

  @Test("a denied key is no way in, no backup, and in no file for another client")
  func denied() async throws {
    let (a, b) = (CheckTests.pin("A"), CheckTests.pin("B"))
    _ = try payload([Keys.entry("a.example", a), Keys.entry("a.example", b)])
    try await sign("--deny", a)
    let one = try await Tool.run(["check", "--offline", "--format", "json"] + registry)
    #expect(try CheckTests.told(one) == ["no-backup-pin a.example \(path("app.json"))"])
    let curl = try await Tool.run(["export", "--to", "curl", "--strict"] + registry)
    #expect(curl.exitCode == 1)
    #expect(curl.stdout.contains(b) && !curl.stdout.contains(a))
    try FileManager.default.removeItem(at: directory.file("app.json"))
    try await sign("--deny", a, "--deny", b)
    let none = try await Tool.run(["check", "--offline", "--format", "json"] + registry)
    #expect(try CheckTests.told(none) == ["no-usable-pin a.example \(path("app.json"))"])
    #expect(none.exitCode == 1)
  }

  @Test(
    "a pin that was active lives as long as its statement, for check and explain as for clients")
  func statement() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let now = Int64(Date().timeIntervalSince1970)
    let identity = try authority.issue(
      names: ["localhost"],
      validity: Validity(notBefore: now - 3600, notAfter: now + 200 * 86_400))
    let files = try identity.write(to: directory.url, name: "site")
    let chain = files.certificates.path(percentEncoded: false)
    let ca = try directory.write(authority.root.pem, to: "ca.pem").path(percentEncoded: false)
    let pin = try SPKIPin(certificateDER: identity.leaf.der).base64
    _ = try payload([Keys.entry("localhost", pin, expires: Int32(now + 86_400))])
    try await sign()
    let then = ["--at", "\(now + 40 * 86_400)", "--ca", ca, "--chain", chain]
    let explained = try await Tool.run(["explain", "localhost"] + registry + then)
    #expect(explained.exitCode == 0, "\(explained.stdout)")
    let checked = try await Tool.run(["check", "--host", "localhost"] + registry + then)
    #expect(checked.exitCode == 0, "\(checked.stdout)")
    // The wildcard of the list is not for the name itself.
    _ = try payload([
      Keys.entry("*.localhost", pin), Keys.entry("*.localhost", CheckTests.pin("B")),
    ])
    try FileManager.default.removeItem(at: directory.file("app.json"))
    try await sign()
    for command in [["explain", "localhost"], ["check", "--host", "localhost"]] {
      let refused = try await Tool.run(command + registry + ["--ca", ca, "--chain", chain])
      #expect(refused.exitCode == 1, "\(refused.stdout)")
    }
  }

  @Test(
    "of several valid paths one that satisfies a registry is enough, for check and explain, too")
  func paths() async throws {
    let (key, old) = (
      try PrivateKey.generate(.p256), try CertificateAuthority.makeRoot(name: "Old")
    )
    let new = try CertificateAuthority.makeRoot(name: "New", key: key)
    let cross = try old.issueIntermediate(name: "New", key: key)
    let identity = try new.issueIntermediate(name: "Middle").issue(names: ["localhost"])
    func pin(_ one: Certificate) throws -> String { try SPKIPin(certificateDER: one.der).base64 }
    let chain = try directory.write(
      identity.certificateChainPEM + cross.certificate.pem, to: "chain.pem"
    ).path(percentEncoded: false)
    let ca = try directory.write(new.root.pem + old.root.pem, to: "roots.pem")
      .path(percentEncoded: false)
    _ = try payload([
      Keys.entry("localhost", try pin(identity.leaf)), Keys.entry("localhost", CheckTests.pin("B")),
    ])
    for (root, code) in [(try pin(new.root), 0), (try pin(old.root), 0), (CheckTests.pin("C"), 1)] {
      let statement = try directory.write(
        "{\"hosts\": [{\"domainName\": \"localhost\", \"ca\": [\"\(root)\"], \"match\": \"all\"}]}",
        to: "statement.json"
      ).path(percentEncoded: false)
      try await sign("--statement", statement)
      let rest = ["--ca", ca, "--chain", chain] + registry
      let explained = try await Tool.run(["explain", "localhost"] + rest)
      #expect(explained.exitCode == Int32(code), "\(explained.stdout)")
      #expect(explained.stdout.contains("\(root) listed") == (code == 0), "\(explained.stdout)")
      let checked = try await Tool.run(["check", "--host", "localhost"] + rest)
      #expect(checked.exitCode == Int32(code), "\(checked.stdout)")
      try FileManager.default.removeItem(at: directory.file("app.json"))
    }
  }

  @Test("a CA that ends before the certificate is told, unless another path goes on")
  func authorityEnds() async throws {
    let now = Int64(Date().timeIntervalSince1970)
    let key = try PrivateKey.generate(.p256)
    let short = try CertificateAuthority.makeRoot(
      name: "Root", key: key, validity: Validity(notBefore: now - 3600, notAfter: now + 9 * 86_400))
    let long = try CertificateAuthority.makeRoot(name: "Root", key: key)
    let identity = try short.issue(names: ["localhost"])
    let files = try identity.write(to: directory.url, name: "site")
    let list = try payload([
      Keys.entry("localhost", try SPKIPin(certificateDER: identity.leaf.der).base64),
      Keys.entry("localhost", CheckTests.pin("B")),
    ])
    for (name, roots, told) in [
      ("short", short.root.pem, ["ca-expires localhost:443 "]),
      ("both", short.root.pem + long.root.pem, []),
    ] {
      let ca = try directory.write(roots, to: name).path(percentEncoded: false)
      let outcome = try await Tool.run(
        "check", list, "--host", "localhost", "--ca", ca, "--format", "json", "--chain",
        files.certificates.path(percentEncoded: false))
      #expect(try CheckTests.told(outcome) == Set(told), "\(name)")
    }
  }

  @Test(
    "the one listed CA that ends is told, though another path goes on", arguments: [20, 90])
  func listedAuthorityEnds(days: Int64) async throws {
    let now = Int64(Date().timeIntervalSince1970)
    let key = try PrivateKey.generate(.p256)
    let new = try CertificateAuthority.makeRoot(name: "New", key: key)
    let old = try CertificateAuthority.makeRoot(
      name: "Old", validity: Validity(notBefore: now - 3600, notAfter: now + 9 * 86_400))
    let cross = try old.issueIntermediate(name: "New", key: key)
    let identity = try new.issue(
      names: ["localhost"],
      validity: Validity(notBefore: now - 3600, notAfter: now + days * 86_400))
    let ca = try directory.write(new.root.pem + old.root.pem, to: "roots.pem")
      .path(percentEncoded: false)
    let chain = try directory.write(identity.leaf.pem + cross.certificate.pem, to: "chain.pem")
      .path(percentEncoded: false)
    _ = try payload([
      Keys.entry("localhost", try SPKIPin(certificateDER: identity.leaf.der).base64),
      Keys.entry("localhost", CheckTests.pin("B")),
    ])
    let own = try SPKIPin(certificateDER: old.root.der).base64
    let statement = try directory.write(
      "{\"hosts\": [{\"domainName\": \"localhost\", \"ca\": [\"\(own)\", \"\(CheckTests.pin("C"))\"], \"match\": \"all\"}]}",
      to: "statement.json"
    ).path(percentEncoded: false)
    try await sign("--statement", statement)
    let outcome = try await Tool.run(
      ["check", "--host", "localhost", "--ca", ca, "--chain", chain, "--format", "json"] + registry)
    #expect(try CheckTests.told(outcome) == ["ca-expires localhost:443 \(path("app.json"))"])
  }

  @Test("no report has what a registry's URL has in its query")
  func query() async throws {
    _ = try payload([Keys.entry("a.example", CheckTests.pin("A"))])
    try await sign()
    let document = [UInt8](try Data(contentsOf: directory.file("app.json")))
    let server = try LocalHTTPServer { _ in HTTPResponse(body: document) }
    let url = "http://127.0.0.1:\(server.port)/app.json?token=hunter2"
    let rest = ["--registry", url, "--key", key, "--registry-name", "app.json"]
    let chain = try directory.write(
      try CertificateAuthority.makeRoot(name: "Root").issue(names: ["a.example"]).leaf.pem,
      to: "chain.pem"
    ).path(percentEncoded: false)
    for words in [
      ["check", "--offline"], ["check", "--offline", "--format", "sarif"],
      ["explain", "a.example", "--chain", chain],
    ] {
      let outcome = try await Tool.run(words + rest)
      #expect(outcome.stdout.contains("127.0.0.1:\(server.port)"), "\(outcome.stderr)")
      #expect(!(outcome.stdout + outcome.stderr).contains("hunter2"))
    }
  }

  @Test(
    "what another format does not pin, or not any more, its clients accept, and explain says so")
  func unpinned() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try authority.issue(names: ["localhost", "other.example"])
    let files = try identity.write(to: directory.url, name: "site")
    let ca = try directory.write(authority.root.pem, to: "ca.pem").path(percentEncoded: false)
    let list = try directory.write(
      """
      <network-security-config><domain-config><domain>localhost</domain><pin-set expiration="2020-01-01">
      <pin digest="SHA-256">\(CheckTests.pin("A"))</pin></pin-set></domain-config></network-security-config>
      """, to: "nsc.xml"
    ).path(percentEncoded: false)
    let own = try payload([Keys.entry("localhost", CheckTests.pin("A"))])
    let rest = ["--ca", ca, "--chain", files.certificates.path(percentEncoded: false), "--policy"]
    for (host, list, code) in [
      ("localhost", list, 0), ("other.example", list, 0), ("other.example", own, 1),
    ] {
      let outcome = try await Tool.run(["explain", host] + rest + [list])
      #expect(outcome.exitCode == Int32(code), "\(host) \(list): \(outcome.stdout)")
    }
  }

  @Test("a host that is named is asked beside those of the lists, and nobody offline")
  func hosts() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let server = try LocalTLSServer(
      identity: try authority.issue(names: ["localhost", "127.0.0.1"])
    ) { _ in .text("hello") }
    defer { server.stop() }
    let ca = try directory.write(authority.root.pem, to: "ca.pem").path(percentEncoded: false)
    // Nobody answers at port 443 of an address that is this machine's.
    let list = try payload([Keys.entry("127.0.0.99", CheckTests.pin("A"))])
    let outcome = try await Tool.run(
      "check", list, "--host", "localhost:\(server.port)", "--ca", ca, "--format", "json")
    #expect(try CheckTests.told(outcome).contains("unreachable 127.0.0.99:443 "))
    let next = try directory.write(
      try PrivateKey.generate(.p256).publicKeyPEM, to: "next.pem"
    ).path(percentEncoded: false)
    let offline = try await Tool.run(
      "check", list, "--host", "localhost", "--backup", next, "--offline")
    #expect(offline.exitCode == 2)
  }

  @Test(
    "a server with an older TLS than clients take is an error of its host, and explain calls it unreachable",
    arguments: [TLSVersion.tls10, .tls11, .tls12, .tls13])
  func outdated(version: TLSVersion) async throws {
    let isReached = version >= .tls12
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try authority.issue(names: ["localhost"])
    let server = try LocalTLSServer(
      identity: identity, options: TLSServerOptions(minimum: .tls10, maximum: version)
    ) { _ in .text("hello") }
    defer { server.stop() }
    let ca = try directory.write(authority.root.pem, to: "ca.pem").path(percentEncoded: false)
    let list = try payload([
      Keys.entry("localhost", try SPKIPin(certificateDER: identity.leaf.der).base64),
      Keys.entry("localhost", CheckTests.pin("B")),
    ])
    let host = "localhost:\(server.port)"
    let checked = try await Tool.run(
      "check", list, "--host", host, "--ca", ca, "--format", "json")
    // Nobody answers at [::1].
    let told = ["unreachable \(host) "] + (isReached ? [] : ["outdated-tls \(host) "])
    #expect(try CheckTests.told(checked) == Set(told))
    #expect(checked.exitCode == (isReached ? 0 : 1))
    let explained = try await Tool.run("explain", host, "--policy", list, "--ca", ca)
    #expect(explained.exitCode == (isReached ? 0 : 1), "\(explained.stderr)")
    #expect(explained.stdout.contains("accepted") == isReached)
    #expect(explained.stderr.contains("none reaches it") == !isReached, "\(explained.stderr)")
  }

  @Test("import takes no key's place, and is strict with what it leaves behind")
  func imported() async throws {
    let pins = [CheckTests.pin("A"), "no pin"]
    let list = try directory.write(
      CheckTests.apple(CheckTests.domain("a.example", pins)), to: "Info.plist"
    ).path(percentEncoded: false)
    #expect(try await Tool.run("import", list).exitCode == 0)
    #expect(try await Tool.run("import", list, "--strict").exitCode == 1)
    let out = path("payload.json")
    for place in [path("prv.pem"), out] {
      let outcome = try await Tool.run("import", list, "--out", out, "--statement", place)
      #expect(outcome.exitCode == 2)
    }
    #expect(try String(contentsOf: directory.file("prv.pem"), encoding: .utf8).contains("PRIVATE"))
  }
}
