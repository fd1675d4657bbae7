import SslPinningRules
import Testing

@testable import PolicyFormats

/// What check says of lists whose clients do otherwise, though their pins may be the same.
@Suite("drift of lists")
struct DriftTests {
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let lists: [[String]]
    /// `rule host policy` of each finding, or the text of a drift.
    let told: [String]

    init(_ name: String, _ one: [String], _ two: [String], _ told: String...) {
      (testDescription, lists, self.told) = (name, [one, two], told)
    }
  }

  static func findings(_ policies: [PinPolicy]) -> [Finding] {
    PolicyCheck(at: Sample.now, within: 0) { _ in false }
      .findings(
        policies.enumerated().map { CheckedPolicy(name: "\($0.offset)", policy: $0.element) }
      ).filter { [.drift, .missingHost].contains($0.rule) }
  }

  private static func policy(
    _ lines: [String], _ format: PolicyFormat = .registry
  ) throws -> PinPolicy {
    PinPolicy(
      format: format, rules: try lines.flatMap { try Sample.policy($0).rules }, overlap: .united)
  }

  private static func text(_ letters: String) -> String {
    letters.map { Sample.pin($0).base64 }.joined(separator: ", ")
  }

  private static let letsIn = "lets in servers that 0 refuses"
  private static let refuses = "refuses servers that 0 lets in"

  static let rows: [Row] = [
    Row(
      "leaf and CA demanded, and either taken by a list without roles",
      ["e.example AB CD"], ["e.example ABCD ABCD any"], "\(letsIn): any under a listed CA"),
    Row(
      "leaf and CA demanded, and the leaf alone written, as an export does",
      ["e.example AB CD"], ["e.example AB AB any"]),
    Row(
      "the same the other way round", ["e.example AB AB any"], ["e.example AB CD"]),
    Row(
      "the leaf alone written, and a key more",
      ["e.example AB CD"], ["e.example ABE ABE any"], "\(letsIn); it alone has \(text("E"))"),
    Row(
      "the CA alone written, of leaf and CA",
      ["e.example AB CD"], ["e.example CD CD any"],
      "\(letsIn): any under a listed CA; it lacks \(text("AB"))"),
    Row(
      "either taken by a list with roles, and both demanded",
      ["e.example AB CD any"], ["e.example AB CD"], "\(refuses): any under a listed CA"),
    Row(
      "both demanded, and either taken by a list with roles",
      ["e.example AB CD"], ["e.example AB CD any"], "\(letsIn): any under a listed CA"),
    Row(
      "either taken by both", ["e.example AB CD any"], ["e.example ABCD ABCD any"]),
    Row("both demanded by both", ["e.example AB CD"], ["e.example BA DC"]),
    Row(
      "another CA beside the same leaf", ["e.example AB CD"], ["e.example AB CE"],
      "\(letsIn), and \(refuses); it lacks CA \(text("D")), and alone has CA \(text("E"))"),
    Row(
      "a CA demanded by one alone", ["e.example AB"], ["e.example AB C"],
      "\(refuses); it alone has CA \(text("C"))"),
    Row("CA pins, and a list without roles", ["e.example - CD"], ["e.example CD CD any"]),
  ]

  @Test("is told by what clients do, with the pins that differ, if some do", arguments: rows)
  func clients(row: Row) throws {
    let found = Self.findings(try row.lists.map { try Self.policy($0) })
    #expect(found.map(\.message) == row.told)
    #expect(found.allSatisfy { $0.rule == .drift && $0.policy == "1" && $0.host == "e.example" })
  }

  @Test("is told of lists with roles, also behind one without that is no drift from either")
  func third() throws {
    func told(_ lists: String...) throws -> [String] {
      Self.findings(try lists.map { try Sample.policy($0) }).map { "\($0.policy) \($0.message)" }
    }
    let (loose, both) = ("e.example AB AB any", "e.example AB CD")
    #expect(
      try told(loose, both, "e.example AB")
        == ["2 lets in servers that 1 refuses; it lacks CA \(Self.text("C")), CA \(Self.text("D"))"]
    )
    #expect(try told(loose, both, both).isEmpty)
  }

  static let depths: [Row] = [
    Row(
      "one label, and any depth", ["e.example AB", "*.e.example AB"], ["**.e.example AB"],
      "missing-host **.e.example 0"),
    Row(
      "any depth, and one label", ["**.e.example AB"], ["e.example AB", "*.e.example AB"],
      "missing-host **.e.example 1"),
    Row(
      "a key less further down alone",
      ["e.example ABC", "*.e.example ABC", "**.e.example AB"], ["**.e.example ABC"],
      "drift **.e.example 1"),
    Row(
      "a key more at all of them", ["**.e.example AB"], ["**.e.example ABC"],
      "drift e.example 1"),
    Row("any depth in both", ["**.e.example AB"], ["**.e.example AB"]),
    Row(
      "one label in both", ["e.example AB", "*.e.example AB"], ["e.example AB", "*.e.example AB"]),
  ]

  @Test("is looked for at hosts of every depth that a pattern has", arguments: depths)
  func depth(row: Row) throws {
    let found = Self.findings(try row.lists.map { try Self.policy($0) })
    #expect(found.map { "\($0.rule.rawValue) \($0.host) \($0.policy)" } == row.told)
  }

  @Test(
    "of a depth that one of both formats cannot say is a note",
    arguments: [
      (PolicyFormat.nsPinnedDomains, PolicyFormat.android, Finding.Severity.info),
      (.nsPinnedDomains, .registry, .info), (.registry, .trustKit, .info),
      (.registry, .registry, .warning),
    ])
  func unsayable(one: PolicyFormat, any: PolicyFormat, severity: Finding.Severity) throws {
    let found = Self.findings([
      try Self.policy(["e.example AB", "*.e.example AB"], one),
      try Self.policy(["**.e.example AB"], any),
    ])
    #expect(found.map(\.rule) == [.missingHost] && found.map(\.host) == ["**.e.example"])
    #expect(found.map(\.severity) == [severity])
  }

  @Test(
    "is not told of an export beside its own list, and is if the pins are added that it left out",
    arguments: [PolicyFormat.nsPinnedDomains, .android, .trustKit])
  func export(format: PolicyFormat) throws {
    let list = try Sample.policy("api.e.example AB CD", "any.example AB CD any", "ca.example - CD")
    let written = try #require(list.written(as: format, at: Sample.now))
    let read = try PinPolicy(reading: Array(written.text.utf8))
    // Apple's list demands leaf and CA of each host that has both.
    let own = format == .nsPinnedDomains ? ["any.example"] : []
    #expect(!Self.findings([list, read]).contains { !own.contains($0.host) })
    #expect(!Self.findings([read, list]).contains { !own.contains($0.host) })
    guard format != .nsPinnedDomains else { return }
    let opened = PinPolicy(
      format: format,
      rules: try Sample.policy(
        "api.e.example ABCD ABCD any", "any.example ABCD ABCD any", "ca.example CD CD any"
      ).rules, overlap: .mostSpecific)
    #expect(Self.findings([list, opened]).map(\.host) == ["api.e.example"])
  }

  @Test("is told of keys that are only reported in the words of what clients do")
  func reportOnly() throws {
    func policy(_ pins: String, _ enforcement: PolicyEntry.Enforcement) throws -> PinPolicy {
      var entry = PolicyEntry(try Sample.pattern("e.example"), leaf: Sample.pins(pins))
      entry.enforcement = enforcement
      return PinPolicy(format: .registry, rules: [HostRule(entry)], overlap: .united)
    }
    func told(_ one: PinPolicy, _ two: PinPolicy) -> [String] {
      Self.findings([one, two]).map(\.message)
    }
    let (strict, lax) = (try policy("AB", .enforce), try policy("AB", .reportOnly))
    #expect(told(strict, lax) == ["\(Self.letsIn): it only reports"])
    #expect(told(lax, strict) == ["refuses servers that 0 only reports"])
    #expect(told(lax, lax).isEmpty)
    let more = try policy("ABC", .reportOnly)
    #expect(
      told(lax, more) == [
        "passes servers that 0 reports; it alone has leaf \(Self.text("C"))"
      ])
  }

  @Test("asks a leaf key under one CA key of each kind, however many a list has")
  func kinds() throws {
    let host = try HostName("e.example")
    let one = try #require(Side(try Sample.policy("e.example A BCDEF").rules[0].entry, host))
    let two = try #require(Side(try Sample.policy("e.example A BCDG").rules[0].entry, host))
    let chains = Chain.all(
      leaves: [Sample.pin("A")], authorities: Set("BCDEFG".map(Sample.pin)), one, two)
    // In both, in either, and in none: the listed leaf under each, and one more.
    #expect(chains.count == 8)
    func kinds(_ letters: String) -> Int {
      Set(chains.compactMap(\.ca)).intersection(letters.map(Sample.pin)).count
    }
    #expect(["BCD", "EF", "G"].map(kinds) == [1, 1, 1])
  }
}
