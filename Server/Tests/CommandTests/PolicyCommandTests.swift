import CanonicalJSON
import FaultLab
import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import ssl_pinning

@Suite("export and import")
struct PolicyCommandTests {
  @Test("a live server's key goes into an Info.plist, which then pins it")
  func live() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try authority.issue(names: ["localhost"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    let ca = try directory.write(authority.root.pem, to: "ca.pem").path(percentEncoded: false)
    let plist = try directory.write(
      "<plist version=\"1.0\"><dict><key>A</key><true/></dict></plist>", to: "Info.plist"
    ).path(percentEncoded: false)
    let host = "localhost:\(server.port)"
    let outcome = try await Tool.run(
      "export", "--to", "nspinneddomains", "--host", host, "--ca", ca, "--into", plist, "--out",
      plist,
      "--strict")
    // Nobody answers at its other address. The file is written all the same.
    #expect(outcome.exitCode == 1)
    #expect(outcome.stderr.contains("\(host): [::1]:\(server.port) is passed over"))
    let check = try await Tool.run("check", plist, "--host", host, "--ca", ca, "--format", "json")
    #expect(
      try CheckTests.told(check) == ["no-backup-pin localhost \(plist)", "unreachable \(host) "])
    #expect(check.exitCode == 0)
    // Without the CA its key may be anybody's.
    let untrusted = try await Tool.run("export", "--to", "android", "--host", host)
    #expect(untrusted.exitCode == 1)
    #expect(untrusted.stdout.isEmpty)
  }

