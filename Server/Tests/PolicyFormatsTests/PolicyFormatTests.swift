import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import PolicyFormats

/// Pins that are told apart by their first letter.
enum Sample {
  /// 2026-11-25.
  static let now: Int64 = 1_795_600_000

  static func pin(_ letter: Character) -> SPKIPin {
    let text = String(repeating: letter, count: 42) + "A="
    // Forty-three digits and one `=`: the last digit carries two zero bits.
    return (try? SPKIPin(base64: text)) ?? SPKIPin(computed: [UInt8](repeating: 0, count: 32))
  }

  static func pins(_ letters: String) -> PinSet { PinSet(letters.map { Pin(pin($0)) }) }

  static func pattern(_ text: String) throws -> HostPattern { try HostPattern(text) }

  /// `pattern leaf-letters ca-letters match`, such as `**.example.com AB - any`.
  static func policy(_ lines: String...) throws -> PinPolicy {
    let rules = try lines.map { line in
      let words = line.split(separator: " ").map(String.init)
      return HostRule(
        PolicyEntry(
          try HostPattern(words[0]), leaf: pins(words[1] == "-" ? "" : words[1]),
          ca: pins(words.count < 3 || words[2] == "-" ? "" : words[2]),
          match: words.count > 3 && words[3] == "any" ? .any : .all))
    }
    return PinPolicy(format: .registry, rules: rules, overlap: .united)
  }
}

@Suite("formats of pin lists")
struct PolicyFormatTests {
  /// What a policy demands of some hosts: the letters of leaf and CA pins, and how they combine.
  static func demands(_ policy: PinPolicy, _ host: String) throws -> String {
    guard let entry = policy.entry(for: try HostName(host)) else { return "-" }
    func letters(_ pins: PinSet) -> String {
      String(pins.pins.compactMap(\.spki.base64.first))
    }
    return "\(letters(entry.leaf))/\(letters(entry.ca)) \(entry.match)"
  }

  @Test(
    "a list survives the way through each format that is read again",
    arguments: [PolicyFormat.nsPinnedDomains, .android, .trustKit])
  func roundTrip(format: PolicyFormat) throws {
    let policy = try Sample.policy(
      "api.example.com AB", "other.example.com CD", "cdn.example.net EF")
    let written = try #require(policy.written(as: format, at: Sample.now))
    #expect(written.losses.isEmpty)
    let read = try PinPolicy(reading: Array(written.text.utf8))
    #expect(read.format == format)
    #expect(read.remarks.isEmpty)
    for host in ["api.example.com", "other.example.com", "cdn.example.net"] {
      let before = try #require(policy.entry(for: try HostName(host)))
      let after = try #require(read.entry(for: try HostName(host)))
      #expect(after.leaf == before.leaf)
    }
    for host in ["example.com", "x.api.example.com", "example.org"] {
      #expect(read.entry(for: try HostName(host)) == nil)
    }
  }

  @Test("Apple's format keeps leaf and CA apart, and one more label")
  func apple() throws {
    let policy = try Sample.policy("a.example AB CD", "*.a.example AB CD", "b.example - CD")
    let written = try #require(policy.written(as: .nsPinnedDomains, at: Sample.now))
    #expect(written.losses.isEmpty)
    let read = try PinPolicy(reading: Array(written.text.utf8))
    #expect(try Self.demands(read, "a.example") == "AB/CD all")
    #expect(try Self.demands(read, "x.a.example") == "AB/CD all")
    #expect(try Self.demands(read, "y.x.a.example") == "-")
    #expect(try Self.demands(read, "b.example") == "/CD all")
  }

