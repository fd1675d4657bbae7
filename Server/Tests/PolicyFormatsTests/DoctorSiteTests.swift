import SslPinningRules
import Testing

@testable import PolicyFormats

/// What stands beside pins in a file, and takes from them.
@Suite("what doctor finds beside pins")
struct DoctorSiteTests {
  private static func findings(_ path: String, _ text: String) throws -> [Finding] {
    let file = try #require(SourceFile(path: path, bytes: Array(text.utf8)))
    return Doctor(at: Sample.now, within: 0) { _ in false }.diagnose([file]).findings
      // Pins of one letter are told, too.
      .filter { $0.rule != .placeholder }
  }

  static let exceptions: [(domain: String, members: String, isTold: Bool)] = [
    ("e.example", "<key>NSExceptionAllowsInsecureHTTPLoads</key><true/>", true),
    ("e.example", "<key>NSTemporaryExceptionAllowsInsecureHTTPLoads</key><true/>", true),
    ("e.example", "<key>NSExceptionAllowsInsecureHTTPLoads</key><false/>", false),
    ("e.example", "<key>NSExceptionRequiresForwardSecrecy</key><false/>", false),
    ("other.example", "<key>NSExceptionAllowsInsecureHTTPLoads</key><true/>", false),
    ("a.e.example", "<key>NSExceptionAllowsInsecureHTTPLoads</key><true/>", true),
    ("b.a.e.example", "<key>NSExceptionAllowsInsecureHTTPLoads</key><true/>", false),
    ("example", "<key>NSExceptionAllowsInsecureHTTPLoads</key><true/>", false),
    (
      "example",
      "<key>NSIncludesSubdomains</key><true/><key>NSExceptionAllowsInsecureHTTPLoads</key><true/>",
      true
    ),
  ]