  @Test("addresses that are silent, or beyond the sixteen that are asked, are told")
  func passedOver() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let server = try LocalTLSServer(identity: try authority.issue(names: ["localhost"])) { _ in
      .text("hello")
    }
    defer { server.stop() }
    let silent = (1...16).map { Endpoint(address: "127.0.1.\($0)", port: server.port) }
    let target = try ProbeTarget(
      host: "localhost", port: server.port, connectTo: [.loopback(server.port)] + silent)
    let anchors = try ChainValidator(anchors: [authority.root])
    let seen = try #require(
      await EndpointEyes(trusting: anchors, seconds: 10).see(target))
    #expect(try seen.keys.get().count == 1)
    #expect(seen.unseen.count == 16)
    #expect(seen.unseen.first?.hasPrefix("127.0.1.10:\(server.port) is passed over: ") == true)
    #expect(seen.unseen.last?.hasPrefix("1 of its addresses passed over") == true)
    let pins = try await AddressReport(of: target, trusting: anchors, 10_000)
    #expect(pins.warnings.contains { $0.contains("1 of its addresses passed over") })
  }

  @Test("curl connects by the options that are written for it, and refuses another key")
  func curl() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try authority.issue(names: ["localhost"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    try directory.write(authority.root.pem, to: "ca.pem")
    let pin = try SPKIPin(certificateDER: identity.leaf.der).base64
    for (pins, code) in [
      ([pin, CheckTests.pin("A")], Int32(0)), ([CheckTests.pin("A"), CheckTests.pin("B")], 90),
    ] {
      try directory.write(CheckTests.apple(CheckTests.domain("localhost", pins)), to: "Info.plist")
      let written = try await Tool.run(
        "export", "--to", "curl", directory.path("Info.plist"), "--strict", "--out",
        directory.path("curlrc"))
      #expect(written.exitCode == 0, "\(written.stderr)")
      let got = try await ChildProcess.run(
        "curl",
        [
          "--config", directory.path("curlrc"), "--cacert", directory.path("ca.pem"), "--silent",
          "https://localhost:\(server.port)/",
        ], environment: Tool.noProxies)
      // 90: the key does not match.
      #expect(got.exitCode == code, "\(got.stderr)")
      #expect(got.stdout == (code == 0 ? "hello" : ""))
    }
  }

  @Test("curl lets in no host with the key of another, whichever of them the list has")
  func curlOfSeveralHosts() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try authority.issue(names: ["localhost", "a.localhost"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    try directory.write(authority.root.pem, to: "ca.pem")
    func exitCode(of host: String) async throws -> Int32 {
      try await ChildProcess.run(
        "curl",
        [
          "--config", directory.path("curlrc"), "--cacert", directory.path("ca.pem"), "--silent",
          "--resolve", "\(host):\(server.port):127.0.0.1", "https://\(host):\(server.port)/",
        ], environment: Tool.noProxies
      ).exitCode
    }
    let shown = try SPKIPin(certificateDER: identity.leaf.der).base64
    let other = CheckTests.pin("A")
    // Both show the key of one of them, whichever stands last.
    for (own, foreign) in [("localhost", "a.localhost"), ("a.localhost", "localhost")] {
      try directory.write(
        CheckTests.apple(CheckTests.domain(own, [shown]) + CheckTests.domain(foreign, [other])),
        to: "Info.plist")
      let written = try await Tool.run(
        "export", "--to", "curl", directory.path("Info.plist"), "--strict", "--out",
        directory.path("curlrc"))
      #expect(written.exitCode == 1)
      for host in [own, foreign] {
        #expect(written.stderr.contains("\(host): has other pins"), "\(written.stderr)")
        #expect(try await exitCode(of: host) == 90)
      }
      let text = try String(contentsOf: directory.file("curlrc"), encoding: .utf8)
      try directory.write(
        text.replacing("\n# \(own)\n#", with: "\n# \(own)\n"), to: "curlrc")
      #expect(try await exitCode(of: own) == 0)
    }
  }

  @Test("a list with which TrustKit would end the app is not written")
  func trustKitEndsApp() async throws {
    let directory = try TemporaryDirectory()
    func export(_ host: String) async throws -> ChildProcess.Outcome {
      let keys = ["A", "B"].map {
        "{\"domainName\": \"\(host)\", \"key\": \"\(CheckTests.pin($0))\"}"
      }
      try directory.write("{\"keys\": [\(keys.joined(separator: ","))]}", to: "payload.json")
      return try await Tool.run(
        "export", "--to", "trustkit", directory.path("payload.json"), "--strict")
    }
    let unknown = try await export("api.corp.internal")
    #expect(unknown.exitCode == 1 && unknown.stdout.isEmpty)
    #expect(unknown.stderr.contains("under no public suffix"), "\(unknown.stderr)")
    #expect(try await export("www.example.com").exitCode == 0)
  }

  @Test(
    "a file that would pin nothing is not written",
    arguments: ["android", "okhttp", "nspinneddomains"])
  func pinsNothing(format: String) async throws {
    let directory = try TemporaryDirectory()
    for (expires, code) in [(1_600_000_000, 1), (nil, 0)] as [(Int32?, Int32)] {
      let keys = ["A", "B"].map {
        Keys.entry("a.example", CheckTests.pin($0), expires: expires)
      }
      let list = try directory.write(
        JSONValue.object(["keys": .array(keys)]).canonicalBytes, to: "payload.json"
      ).path(percentEncoded: false)
      let out = directory.path("\(code)")
      let outcome = try await Tool.run("export", "--to", format, list, "--out", out)
      #expect(outcome.exitCode == code, "\(outcome.stderr)")
      #expect(outcome.stderr.contains("a.example: 2 pins are denied, or over") == (code == 1))
      #expect(FileManager.default.fileExists(atPath: out) == (code == 0))
    }
  }

  @Test("of a file that is not replaced nothing is told as lost")
  func kept() async throws {
    let directory = try TemporaryDirectory()
    let old = "<network-security-config><base-config/></network-security-config>"
    for (expires, isReplaced) in [(1_600_000_000, false), (nil, true)] as [(Int32?, Bool)] {
      try directory.write(old, to: "nsc.xml")
      let key = Keys.entry("a.example", CheckTests.pin("A"), expires: expires)
      try directory.write(
        JSONValue.object(["keys": .array([key])]).canonicalBytes, to: "payload.json")
      let outcome = try await Tool.run(
        "export", "--to", "android", directory.path("payload.json"), "--out",
        directory.path("nsc.xml"))
      #expect(outcome.exitCode == (isReplaced ? 0 : 1), "\(outcome.stderr)")
      #expect(outcome.stderr.contains("replaced: base-config") == isReplaced)
      let text = try String(contentsOf: directory.file("nsc.xml"), encoding: .utf8)
      #expect((text == old) == !isReplaced)
    }
  }

  @Test("what Android pins becomes a signed registry that pins the same")
  func signed() async throws {
    let directory = try TemporaryDirectory()
    let key = try Keys.signing.get()
    func path(_ name: String) -> String {
      directory.url.appending(path: name).path(percentEncoded: false)
    }
    try key.write(to: directory.file("prv.pem"))
    _ = try directory.write(
      """
      <network-security-config><domain-config><domain includeSubdomains="true">a.example</domain><pin-set>
      <pin digest="SHA-256">\(CheckTests.pin("A"))</pin><pin digest="SHA-256">\(CheckTests.pin("B"))</pin>
      </pin-set></domain-config></network-security-config>
      """, to: "nsc.xml")
    let alone = try await Tool.run("import", path("nsc.xml"), "--out", path("payload.json"))
    #expect(alone.exitCode == 2)
    let made = try await Tool.run(
      "import", path("nsc.xml"), "--out", path("payload.json"), "--statement",
      path("statement.json"))
    #expect(made.exitCode == 0)
    let signed = try await Tool.run(
      "sign", "--first", "--key", path("prv.pem"), "--online-key", path("prv.pem"),
      "--registry-name", "app.json",
      "--statement", path("statement.json"), path("payload.json"), "--out", path("app.json"))
    #expect(signed.exitCode == 0)
    let back = try await Tool.run(
      "export", "--to", "android", "--registry", path("app.json"), "--key",
      StrictBase64.encode(key.publicKeyDER))
    #expect(back.exitCode == 0)
    let read = try PinPolicy(reading: Array(back.stdout.utf8))
    let entry = try #require(read.entry(for: try HostName("x.y.a.example")))
    #expect(entry.leaf.pins.map(\.spki.base64) == [CheckTests.pin("A"), CheckTests.pin("B")])
    // A signed document is no list to be believed unseen.
    let unseen = try await Tool.run("export", "--to", "android", path("app.json"))
    #expect(unseen.exitCode == 1)
    #expect(unseen.stderr.contains("--registry"))
  }

  @Test(
    "no server is judged by the system's CAs if the list does not trust these, and no export drops that in silence"
  )
  func anchors() async throws {
    let stage = try ExplainTests.Stage()
    func write(_ anchors: String) throws {
      try stage.directory.write(
        stage.android(
          """
          <base-config/><domain-config><domain>api.example.com</domain>\(anchors)<pin-set>
          <pin digest="SHA-256">\(stage.leaf)</pin><pin digest="SHA-256">\(CheckTests.pin("A"))</pin>
          </pin-set></domain-config>
          """), to: "list")
    }
    let own = "<trust-anchors><certificates src=\"@raw/ca\"/></trust-anchors>"
    let list = stage.directory.path("list")
    let shown = [
      "api.example.com", "--chain", "chain.pem", "--at",
      "\(ExplainTests.Stage.begin + 10 * ExplainTests.Stage.day)",
    ]
    let check = ["check", "list", "--format", "json", "--host"] + shown
    let explain = ["explain", "--policy", "list"] + shown
    try write(own)
    let unjudged = try await stage.run(explain)
    #expect(unjudged.exitCode == 3)
    #expect(unjudged.stdout.isEmpty && unjudged.stderr.contains("hint: --ca FILE"))
    let judged = try await stage.run(explain + ["--ca", "ca.pem"])
    #expect(judged.exitCode == 0, "\(judged.stderr)")
    #expect(judged.stdout.contains("clients trust the CAs of @raw/ca, and not the system's"))
    let unchecked = try CheckTests.told(try await stage.run(check))
    #expect(
      unchecked == ["untrusted-chain api.example.com:443 ", "other-cas api.example.com \(list)"])
    let checked = try await stage.run(check + ["--ca", "ca.pem"])
    #expect(try CheckTests.told(checked) == ["other-cas api.example.com \(list)"])
    #expect(checked.exitCode == 0)
    #expect(!judged.stdout.contains("--ca"))
    // Whoever trusts no CA refuses every server, whatever this machine trusts.
    try write("<trust-anchors/>")
    for authorities in [[], ["--ca", "ca.pem"]] {
      let refused = try await stage.run(explain + authorities)
      #expect(refused.exitCode == 1)
      #expect(refused.stderr.contains("clients trust no CA, and refuse every server"))
    }
    #expect(try await stage.run(check + ["--ca", "ca.pem"]).exitCode == 1)
    // The system's CAs may judge it, and do not know the CA.
    try write("<trust-anchors><certificates src=\"system\"/></trust-anchors>")
    #expect(try await stage.run(explain).exitCode == 1)
    try write(own)
    let imported = try await stage.run(
      ["import", "list", "--strict", "--statement", stage.directory.path("statement.json")])
    #expect(imported.exitCode == 1)
    #expect(imported.stderr.contains("api.example.com: clients trust the CAs of @raw/ca"))
    // Without the CAs that users add a list is stricter: that is told, and no loss.
    let users = "<certificates src=\"system\"/><certificates src=\"user\"/>"
    try write("<trust-anchors>\(users)</trust-anchors>")
    for command in [
      ["import", "--statement", stage.directory.path("s.json")], ["export", "--to", "okhttp"],
    ] {
      let outcome = try await stage.run(command + ["list", "--strict"])
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(
        outcome.stderr.contains("clients trust the CAs of user, beside the system's: left out"))
    }
    try write(own)
    let inPlace = [
      "export", "--to", "android", "--roles", "leaf", "--strict", "list", "--out", "list",
    ]
    let exported = try await stage.run(inPlace)
    #expect(exported.exitCode == 1)
    for text in ["the CAs of @raw/ca", "replaced: base-config", "replaced: trust-anchors"] {
      #expect(exported.stderr.contains(text), "\(exported.stderr)")
    }
    // What it wrote says no more than pins.
    let again = try await stage.run(inPlace)
    #expect(again.exitCode == 0, "\(again.stderr)")
  }
}