  @Test("wider patterns are written into narrower entries where the closest one decides alone")
  func union() throws {
    let policy = try Sample.policy("**.example.com AB", "api.example.com C")
    for format in [PolicyFormat.android, .trustKit] {
      let read = try PinPolicy(
        reading: Array(try #require(policy.written(as: format, at: Sample.now)).text.utf8))
      #expect(try Self.demands(read, "api.example.com").hasPrefix("ABC/"))
      #expect(try Self.demands(read, "a.b.example.com").hasPrefix("AB/"))
      #expect(try Self.demands(read, "example.com").hasPrefix("AB/"))
    }
  }

  static let losses: [(list: String, format: PolicyFormat, host: String, text: String)] = [
    ("**.e.example AB", .nsPinnedDomains, "e.example", "more than one label below"),
    ("*.e.example AB", .nsPinnedDomains, "e.example", "is not pinned itself, and will be"),
    ("e.example AB CD any", .nsPinnedDomains, "e.example", "demand both"),
    ("e.example AB AB any", .nsPinnedDomains, "e.example", "--roles"),
    ("127.0.0.1 AB", .nsPinnedDomains, "127.0.0.1", "is an address"),
    ("*.e.example AB", .android, "*.e.example", "of any depth"),
    ("e.example AB CD", .android, "e.example", "takes either: CA pins are left out"),
    ("e.example A", .trustKit, "e.example", "two or more"),
    ("**.e.example AB", .okHttp, "**.e.example", "4.3"),
    ("*.e.example AB", .curl, "*.e.example", "is a pattern"),
    ("e.example - AB", .curl, "e.example", "pins the leaf alone"),
    ("e.example AB CD", .curl, "e.example", "demands a CA pin as well"),
  ]

  @Test("what a format cannot say is told, by host", arguments: losses)
  func loss(row: (list: String, format: PolicyFormat, host: String, text: String)) throws {
    let written = try #require(try Sample.policy(row.list).written(as: row.format, at: Sample.now))
    #expect(written.losses.contains { $0.host == row.host && $0.text.contains(row.text) })
    // The control: two leaf pins of one name are said by every format.
    #expect(
      try #require(try Sample.policy("e.example AB").written(as: row.format, at: Sample.now)).losses
        .isEmpty)
  }

  @Test("a pin that ends, and a denied key, are told as what no format says")
  func common() throws {
    let entry = PolicyEntry(
      try Sample.pattern("e.example"),
      leaf: PinSet([Pin(Sample.pin("A"), expires: 2_000_000_000), Pin(Sample.pin("B"))]))
    let policy = PinPolicy(
      format: .registry, rules: [HostRule(entry)], overlap: .united, denied: [Sample.pin("Z")])
    for format in PolicyFormat.writable {
      let losses = try #require(policy.written(as: format, at: Sample.now)).losses.map(
        \.description)
      #expect(losses.contains { $0.contains("1 denied key") })
      #expect(losses.contains { $0.contains("pins that end") })
    }
  }

  @Test("with leaf and CA demanded, no format without roles lets in a certificate by its CA alone")
  func noLoosening() throws {
    let policy = try Sample.policy("e.example AB CD")
    for format in [PolicyFormat.android, .trustKit, .okHttp] {
      let text = try #require(policy.written(as: format, at: Sample.now)).text
      #expect(text.contains(Sample.pin("A").base64))
      #expect(!text.contains(Sample.pin("C").base64))
    }
  }

  @Test("TrustKit's list counts on macOS whoever added the CA, and compiles elsewhere")
  func trustKitSettings() throws {
    let policy = try Sample.policy("e.example AB")
    let text = try #require(policy.written(as: .trustKit, at: Sample.now)).text
    guard case .dictionary(let members) = try PropertyListReader.value(of: Array(text.utf8)) else {
      throw PolicyFormatError.unknownFormat
    }
    #expect(members["TSKIgnorePinningForUserDefinedTrustAnchors"] == .boolean(false))
    // The constant of that name is for macOS alone.
    let swift = try #require(policy.written(as: .trustKitSwift, at: Sample.now)).text
    #expect(swift.contains("  \"TSKIgnorePinningForUserDefinedTrustAnchors\": false,\n"))
  }