  @Test(
    "clear text to a pinned host is told, also if an exception permits it", arguments: exceptions)
  func clearText(row: (domain: String, members: String, isTold: Bool)) throws {
    let pins = "AB".map {
      "<dict><key>SPKI-SHA256-BASE64</key><string>\(Sample.pin($0).base64)</string></dict>"
    }
    let found = try Self.findings(
      "Info.plist",
      """
      <plist version="1.0"><dict><key>NSAppTransportSecurity</key><dict>
      <key>NSExceptionDomains</key><dict><key>\(row.domain)</key><dict>
      \(row.members)</dict></dict>
      <key>NSPinnedDomains</key><dict><key>e.example</key><dict>
      <key>NSIncludesSubdomains</key><true/>
      <key>NSPinnedCAIdentities</key><array>\(pins.joined())</array></dict></dict>
      </dict></dict></plist>
      """)
    #expect(
      found.map { "\($0.rule.rawValue) \($0.host)" }
        == (row.isTold ? ["clear-text \(row.domain)"] : []))
    #expect(found.allSatisfy { $0.site?.line == 3 })
  }

  @Test(
    "code exempts a host of TrustKit's by the constant",
    arguments: [
      ("kTSKExcludeSubdomainFromParentPolicy", false),
      ("\"kSKExcludeSubdomainFromParentPolicy\"", false),
      ("\"TSKExcludeSubdomainFromParentPolicy\"", true),
    ])
  func exemption(key: String, isTold: Bool) throws {
    let pins = "AB".map { "\"\(Sample.pin($0).base64)\"" }.joined(separator: ", ")
    let found = try Self.findings(
      "Pins.swift",
      """
      let configuration = [kTSKPinnedDomains: [
        "e.example": [kTSKIncludeSubdomains: true, kTSKPublicKeyHashes: [\(pins)]],
        "ads.e.example": [\(key): true],
      ]]
      """)
    #expect(found.contains { $0.host == "ads.e.example" } == isTold)
  }

  static let enforcements: [(code: String, isTold: Bool)] = [
    ("config.enforcement = .reportOnly", true), ("config.enforcement = .enforce", false),
    ("config.enforcement = SslPinningConfig.Enforcement.reportOnly", true),
    ("config.enforcement = isStaging ? .reportOnly : .enforce", true),
    ("config.enforcement = isStaging\n  ? .enforce\n  : .reportOnly", true),
    ("config.enforcement = if isStaging { .reportOnly } else { .enforce }", true),
    ("config.enforcement = .enforce\nlog(Enforcement.reportOnly)", false),
    ("config.enforcement = .enforce; log(Enforcement.reportOnly)", false),
    ("if config.enforcement == .reportOnly { log() }", false),
  ]

  @Test("a client that only reports is told, however that is written", arguments: enforcements)
  func reportOnly(row: (code: String, isTold: Bool)) throws {
    let found = try Self.findings(
      "Pins.swift",
      """
      var config = SslPinningConfig(endpointUrl: "https://pins.example/app.json", signingKeyBase64: key)
      \(row.code)
      """)
    #expect(found.map(\.rule) == (row.isTold ? [.reportOnly] : []))
  }

  @Test(
    "a leaf or a CA pin is enough in code, with the type of the case or without",
    arguments: [
      (".any", false), ("HostPins.Match.any", false), (".all", true), ("match.many", true),
    ])
  func match(value: String, isDemanded: Bool) throws {
    func texts(_ letters: String) -> String {
      "[" + letters.map { "\"sha256/\(Sample.pin($0).base64)\"" }.joined(separator: ", ") + "]"
    }
    let found = try Self.findings(
      "Pins.swift",
      """
      let pins = try FixedPins([
        "e.example": HostPins(leaf: \(texts("A")), ca: \(texts("B")), match: \(value))
      ])
      """)
    #expect(found.contains { $0.rule == .noBackup } == isDemanded)
  }

  static let choices: [(code: String, told: [String])] = [
    ("(endpointUrl: url, signingKeyBase64: key)", []),
    (
      "(endpointUrl: url, signingKeyBase64: key, trust: .pinnedKeysOnly, unlistedHosts: .systemTrust)",
      ["pinning-disabled 1", "not-pinned 1"]
    ),
    (
      "(endpointUrl: url, signingKeyBase64: key)\nconfig.trust = TrustMode.pinnedKeysOnly",
      ["pinning-disabled 2"]
    ),
    (
      "(endpointUrl: url, signingKeyBase64: key, trust: .system, unlistedHosts: .refuse)\nlog(.systemTrust)",
      []
    ),
  ]

  @Test(
    "what a client of a registry chooses to let in unpinned or unchecked is a note",
    arguments: choices)
  func choice(row: (code: String, told: [String])) throws {
    let found = try Self.findings("Pins.swift", "var config = SslPinningConfig\(row.code)")
    #expect(found.map { "\($0.rule.rawValue) \($0.site?.line ?? 0)" } == row.told)
    #expect(found.allSatisfy { $0.severity == .info })
  }

  @Test("what fixed pins choose to let in unpinned or unchecked is a note")
  func choiceOfFixedPins() throws {
    let hosts =
      "[\"e.example\": HostPins(ca: [\"sha256/\(Sample.pin("A").base64)\", \"sha256/\(Sample.pin("B").base64)\"])]"
    for (arguments, told) in [
      (", trust: .pinnedKeysOnly", [CheckRule.disabled]),
      (", unlistedHosts: .systemTrust", [.notPinned]), (", trust: .system", []),
    ] as [(String, [CheckRule])] {
      let chain = "pinning: .publicKey, hosts: [\"e.example\"]"
      for call in [
        "FixedPins(\(hosts)\(arguments))", "FixedPins(computed\(arguments))",
        "FixedPins.certificates(\(chain)\(arguments))",
        "FixedPins.certificates(made, pinning: mode\(arguments))",
        "FixedPins.infoPlist(bundle: .main\(arguments))",
      ] {
        let found = try Self.findings("Pins.swift", "let pins = try \(call)")
        #expect(found.map(\.rule) == told, "\(call)")
        #expect(found.allSatisfy { $0.severity == .info })
      }
    }
  }
}
