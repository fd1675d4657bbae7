import SslPinningRules
import Testing

@testable import PolicyFormats

/// What looks like pinning and is none: on the way in, and on the way out.
@Suite("lists that pin nothing")
struct PinlessListTests {
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// A list of Apple's or of TrustKit's, by the key of its domains.
    let list: String
    let domains: [String: PropertyListValue]
    /// `rule severity host` of each finding.
    let told: [String]

    init(_ name: String, _ list: String, _ domains: [String: PropertyListValue], _ told: String...)
    {
      (testDescription, self.list, self.domains, self.told) = (name, list, domains, told)
    }
  }

  /// Two pins, as TrustKit lists them.
  static let pins: [String: PropertyListValue] = [
    "TSKPublicKeyHashes": .array("AB".map { .string(Sample.pin($0).base64) })
  ]
  static let exemption: [String: PropertyListValue] = [
    "kSKExcludeSubdomainFromParentPolicy": .boolean(true)
  ]
  static let wide = pins.merging(["TSKIncludeSubdomains": .boolean(true)]) { one, _ in one }

  static func both(_ more: [String: PropertyListValue]) -> PropertyListValue {
    .dictionary(pins.merging(more) { one, _ in one })
  }

  static let rows: [Row] = [
    Row("Apple's without a domain", "NSPinnedDomains", [:], "not-pinned error "),
    Row(
      "Apple's with a domain without a list", "NSPinnedDomains", ["a.example": .dictionary([:])],
      "not-pinned error ", "not-pinned error "),
    Row(
      "Apple's with a pinned domain", "NSPinnedDomains",
      [
        "A.example": .dictionary([
          "NSPinnedCAIdentities": .array(
            "AB".map { .dictionary(["SPKI-SHA256-BASE64": .string(Sample.pin($0).base64)]) })
        ])
      ]),
    Row("TrustKit's without a domain", "TSKPinnedDomains", [:], "unreadable-entry error "),
    Row(
      "TrustKit's with capitals", "TSKPinnedDomains", ["API.Example.com": .dictionary(pins)],
      "not-pinned error API.Example.com"),
    Row(
      "TrustKit's with small letters", "TSKPinnedDomains", ["api.example.com": .dictionary(pins)]),
    Row(
      "an exemption of TrustKit's", "TSKPinnedDomains",
      ["e.example": .dictionary(wide), "ads.e.example": .dictionary(exemption)]),
    Row(
      "an exemption two labels below", "TSKPinnedDomains",
      ["e.example": .dictionary(wide), "x.ads.e.example": .dictionary(exemption)]),
    Row(
      "an exemption from an entry without subdomains", "TSKPinnedDomains",
      ["e.example": .dictionary(pins), "ads.e.example": .dictionary(exemption)],
      "unreadable-entry error ads.e.example"),
    Row(
      "an exemption from nothing", "TSKPinnedDomains",
      ["e.example": .dictionary(wide), "ads.x.example": .dictionary(exemption)],
      "unreadable-entry error ads.x.example"),
    Row(
      "an exemption beside pins", "TSKPinnedDomains",
      ["e.example": .dictionary(wide), "ads.e.example": both(exemption)],
      "unreadable-entry error ads.e.example"),
    Row(
      "an exemption as its constant is called in code", "TSKPinnedDomains",
      [
        "e.example": .dictionary(wide),
        "ads.e.example": both(["kTSKExcludeSubdomainFromParentPolicy": .boolean(true)]),
      ], "unreadable-entry warning ads.e.example"),
    Row(
      "an exemption that TrustKit does not read", "TSKPinnedDomains",
      [
        "e.example": .dictionary(wide),
        "ads.e.example": both(["TSKExcludeSubdomainFromParentPolicy": .boolean(true)]),
      ], "unreadable-entry warning ads.e.example"),
  ]

  @Test("are told, and those that pin are not", arguments: rows)
  func read(row: Row) throws {
    var members: [String: PropertyListValue] = [row.list: .dictionary(row.domains)]
    if row.list == "TSKPinnedDomains" {
      members["TSKIgnorePinningForUserDefinedTrustAnchors"] = .boolean(false)
    }
    let policy = try PinPolicy(reading: Array(PropertyListText.document(members).utf8))
    let found = PolicyCheck(at: Sample.now, within: 0) { _ in false }
      .findings([CheckedPolicy(name: "list", policy: policy)])
    #expect(found.map { "\($0.rule.rawValue) \($0.severity.rawValue) \($0.host)" } == row.told)
  }

  @Test(
    "a host is exempt in TrustKit by the key that TrustKit reads alone, or its constant in code",
    arguments: [("kSK", true, true), ("kTSK", false, true), ("TSK", false, false)])
  func exemptions(prefix: String, inFile: Bool, inCode: Bool) throws {
    let members: [String: PropertyListValue] = [
      "TSKPinnedDomains": .dictionary([
        "a.example": Self.both(["\(prefix)ExcludeSubdomainFromParentPolicy": .boolean(true)])
      ])
    ]
    let file = try PinPolicy(reading: Array(PropertyListText.document(members).utf8))
    let code = try TrustKitReader.policy(of: members, isCode: true)
    for (policy, isExempt) in [(file, inFile), (code, inCode)] {
      #expect((policy.entry(for: try HostName("a.example")) == nil) == isExempt)
      #expect(policy.remarks.contains { $0.text.contains("is not read; hint: kSK") } == !isExempt)
    }
  }

  @Test(
    "a file says that it pins nothing if no host is left, unless it has every server refused",
    arguments: PolicyFormat.writable)
  func written(format: PolicyFormat) throws {
    func written(_ lines: [String]) throws -> PolicyExport {
      let policy = PinPolicy(
        format: .registry, rules: try lines.flatMap { try Sample.policy($0).rules },
        overlap: .united, denied: [Sample.pin("C"), Sample.pin("D")])
      return try #require(policy.written(as: format, at: Sample.now))
    }
    #expect(try written([]).pinsNothing)
    #expect(try written(["dead.example CD"]).pinsNothing == (format != .curl))
    #expect(try !written(["e.example AB"]).pinsNothing)
    let beside = try written(["dead.example CD", "e.example AB"])
    #expect(!beside.pinsNothing)
    #expect(!beside.text.contains("dead.example"))
    #expect(beside.losses.contains { $0.host == "dead.example" && $0.text.contains("left out") })
  }

  @Test("Apple's systems get no empty list for the CA pins of a host whose leaf pins are enough")
  func eitherRole() throws {
    let policy = PinPolicy(
      format: .registry, rules: try Sample.policy("e.example AB CD any").rules, overlap: .united,
      denied: [Sample.pin("C"), Sample.pin("D")])
    let text = try #require(policy.written(as: .nsPinnedDomains, at: Sample.now)).text
    #expect(
      try PolicyFormatTests.demands(PinPolicy(reading: Array(text.utf8)), "e.example") == "AB/ all")
    #expect(!text.contains("NSPinnedCAIdentities"))
  }
}