  @Test(
    "what TrustKit ends the app for is left out, and a list of nothing else is said to do so",
    arguments: [
      ("localhost AB", "localhost", "under no public suffix"),
      ("api.corp.internal AB", "api.corp.internal", "under no public suffix"),
      ("**.co.uk AB", "**.co.uk", "is a public suffix"), ("e.co.uk A", "e.co.uk", "has 1 pin"),
    ])
  func trustKitEndsApp(line: String, host: String, told: String) throws {
    func written(_ policy: PinPolicy) throws -> PolicyExport {
      try #require(
        policy.written(as: .trustKit, at: Sample.now) { ["com", "uk", "co.uk"].contains($0) })
    }
    let alone = try written(try Sample.policy(line))
    #expect(alone.pinsNothing)
    #expect(alone.losses.contains { $0.host == host && $0.text.contains(told) })
    let beside = try written(try Sample.policy(line, "**.other.co.uk AB"))
    #expect(!beside.pinsNothing)
    let read = try PinPolicy(reading: Array(beside.text.utf8))
    #expect(read.patterns.map(\.description) == ["**.other.co.uk"])
  }

  @Test("TrustKit's entries that only report are written with one pin")
  func trustKitReportOnly() throws {
    var entry = PolicyEntry(try HostPattern("**.e.example"), leaf: Sample.pins("A"))
    entry.enforcement = .reportOnly
    let policy = PinPolicy(format: .registry, rules: [HostRule(entry)], overlap: .united)
    let text = try #require(policy.written(as: .trustKit, at: Sample.now)).text
    let read = try PinPolicy(reading: Array(text.utf8))
    #expect(read.entry(for: try HostName("a.e.example"))?.enforcement == .reportOnly)
  }

  @Test("OkHttp's patterns are written as they are, and curl's pins with two slashes")
  func code() throws {
    let policy = try Sample.policy("e.example AB", "*.e.example C")
    let kotlin = try #require(policy.written(as: .okHttp, at: Sample.now)).text
    #expect(kotlin.contains(".add(\"e.example\", \"sha256/\(Sample.pin("A").base64)\")"))
    #expect(kotlin.contains(".add(\"*.e.example\", \"sha256/\(Sample.pin("C").base64)\")"))
    let narrow = try #require(
      try Sample.policy("api.e.example A", "*.e.example C").written(as: .okHttp, at: Sample.now)
    ).text
    #expect(narrow.contains(".add(\"api.e.example\", \"sha256/\(Sample.pin("C").base64)\")"))
    let curl = try #require(policy.written(as: .curl, at: Sample.now)).text
    #expect(
      curl.contains(
        "pinnedpubkey = \"sha256//\(Sample.pin("A").base64);sha256//\(Sample.pin("B").base64)\""))
  }

  /// The options of a curl configuration that are in force.
  private static func options(_ text: String) -> [Substring] {
    text.split(separator: "\n").filter { !$0.hasPrefix("#") }
  }

  @Test("curl's file holds the pins of all its hosts, or no host's while one is to be chosen")
  func curlHosts() throws {
    let option =
      "pinnedpubkey = \"sha256//\(Sample.pin("A").base64);sha256//\(Sample.pin("B").base64)\""
    let same = try #require(
      try Sample.policy("b.example BA", "a.example AB").written(as: .curl, at: Sample.now))
    #expect(same.losses.isEmpty)
    #expect(same.text == "# a.example, b.example\n\(option)\n")
    let different = try #require(
      try Sample.policy("a.example AB", "b.example AC", "c.example AB")
        .written(as: .curl, at: Sample.now))
    #expect(different.losses.map(\.host) == ["a.example", "b.example", "c.example"])
    #expect(different.losses.allSatisfy { $0.text.contains("has other pins than other hosts") })
    // Without any option curl would pin nothing, and this one no key has.
    #expect(Self.options(different.text) == ["pinnedpubkey = \"sha256//no-host-is-chosen\""])
    #expect(different.text.contains("\n# a.example, c.example\n#\(option)\n"))
  }

  @Test(
    "curl's file lets nobody in where no host of the list is left in it",
    arguments: [
      ("*.a.example AB", "is a pattern"), ("a.example - C", "goes by CA pins"),
      ("a.example -", "has no pin that counts"),
    ])
  func curlWithoutHosts(line: String, told: String) throws {
    let written = try #require(try Sample.policy(line).written(as: .curl, at: Sample.now))
    #expect(written.losses.count == 1 && written.losses[0].text.contains(told))
    #expect(Self.options(written.text) == ["pinnedpubkey = \"sha256//no-host-is-chosen\""])
    let empty = PinPolicy(format: .registry, rules: [], overlap: .united)
    #expect(try #require(empty.written(as: .curl, at: Sample.now)).text.isEmpty)
  }
}

@Suite("reading the formats of others")
struct PolicyReadingTests {
  @Test("Android: the closest domain decides, entries inside inherit, expiration opens")
  func android() throws {
    let a = Sample.pin("A").base64
    let b = Sample.pin("B").base64
    let policy = try PinPolicy(
      reading: Array(
        """
        <?xml version="1.0" encoding="utf-8"?>
        <!-- <pin digest="SHA-256">none</pin> -->
        <network-security-config>
          <domain-config>
            <domain includeSubdomains="true"> example.com </domain>
            <pin-set expiration="2030-01-31"><pin digest="SHA-256">\(a)</pin></pin-set>
            <domain-config><domain>open.example.com</domain>
              <pin-set><pin digest="SHA-256">\(b)</pin></pin-set></domain-config>
            <domain-config><domain>inner.example.com</domain></domain-config>
          </domain-config>
          <domain-config cleartextTrafficPermitted="true"><domain>free.example.com</domain></domain-config>
        </network-security-config>
        """.utf8))
    #expect(try PolicyFormatTests.demands(policy, "example.com") == "A/A any")
    #expect(try PolicyFormatTests.demands(policy, "x.y.example.com") == "A/A any")
    #expect(try PolicyFormatTests.demands(policy, "open.example.com") == "B/B any")
    #expect(try PolicyFormatTests.demands(policy, "inner.example.com") == "A/A any")
    #expect(try PolicyFormatTests.demands(policy, "free.example.com") == "-")
    let host = try HostName("example.com")
    #expect(policy.entry(for: host, at: 1_896_000_000) != nil)
    #expect(policy.entry(for: host, at: 1_896_220_800) == nil)
  }

