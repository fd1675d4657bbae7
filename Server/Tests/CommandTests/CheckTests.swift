import CanonicalJSON
import FaultLab
import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("check")
struct CheckTests {
  /// Pins that differ in their first letter.
  static func pin(_ letter: String) -> String { String(repeating: letter, count: 42) + "A=" }

  /// What a line of JSON says: `rule host policy`.
  static func told(_ outcome: ChildProcess.Outcome) throws -> Set<String> {
    Set(
      try #require(try outcome.json.arrayValue).compactMap(\.objectValue).map { finding in
        ["rule", "host", "policy"].compactMap { finding[$0]?.stringValue }.joined(separator: " ")
      })
  }

  static func apple(_ domains: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <plist version="1.0"><dict><key>NSAppTransportSecurity</key><dict><key>NSPinnedDomains</key><dict>
    \(domains)
    </dict></dict></dict></plist>
    """
  }

  static func domain(_ name: String, _ pins: [String], ca: [String] = [], _ more: String = "")
    -> String
  {
    func list(_ key: String, _ pins: [String]) -> String {
      pins.isEmpty
        ? ""
        : "<key>\(key)</key><array>"
          + pins.map { "<dict><key>SPKI-SHA256-BASE64</key><string>\($0)</string></dict>" }.joined()
          + "</array>"
    }
    return "<key>\(name)</key><dict>\(more)\(list("NSPinnedLeafIdentities", pins))"
      + "\(list("NSPinnedCAIdentities", ca))</dict>"
  }

  /// 2026-11-25.
  static let now: Int64 = 1_795_600_000

  /// Files, each with problems that were planted in it, and with hosts that have none.
  static let planted: [(name: String, text: String, problems: Set<String>)] = [
    (
      "Info.plist",
      apple(
        [
          domain("good.example", [pin("A"), pin("B")]),
          domain("single.example", [pin("A")]),
          domain("twice.example", [pin("A"), pin("A"), pin("B")]),
          domain("both.example", [pin("A"), pin("B")], ca: [pin("A"), pin("C")]),
          domain("typo.example", ["not a pin", pin("A"), pin("B")]),
          domain("empty.example", []) + "<!-- pins nothing -->",
          domain("*.wild.example", [pin("A"), pin("B")]),
          domain("co.uk", [pin("A"), pin("B")], "<key>NSIncludesSubdomains</key><true/>"),
          domain(
            "yes.example", [pin("A"), pin("B")],
            "<key>NSIncludesSubdomains</key><string>YES</string>"),
        ].joined()),
      [
        "no-backup-pin single.example", "duplicate-pin twice.example",
        "same-pin-leaf-and-ca both.example",
        "unreadable-entry ", "not-pinned ", "public-suffix *.co.uk",
      ]
    ),
    (
      "network_security_config.xml",
      """
      <network-security-config>
      <domain-config><domain includeSubdomains="true">good.example</domain><pin-set>
      <pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin></pin-set></domain-config>
      <domain-config><domain>soon.example</domain><pin-set expiration="2026-12-10">
      <pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin></pin-set></domain-config>
      <domain-config><domain>over.example</domain><pin-set expiration="2025-12-10">
      <pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin></pin-set></domain-config>
      <domain-config><domain>old.example</domain><pin-set>
      <pin digest="SHA-1">\(pin("A"))</pin><pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin>
      </pin-set></domain-config>
      <domain-config><domain>bad_host!.example</domain><pin-set>
      <pin digest="SHA-256">\(pin("A"))</pin></pin-set></domain-config>
      <domain-config><domain>dot.example.</domain><pin-set>
      <pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin></pin-set></domain-config>
      <domain-config><domain>void.example</domain><pin-set/></domain-config>
      <domain-config><domain>dup.example</domain><domain>Dup.example</domain><pin-set>
      <pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin></pin-set></domain-config>
      <domain-config><trust-anchors><certificates src="user" overridePins="true"/></trust-anchors>
      <domain>open.example</domain><pin-set>
      <pin digest="SHA-256">\(pin("A"))</pin><pin digest="SHA-256">\(pin("B"))</pin></pin-set>
      <domain-config><domain includeSubdomains="1">co.uk</domain></domain-config>
      <domain-config><trust-anchors><certificates src="system"/></trust-anchors>
      <domain>shut.example</domain></domain-config></domain-config>
      </network-security-config>
      """,
      [
        "pinning-ends soon.example", "pinning-ends over.example", "unreadable-entry old.example",
        "not-pinned bad_host!.example", "not-pinned dot.example.", "not-pinned void.example",
        "unreadable-entry dup.example", "not-pinned open.example", "not-pinned co.uk",
        "public-suffix **.co.uk", "other-cas open.example, **.co.uk",
      ]
    ),
    (
      "trustkit.plist",
      """
      <plist version="1.0"><dict><key>TSKPinnedDomains</key><dict>
      <key>good.example</key><dict><key>TSKPublicKeyHashes</key><array>
      <string>\(pin("A"))</string><string>\(pin("B"))</string></array></dict>
      <key>single.example</key><dict><key>TSKPublicKeyHashes</key><array>
      <string>\(pin("A"))</string></array></dict>
      <key>dot.example.</key><dict><key>TSKPublicKeyHashes</key><array>
      <string>\(pin("A"))</string><string>\(pin("B"))</string></array></dict>
      <key>none.example</key><dict><key>TSKIncludeSubdomains</key><true/></dict>
      <key>reports.example</key><dict><key>TSKEnforcePinning</key><false/><key>TSKPublicKeyHashes</key><array>
      <string>\(pin("A"))</string><string>\(pin("B"))</string></array></dict>
      <key>date.example</key><dict><key>TSKExpirationDate</key><string>next year</string>
      <key>TSKPublicKeyHashes</key><array><string>\(pin("A"))</string><string>\(pin("B"))</string></array></dict>
      </dict></dict></plist>
      """,
      [
        "no-backup-pin single.example", "unreadable-entry single.example",
        "unreadable-entry none.example", "not-pinned dot.example.",
        "no-usable-pin **.none.example", "unreadable-entry date.example",
        "report-only reports.example", "not-pinned ",
      ]
    ),
    (
      "payload.json",
      """
      {"keys": [
      {"domainName": "good.example", "key": "\(pin("A"))"}, {"domainName": "good.example", "key": "\(pin("B"))"},
      {"domainName": "api.wide.example", "key": "\(pin("A"))"}, {"domainName": "api.wide.example", "key": "\(pin("B"))"},
      {"domainName": "**.wide.example", "key": "\(pin("C"))"}, {"domainName": "**.wide.example", "key": "\(pin("D"))"},
      {"domainName": "ends.example", "key": "\(pin("A"))", "expire": \(now + 9 * 86_400)},
      {"domainName": "ends.example", "key": "\(pin("B"))"},
      {"domainName": "gone.example", "key": "\(pin("A"))", "expire": \(now - 9 * 86_400)},
      {"domainName": "again.example", "key": "\(pin("A"))"}, {"domainName": "again.example", "key": "\(pin("A"))"},
      {"domainName": "again.example", "key": "\(pin("B"))"},
      {"domainName": "*.github.io", "key": "\(pin("A"))"}, {"domainName": "*.github.io", "key": "\(pin("B"))"},
      {"domainName": "short.example", "key": "AAAA"}, {"domainName": "short.example", "key": "\(pin("A"))"},
      {"domainName": "short.example", "key": "\(pin("B"))"}]}
      """,
      [
        "widened-host api.wide.example", "pin-expires ends.example", "no-usable-pin gone.example",
        "pin-expires gone.example", "duplicate-pin again.example", "public-suffix *.github.io",
        "unreadable-entry ",
      ]
    ),
  ]

  @Test("finds what was planted in a list, and nothing else", arguments: planted.indices)
  func plantedProblems(index: Int) async throws {
    let (name, text, problems) = Self.planted[index]
    let directory = try TemporaryDirectory()
    let path = try directory.write(text, to: name).path(percentEncoded: false)
    let outcome = try await Tool.run(
      "check", path, "--offline", "--format", "json", "--at", "\(Self.now)")
    #expect(try Self.told(outcome) == Set(problems.map { "\($0) \(path)" }))
    #expect(outcome.exitCode == 1)
  }

  @Test("tells what lists beside each other differ in, and nothing of hosts that are alike")
  func drift() async throws {
    let directory = try TemporaryDirectory()
    let apple = try directory.write(
      Self.apple(
        Self.domain("same.example", [Self.pin("A"), Self.pin("B")])
          + Self.domain("drift.example", [Self.pin("A"), Self.pin("B")])
          + Self.domain("here.example", [Self.pin("A"), Self.pin("B")])), to: "Info.plist"
    ).path(percentEncoded: false)
    let android = try directory.write(
      """
      <network-security-config>
      <domain-config><domain>same.example</domain><pin-set>
      <pin digest="SHA-256">\(Self.pin("B"))</pin><pin digest="SHA-256">\(Self.pin("A"))</pin></pin-set></domain-config>
      <domain-config><domain>drift.example</domain><pin-set>
      <pin digest="SHA-256">\(Self.pin("A"))</pin><pin digest="SHA-256">\(Self.pin("C"))</pin></pin-set></domain-config>
      </network-security-config>
      """, to: "nsc.xml"
    ).path(percentEncoded: false)
    let outcome = try await Tool.run("check", apple, android, "--offline", "--format", "json")
    #expect(
      try Self.told(outcome) == [
        "drift drift.example \(android)", "missing-host here.example \(android)",
      ])
    #expect(outcome.exitCode == 0)
    let strict = try await Tool.run(
      "check", apple, android, "--offline", "--fail-on", "warning")
    #expect(strict.exitCode == 1)
    #expect(strict.stdout.contains("alone has \(Self.pin("C"))"))
  }

  /// A server with an RSA and an ECDSA key.
  struct TwoKeys {
    let process: ChildProcess
    let port: UInt16
    let ca: String
    let pins: [String: String]

    static func start(in directory: TemporaryDirectory, days: Int64) async throws -> TwoKeys {
      let authority = try CertificateAuthority.makeRoot(name: "Root")
      let now = Int64(Date().timeIntervalSince1970)
      let validity = Validity(notBefore: now - 3600, notAfter: now + days * 86_400)
      var arguments: [String] = []
      var pins: [String: String] = [:]
      for (kind, key, flags) in [
        ("RSA", try PrivateKey.generate(.rsa(bits: 2048)), ("-cert", "-key")),
        ("ECDSA", try PrivateKey.generate(.p256), ("-dcert", "-dkey")),
      ] {
        let identity = try authority.issue(names: ["localhost"], key: key, validity: validity)
        let files = try identity.write(to: directory.url, name: kind)
        arguments += [
          flags.0, files.certificates.path(percentEncoded: false), flags.1,
          files.key.path(percentEncoded: false),
        ]
        pins[kind] = try SPKIPin(certificateDER: identity.leaf.der).base64
      }
      let third = try authority.issue(names: ["localhost"], validity: validity)
      _ = try third.write(to: directory.url, name: "third")
      pins["third"] = try SPKIPin(certificateDER: third.leaf.der).base64
      let port = try freePort()
      let process = try ChildProcess(
        "openssl", ["s_server", "-accept", "127.0.0.1:\(port)", "-www", "-quiet"] + arguments)
      let ca = try directory.write(authority.root.pem, to: "ca.pem").path(percentEncoded: false)
      return TwoKeys(process: process, port: port, ca: ca, pins: pins)
    }
  }

  @Test("asks a server for each kind of key, and says what each list makes of them")
  func live() async throws {
    let directory = try TemporaryDirectory()
    let server = try await TwoKeys.start(in: directory, days: 10)
    defer { server.process.send(SIGTERM) }
    let rsa = try #require(server.pins["RSA"])
    let ecdsa = try #require(server.pins["ECDSA"])
    func rules(_ pins: [String], _ more: String...) async throws -> (Set<String>, Int32) {
      let path = try directory.write(Self.apple(Self.domain("localhost", pins)), to: "Info.plist")
        .path(percentEncoded: false)
      let outcome = try await Tool.run(
        [
          "check", path, "--host", "localhost:\(server.port)", "--ca", server.ca, "--format",
          "json",
        ] + more)
      var told = Set(
        try Self.told(outcome).compactMap { $0.split(separator: " ").first.map(String.init) })
      // Nobody answers at [::1].
      #expect(told.remove("unreachable") != nil)
      return (told, outcome.exitCode)
    }
    // It may not listen yet.
    for _ in 0..<50 where try await rules([rsa]).1 == 3 {}
    #expect(try await rules([rsa, ecdsa]) == ([], 0))
    #expect(try await rules([rsa, Self.pin("B")]) == (["one-key-of-two"], 1))
    #expect(try await rules([Self.pin("A"), Self.pin("B")]) == (["refused"], 1))
    // Another time than the certificate's.
    let (late, code) = try await rules([rsa, ecdsa], "--at", "2000000000")
    #expect(late == ["untrusted-chain"])
    #expect(code == 1)
    // The next key: one that is listed, one that is not.
    let other = try PrivateKey.generate(.p256)
    let key = try directory.write(other.publicKeyPEM, to: "next.pem").path(percentEncoded: false)
    #expect(try await rules([rsa, ecdsa], "--backup", key) == (["backup-refused"], 1))
    let told = try await Tool.run("pin", key)
    let pin = try #require(told.stdout.split(separator: " ").first.map(String.init))
    #expect(try await rules([rsa, ecdsa, pin], "--backup", key) == ([], 0))
  }

  @Test("asks each address of a server, and export pins the keys of all, of each kind")
  func addresses() async throws {
    let directory = try TemporaryDirectory()
    let two = try await TwoKeys.start(in: directory, days: 90)
    defer { two.process.send(SIGTERM) }
    // The same name and port, at the other address, with one of the keys.
    let other = try ChildProcess(
      "openssl",
      [
        "s_server", "-accept", "[::1]:\(two.port)", "-www", "-quiet", "-cert",
        directory.path("third.pem"), "-key", directory.path("third.key"),
      ])
    defer { other.send(SIGTERM) }
    let place = "localhost:\(two.port)"
    for _ in 0..<50 {
      let seen = try await Tool.run("pin", "--all", place, "--ca", two.ca)
      if seen.exitCode == 0, seen.stdout.split(separator: "\n").count == 3 { break }
    }
    let (rsa, ecdsa) = (try #require(two.pins["RSA"]), try #require(two.pins["ECDSA"]))
    let third = try #require(two.pins["third"])
    for (pins, code) in [([rsa, ecdsa], 1), ([rsa, ecdsa, third], 0)] {
      let list = try directory.write(
        Self.apple(Self.domain("localhost", pins)), to: "Info.plist"
      ).path(percentEncoded: false)
      let checked = try await Tool.run("check", list, "--host", place, "--ca", two.ca)
      #expect(checked.exitCode == Int32(code), "\(checked.stdout)")
      #expect(checked.stdout.contains("ECDSA key at [::1]:\(two.port), \(third)") == (code == 1))
    }
    let written = try await Tool.run("export", "--to", "curl", "--host", place, "--ca", two.ca)
    #expect(written.exitCode == 0, "\(written.stderr)")
    for pin in [rsa, ecdsa, third] { #expect(written.stdout.contains(pin)) }
  }

  @Test("says which roots a trust store lacks")
  func roots() async throws {
    let directory = try TemporaryDirectory()
    let old = try CertificateAuthority.makeRoot(name: "Old")
    let new = try CertificateAuthority.makeRoot(name: "New")
    let store = try directory.write(old.root.pem, to: "store.pem").path(percentEncoded: false)
    let both = try directory.write(old.root.pem + new.root.pem, to: "both.pem")
      .path(percentEncoded: false)
    let missing = try await Tool.run("check", "--trust-store", store, "--require-root", both)
    #expect(missing.exitCode == 1)
    #expect(missing.stdout.contains("CN=New") && !missing.stdout.contains("CN=Old"))
    let held = try await Tool.run("check", "--trust-store", both, "--require-root", both)
    #expect(held.exitCode == 0)
    #expect(held.stdout == "nothing found\n")
  }

  @Test("a root's key is no anchor where its certificate has ended, or another root signed it")
  func rootsOfNoUse() async throws {
    let directory = try TemporaryDirectory()
    let key = try PrivateKey.generate(.p256)
    let now = Int64(Date().timeIntervalSince1970)
    let new = try CertificateAuthority.makeRoot(name: "New", key: key)
    let ended = try CertificateAuthority.makeRoot(
      name: "New", key: key, validity: Validity(notBefore: now - 9000, notAfter: now - 60))
    let old = try CertificateAuthority.makeRoot(name: "Old")
    let cross = try old.issueIntermediate(name: "New", key: key)
    let root = try directory.write(new.root.pem, to: "root.pem").path(percentEncoded: false)
    for (name, store, code) in [
      ("ended", ended.root.pem, 1), ("cross", cross.certificate.pem + old.root.pem, 1),
      ("key", try key.publicKeyPEM, 1), ("both", cross.certificate.pem + new.root.pem, 0),
    ] {
      let path = try directory.write(store, to: name).path(percentEncoded: false)
      for wanted in [root, try SPKIPin(certificateDER: new.root.der).base64] {
        let outcome = try await Tool.run("check", "--trust-store", path, "--require-root", wanted)
        #expect(outcome.exitCode == Int32(code), "\(name): \(outcome.stdout)")
      }
    }
    // Who names an intermediate means that certificate.
    let path = try directory.write(cross.certificate.pem, to: "cross.pem")
      .path(percentEncoded: false)
    let named = try await Tool.run("check", "--trust-store", path, "--require-root", path)
    #expect(named.exitCode == 0, "\(named.stdout)")
  }

  @Test("takes the system's own trust store, and a root by its pin")
  func systemRoots() async throws {
    let held = try await Tool.run("pin", "/etc/ssl/certs/ca-certificates.crt")
    let pin = try #require(held.stdout.split(separator: " ").first.map(String.init))
    func rules(_ root: String) async throws -> (Set<String>, Int32) {
      let outcome = try await Tool.run(
        "check", "--trust-store", "system", "--require-root", root, "--format", "json")
      return (try Self.told(outcome), outcome.exitCode)
    }
    #expect(try await rules(pin) == ([], 0))
    #expect(try await rules(Self.pin("A")) == (["missing-root \(Self.pin("A")) system"], 1))
  }

  @Test("judges a chain in a file as what a server shows")
  func chainInFile() async throws {
    let stage = try ExplainTests.Stage()
    func rules(_ pins: [String], day: Int64, _ more: String...) async throws -> Set<String> {
      try stage.directory.write(
        Self.apple(Self.domain("api.example.com", pins)), to: "list")
      let outcome = try await stage.run(
        [
          "check", "list", "--host", "api.example.com", "--chain", "chain.pem", "--ca", "ca.pem",
          "--at", "\(ExplainTests.Stage.begin + day * ExplainTests.Stage.day)", "--format", "json",
        ] + more)
      return Set(
        try Self.told(outcome).compactMap { $0.split(separator: " ").first.map(String.init) })
    }
    #expect(try await rules([stage.leaf, Self.pin("A")], day: 10).isEmpty)
    #expect(try await rules([Self.pin("A"), Self.pin("B")], day: 10) == ["refused"])
    #expect(try await rules([stage.leaf], day: 80) == ["leaf-expires", "no-backup-pin"])
    #expect(try await rules([stage.leaf], day: 80, "--within", "7d") == ["no-backup-pin"])
    #expect(try await rules([stage.leaf, Self.pin("A")], day: 200) == ["untrusted-chain"])
  }

  @Test("asks for all kinds of key at the same time")
  func atOnce() async throws {
    let port = try freePort()
    // Whoever asks for one kind after the other waits here for an answer to the first.
    let server = try ChildProcess(
      "python3",
      [
        "-c",
        """
        import socket, sys
        listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        print("listens", flush=True)
        asked = [listener.accept() for _ in range(3)]
        print("all are there", flush=True)
        """, "\(port)",
      ])
    try await server.waitForOutput(containing: "listens")
    let outcome = try await Tool.run("check", "--host", "127.0.0.1:\(port)", "--timeout", "20")
    #expect(outcome.exitCode == 3)
    #expect(!outcome.stdout.contains("timed out"), "\(outcome.stdout)")
    try await server.waitForOutput(containing: "all are there")
  }

  @Test("tells of mirrors that serve another statement than the registry, and of silent ones")
  func mirrors() async throws {
    let stage = try Format2Stage()
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    try stage.directory.write(authority.root.pem, to: "ca.pem")
    let served = Locked<[String: [UInt8]]>([:])
    let server = try LocalTLSServer(identity: authority.issue(names: ["localhost"])) { request in
      served.withLock { $0[request.target] }.map { HTTPResponse(body: $0) }
        ?? HTTPResponse(status: 404)
    }
    defer { server.stop() }
    let base = "https://localhost:\(server.port)"
    func document() throws -> [UInt8] {
      [UInt8](try Data(contentsOf: stage.directory.file("app.json")))
    }
    func told(_ flags: String = "") async throws -> [String] {
      let outcome = try await stage.run(
        "check --registry \(base)/app.json --key pub.pem --at \(Format2Stage.issued + 5) --ca ca.pem"
          + " --format json \(flags)")
      let findings = try #require(try outcome.json.arrayValue).compactMap(\.objectValue)
      return findings.filter { $0["rule"] == .string("mirror-differs") }
        .compactMap { $0["message"]?.stringValue }
    }
    try await stage.makeDocument(
      "--mirror \(base)/older/app.json --mirror \(base)/none/app.json")
    let older = try document()
    try await stage.must(
      "sign --key prv.pem --online-key online0.pem --issued \(Format2Stage.issued + 1) app.json --out app.json"
    )
    let newest = try document()
    served.withLock { $0 = ["/app.json": newest, "/older/app.json": older] }
    let found = try await told()
    #expect(found.count == 2)
    #expect(found.contains { $0.contains("/older/app.json has statement 1.1, and ") }, "\(found)")
    #expect(found.contains { $0.contains("/none/app.json: ") }, "\(found)")
    #expect(try await told("--offline").isEmpty)
    served.withLock {
      $0["/older/app.json"] = newest
      $0["/none/app.json"] = newest
    }
    #expect(try await told().isEmpty)
  }

  @Test("a server that is away is exit code 3, and a wrong command line 2")
  func trouble() async throws {
    let gone = try ClosedPort()
    let away = try await Tool.run("check", "--host", "localhost:\(gone.port)", "--timeout", "2")
    #expect(away.exitCode == 3)
    #expect(away.stdout.contains("unreachable"))
    for words in [
      ["check"], ["check", "--require-root", Self.pin("A")],
      ["check", "--host", "a", "--host", "b", "--backup", "x"],
      ["check", "--format", "xml", "--host", "a"], ["export", "--to", "registry", "x"],
    ] {
      #expect(try await Tool.run(words).exitCode == 2)
    }
  }

  @Test("reports are read by their readers", arguments: ["junit", "sarif", "github", "text"])
  func reports(form: String) async throws {
    let directory = try TemporaryDirectory()
    let path = try directory.write(Self.planted[0].text, to: "a & <b>.plist")
      .path(percentEncoded: false)
    let outcome = try await Tool.run(
      "check", path, "--offline", "--format", form, "--at", "\(Self.now)")
    #expect(outcome.exitCode == 1)
    switch form {
    case "junit":
      let parsed = try await ChildProcess.run(
        "python3",
        [
          "-c",
          "import sys, xml.etree.ElementTree as e; r = e.parse(sys.stdin).getroot();"
            + " print(r.get('failures'), len(r.findall('testcase')), len(r.findall('testcase/failure')))",
        ], input: Array(outcome.stdout.utf8))
      #expect(parsed.stdout == "6 \(CheckRule.allCases.count) 6\n")
    case "sarif":
      let run = try #require(try outcome.json.objectValue?["runs"]?.arrayValue?.first?.objectValue)
      #expect(run["results"]?.arrayValue?.count == 8)
      #expect(try outcome.json.objectValue?["version"] == .string("2.1.0"))
    case "github":
      #expect(
        outcome.stdout.split(separator: "\n").allSatisfy {
          $0.hasPrefix("::error") || $0.hasPrefix("::warning")
        })
    default:
      #expect(outcome.stdout.contains("[no-backup-pin]"))
    }
  }
}