  /// An Android list of `a.example`.
  private static func android(expiration: String, pin: String) throws -> PinPolicy {
    try PinPolicy(
      reading: Array(
        """
        <network-security-config><domain-config><domain>a.example</domain>
        <pin-set expiration="\(expiration)"><pin digest="SHA-256">\(pin)</pin></pin-set>
        </domain-config></network-security-config>
        """.utf8))
  }

  @Test(
    "Android: an expiration is read as far as its day, and one that is none refuses the file",
    arguments: [
      ("2025-01-01", 1_735_689_600), ("2025-1-1", 1_735_689_600), ("2025- 1- 1", 1_735_689_600),
      (" 2025-01-01T00:00:00Z", 1_735_689_600), ("25-01-01", -61_378_214_400),
      ("99999-01-01", 253_370_764_800), ("2025-02-30", nil), ("2025-13-01", nil),
      ("2025/01/01", nil), ("2025-01", nil), ("+2025-01-01", nil), ("0-1-1", nil), ("", nil),
    ] as [(String, Int64?)])
  func androidExpiration(text: String, end: Int64?) throws {
    let policy = try Self.android(expiration: text, pin: Sample.pin("A").base64)
    #expect(policy.rules.map(\.unpinnedFrom) == [end])
    #expect(
      policy.remarks.map(\.kind) == (end == nil ? [.refused] : [])
    )
  }

  @Test("Android: a pin is read as its decoder reads it, and one that is none refuses the file")
  func androidPin() throws {
    let pin = Sample.pin("A").base64
    for text in [pin, String(pin.dropLast()), "\(pin.prefix(20))\n \(pin.dropFirst(20))"] {
      let policy = try Self.android(expiration: "2030-01-31", pin: text)
      #expect(try PolicyFormatTests.demands(policy, "a.example") == "A/A any")
      #expect(policy.remarks.isEmpty)
    }
    let none = try Self.android(expiration: "2030-01-31", pin: "no pin")
    #expect(none.remarks.map(\.kind) == [.refused])
  }

  @Test("TrustKit: a key that it does not have is told")
  func trustKitTypingError() throws {
    let pins = PropertyListValue.array([
      .string(Sample.pin("A").base64), .string(Sample.pin("B").base64),
    ])
    let text = PropertyListText.document([
      "TSKPinnedDomains": .dictionary([
        "a.example": .dictionary([
          "TSKPublicKeyHashes": pins, "TSKIncludeSubdomain": .boolean(true),
          "NSNote": .boolean(true),
        ])
      ]),
      "TSKIgnorePinningForUserDefinedTrustAnchors": .boolean(false),
    ])
    let remarks = try PinPolicy(reading: Array(text.utf8)).remarks
    #expect(remarks.map(\.text) == ["TSKIncludeSubdomain is no key of TrustKit's, and is not read"])
  }

  @Test(
    "TrustKit: an expiration is a day and nothing more",
    arguments: [
      ("2025-01-01", 1_735_689_600), ("2025-1-1 ", 1_735_689_600), ("2025-01-01T00:00:00Z", nil),
    ] as [(String, Int64?)])
  func trustKitExpiration(text: String, end: Int64?) throws {
    let policy = try Self.trustKit(
      pins: "AB", more: ["TSKExpirationDate": .string(text)])
    #expect(policy.rules.map(\.unpinnedFrom) == [end])
    #expect(
      policy.remarks.map(\.kind) == (end == nil ? [.unclear] : [])
    )
  }

  @Test("TrustKit: an entry needs two pins, or one if it only reports, or the app does not start")
  func trustKitFewPins() throws {
    for (pins, isEnforced, isRefused) in [
      ("AB", true, false), ("A", true, true), ("A", false, false), ("", false, true),
    ] {
      let policy = try Self.trustKit(
        pins: pins, more: ["TSKEnforcePinning": .boolean(isEnforced)])
      #expect(
        policy.remarks.map(\.kind)
          == (isRefused ? [.refused] : []), "\(pins)")
    }
  }

  /// A TrustKit list of `a.example`.
  private static func trustKit(
    pins: String, more: [String: PropertyListValue]
  ) throws -> PinPolicy {
    let hashes = PropertyListValue.array(pins.map { .string(Sample.pin($0).base64) })
    let entry = more.merging(["TSKPublicKeyHashes": hashes]) { one, _ in one }
    return try PinPolicy(
      reading: Array(
        PropertyListText.document([
          "TSKPinnedDomains": .dictionary(["a.example": .dictionary(entry)]),
          "TSKIgnorePinningForUserDefinedTrustAnchors": .boolean(false),
        ]).utf8))
  }

  @Test("TrustKit: keys as files and as code spell them, report-only, exceptions")
  func trustKit() throws {
    let a = Sample.pin("A").base64
    let b = Sample.pin("B").base64
    for prefix in ["TSK", "kTSK"] {
      let text = PropertyListText.document([
        "\(prefix)PinnedDomains": .dictionary([
          "example.com": .dictionary([
            "\(prefix)IncludeSubdomains": .boolean(true),
            "\(prefix)EnforcePinning": .boolean(false),
            "\(prefix)PublicKeyHashes": .array([.string(a), .string(b)]),
          ]),
          "free.example.com": .dictionary([
            "kSKExcludeSubdomainFromParentPolicy": .boolean(true)
          ]),
        ]),
        "\(prefix)IgnorePinningForUserDefinedTrustAnchors": .boolean(false),
      ])
      let policy = try PinPolicy(reading: Array(text.utf8))
      #expect(policy.remarks.isEmpty)
      #expect(try PolicyFormatTests.demands(policy, "x.y.example.com") == "AB/AB any")
      #expect(policy.entry(for: try HostName("example.com"))?.enforcement == .reportOnly)
      #expect(try PolicyFormatTests.demands(policy, "free.example.com") == "-")
    }
  }

  @Test(
    "TrustKit: a list that does not count on macOS for CAs of the user is told",
    arguments: [
      (nil, .unpinnedOnMacOS), (.boolean(true), .unpinned), (.string("YES"), .unpinned),
      (.boolean(false), nil),
    ] as [(PropertyListValue?, PolicyRemark.Kind?)])
  func trustKitOnMacOS(value: PropertyListValue?, told: PolicyRemark.Kind?) throws {
    let hashes = PropertyListValue.array("AB".map { .string(Sample.pin($0).base64) })
    var members: [String: PropertyListValue] = [
      "TSKPinnedDomains": .dictionary(["a.example": .dictionary(["TSKPublicKeyHashes": hashes])])
    ]
    members["TSKIgnorePinningForUserDefinedTrustAnchors"] = value
    let text = PropertyListText.document(["TSKConfiguration": .dictionary(members)])
    let remarks = try PinPolicy(reading: Array(text.utf8)).remarks
    #expect(remarks.map(\.kind) == [told].compactMap { $0 })
  }

  static let broken: [(text: String, says: String)] = [
    ("", "no format that is known"), ("{", "not readable as registry"),
    ("{\"payload\": {}}", "--registry"), ("{\"keys\": 1}", "no keys"),
    ("<network-security-config><domain-config>", "line"),
    ("<plist version=\"1.0\"><dict/></plist>", "NSPinnedDomains"),
    ("hello", "no format that is known"),
  ]

  @Test("what is no list says so", arguments: broken)
  func refused(row: (text: String, says: String)) throws {
    let error = #expect(throws: PolicyFormatError.self) {
      _ = try PinPolicy(reading: Array(row.text.utf8))
    }
    #expect("\(try #require(error))".contains(row.says))
  }

  @Test("an XML bomb and a document within a document end quickly and pin nothing")
  func hostile() throws {
    let bomb = """
      <!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
      <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">
      <!ENTITY e SYSTEM "file:///etc/passwd">]>
      <network-security-config><domain-config><domain>&d;&e;</domain></domain-config></network-security-config>
      """
    let policy = try? PinPolicy(reading: Array(bomb.utf8))
    #expect(policy?.rules.allSatisfy { $0.entry.pins.isEmpty } ?? true)
    #expect(policy?.remarks.contains { $0.host.contains("root") } != true)
    let deep = String(repeating: "<network-security-config>", count: 100)
    #expect(throws: PolicyFormatError.self) { try PinPolicy(reading: Array(deep.utf8)) }
  }
}
