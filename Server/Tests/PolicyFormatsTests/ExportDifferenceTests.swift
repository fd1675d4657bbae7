import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import PolicyFormats

/// What an export says, held against the clients of either list.
@Suite("what clients of an exported list do otherwise")
struct ExportDifferenceTests {
  /// The SplitMix64 generator: the same lists in every run.
  private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var bits = state
      bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
      bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
      return bits ^ (bits >> 31)
    }

    mutating func some<Element>(_ counts: ClosedRange<Int>, of all: [Element]) -> [Element] {
      Array(all.shuffled(using: &self).prefix(Int.random(in: counts, using: &self)))
    }

    mutating func isOne(of count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }
  }

  private static let patterns = [
    "a.example", "b.a.example", "*.example", "**.example", "*.a.example", "**.a.example",
  ]
  private static let hosts = [
    "example", "a.example", "c.example", "b.a.example", "c.a.example", "d.c.a.example",
    "d.b.a.example", "d.c.example",
  ]

  /// A list with leaf keys A to C and CA keys D and E; without roles each pin stands for both.
  private static func policy(_ numbers: inout Numbers) throws -> PinPolicy {
    let hasRoles = !numbers.isOne(of: 3)
    let ends: [Int64?] = [nil, nil, nil, Sample.now - 40 * 86_400, Sample.now + 40 * 86_400]
    let rules = try numbers.some(1...4, of: patterns).map { text in
      let letters = numbers.some(hasRoles ? 0...2 : 1...3, of: Array("ABC"))
      var leaf = PinSet()
      for letter in letters {
        leaf.insert(
          Pin(Sample.pin(letter), expires: ends.randomElement(using: &numbers) ?? nil))
      }
      var ca = hasRoles ? Sample.pins(String(numbers.some(0...2, of: Array("DE")))) : leaf
      if leaf.isEmpty, ca.isEmpty { ca = Sample.pins("D") }
      return HostRule(
        PolicyEntry(
          try HostPattern(text), leaf: leaf, ca: ca,
          match: !hasRoles || numbers.isOne(of: 3) ? .any : .all),
        isExempt: !hasRoles && numbers.isOne(of: 6))
    }
    return PinPolicy(
      format: .registry, rules: rules, overlap: hasRoles ? .united : .mostSpecific,
      denied: hasRoles ? Set(numbers.some(0...1, of: Array("ABCD")).map(Sample.pin)) : [])
  }

  /// Whether the format's own clients let in a path: Apple's by leaf and CA, all others by any key of it.
  private static func accepts(
    _ format: PolicyFormat, _ entry: PolicyEntry, _ leaf: SPKIPin, _ ca: SPKIPin?
  ) -> Bool {
    let isLeaf = entry.leaf.contains(leaf, at: 0)
    let isCA = ca.map { entry.ca.contains($0, at: 0) } ?? false
    guard format == .nsPinnedDomains else {
      return isLeaf || isCA || entry.ca.contains(leaf, at: 0)
    }
    return (isLeaf || !entry.demands(.leaf)) && (isCA || !entry.demands(.ca))
  }

  /// OkHttp's own rule: of every pattern that matches, any pin.
  private static func okHttp(_ text: String) throws -> PinPolicy {
    let rules = try text.split(separator: "\n").filter { $0.contains(".add(") }.map { line in
      let words = line.split(separator: "\"")
      let pins = PinSet([Pin(try SPKIPin(parsing: String(words[3])))])
      return HostRule(
        PolicyEntry(try HostPattern(String(words[1])), leaf: pins, ca: pins, match: .any))
    }
    return PinPolicy(format: .okHttp, rules: rules, overlap: .united)
  }

  @Test(
    "whom they let in, refuse or do not pin is told at each host, whatever the list",
    arguments: [PolicyFormat.nsPinnedDomains, .android, .trustKit, .okHttp])
  func told(format: PolicyFormat) throws {
    var numbers = Numbers(state: 20)
    var seen: [String: Int] = [:]
    for round in 0..<200 {
      let policy = try Self.policy(&numbers)
      let written = try #require(policy.written(as: format, at: Sample.now))
      let read =
        format == .okHttp
        ? try Self.okHttp(written.text) : try? PinPolicy(reading: Array(written.text.utf8))
      let pinning = policy.rules.map(\.entry)
      let leaves = Set(pinning.flatMap { $0.leaf.pins.map(\.spki) }).union([Sample.pin("Z")])
      let ca = Set(pinning.flatMap { $0.ca.pins.map { Optional($0.spki) } }).union([nil])
      for name in Self.hosts {
        let host = try HostName(name)
        func isTold(_ text: String? = nil) -> Bool {
          written.losses.contains { loss in
            (text.map(loss.text.contains) ?? true)
              && ((try? HostPattern(loss.host))?.base).map {
                $0 == host || name.hasSuffix(".\($0)")
              } == true
          }
        }
        guard let here = policy.entry(for: host) else {
          guard policy.overlap == .mostSpecific, read?.entry(for: host) != nil else { continue }
          seen["pinned", default: 0] += 1
          #expect(
            isTold("refuses servers"), "\(round) \(name): pinned, \(policy.rules) \(written.losses)"
          )
          continue
        }
        guard let there = read?.entry(for: host) else {
          seen["unpinned", default: 0] += 1
          #expect(isTold(), "\(round) \(name): not pinned, \(policy.rules) \(written.losses)")
          continue
        }
        let client = try PinningPolicy(
          entries: [
            PolicyEntry(
              .exact(host), leaf: here.leaf, ca: here.ca, required: here.required, match: here.match
            )
          ],
          denied: policy.denied)
        for leaf in leaves.subtracting(policy.denied) {
          for ca in ca where !(ca.map(policy.denied.contains) ?? false) {
            let isIn = client.accepts(
              leaf: leaf, ca: ca, host: host, at: TrustTime(clock: Sample.now))
            let isInThere = Self.accepts(format, there, leaf, ca)
            guard isIn != isInThere else { continue }
            let text = isIn ? "refuses servers" : "lets in servers"
            seen[text, default: 0] += 1
            #expect(
              isTold(text), "\(round) \(name): \(leaf) \(String(describing: ca)) \(policy.rules)")
          }
        }
      }
    }
    #expect(seen["lets in servers", default: 0] > 0)
  }

  /// A list with a wide entry, a host that is taken out of it, and one that only reports.
  private static func sparing() throws -> PinPolicy {
    func rule(
      _ pattern: String, _ pins: String, _ enforcement: PolicyEntry.Enforcement,
      isExempt: Bool = false
    ) throws -> HostRule {
      var entry = PolicyEntry(
        try HostPattern(pattern), leaf: Sample.pins(pins), ca: Sample.pins(pins), match: .any)
      entry.enforcement = enforcement
      return HostRule(entry, isExempt: isExempt)
    }
    return PinPolicy(
      format: .trustKit,
      rules: [
        try rule("**.e.example", "AB", .enforce), try rule("reports.e.example", "AB", .reportOnly),
        try rule("ads.e.example", "", .enforce, isExempt: true),
      ], overlap: .mostSpecific)
  }

  @Test(
    "a host that a list does not refuse is refused by no export of it",
    arguments: [PolicyFormat.nsPinnedDomains, .android, .trustKit, .okHttp])
  func spared(format: PolicyFormat) throws {
    let written = try #require(
      try Self.sparing().taking(.leaf).written(as: format, at: Sample.now))
    let read =
      format == .okHttp
      ? try Self.okHttp(written.text) : try PinPolicy(reading: Array(written.text.utf8))
    for host in ["ads.e.example", "reports.e.example"] {
      #expect(read.entry(for: try HostName(host))?.enforcement != .enforce)
    }
    #expect(read.entry(for: try HostName("e.example"))?.enforcement == .enforce)
    #expect(!written.losses.contains { $0.text.contains("refuses servers") })
    // A format that takes no host out has no other host below the name, either.
    let takesOut = [.android, .trustKit].contains(format)
    #expect((read.entry(for: try HostName("www.e.example")) != nil) == takesOut)
    #expect(written.losses.contains { $0.text.contains("cannot take it out") } == !takesOut)
  }

  @Test("a host and all below it stay unpinned, also if TrustKit can exempt the host alone")
  func exemptSubtree() throws {
    var rules = try Sample.policy("**.e.example AB AB any").rules
    rules.append(HostRule(PolicyEntry(try HostPattern("**.ads.e.example")), isExempt: true))
    let policy = PinPolicy(format: .android, rules: rules, overlap: .mostSpecific)
    let written = try #require(policy.written(as: .trustKit, at: Sample.now))
    let read = try PinPolicy(reading: Array(written.text.utf8))
    #expect(read.patterns.map(\.description) == ["e.example"])
    #expect(written.losses.map(\.host) == ["**.e.example"])
  }

  @Test("hosts that another list alone refuses are told")
  func sparedUntold() throws {
    let policy = try Self.sparing()
    let wide = PinPolicy(
      format: .android, rules: Array(policy.rules.prefix(1)), overlap: .mostSpecific)
    #expect(policy.differences(from: wide).map(\.host) == ["ads.e.example", "reports.e.example"])
    #expect(wide.differences(from: policy).isEmpty)
  }

  @Test("no pin that is denied, or over, is written", arguments: PolicyFormat.writable)
  func denied(format: PolicyFormat) throws {
    let entry = PolicyEntry(
      try HostPattern("e.example"),
      leaf: PinSet([
        Pin(Sample.pin("A")), Pin(Sample.pin("B")), Pin(Sample.pin("C")),
        Pin(Sample.pin("D"), expires: Sample.now - 30 * 86_400),
      ]))
    let policy = PinPolicy(
      format: .registry, rules: [HostRule(entry)], overlap: .united, denied: [Sample.pin("A")])
    let written = try #require(policy.written(as: format, at: Sample.now))
    for (letter, isWritten) in [("A", false), ("B", true), ("C", true), ("D", false)] {
      #expect(written.text.contains(Sample.pin(Character(letter)).base64) == isWritten)
    }
    #expect(
      written.losses.contains { $0.host == "e.example" && $0.text.contains("2 pins are denied") })
  }

  @Test("hosts whose servers need other roles are left out, and not locked out")
  func roles() throws {
    let policy = try Sample.policy("e.example AB", "*.e.example - CD")
    for format in [PolicyFormat.nsPinnedDomains, .android, .trustKit] {
      let written = try #require(policy.written(as: format, at: Sample.now))
      let read = try PinPolicy(reading: Array(written.text.utf8))
      #expect(try PolicyFormatTests.demands(read, "e.example").hasPrefix("AB/"))
      #expect(try PolicyFormatTests.demands(read, "x.e.example") == "-")
      #expect(
        written.losses.contains { $0.host == "**.e.example" && $0.text.contains("other roles") })
    }
  }

  @Test("hosts that an Info.plist pinned and does not pin any more are told")
  func unpinned() throws {
    let old = try #require(
      try Sample.policy("old.example AB", "new.example AB")
        .written(as: .nsPinnedDomains, at: Sample.now))
    let merged = try #require(
      try Sample.policy("new.example CD")
        .merged(into: Array(old.text.utf8), as: .nsPinnedDomains, at: Sample.now))
    #expect(merged.losses.map(\.host) == ["old.example"])
  }

  @Test("a payload keeps the end of a pin, and a role without a readable pin is told")
  func payload() throws {
    let pin = Pin(Sample.pin("A"), expires: Sample.now)
    let entry = PolicyEntry(
      try HostPattern("e.example"), leaf: PinSet([pin]), required: [.leaf, .ca])
    let payload = PinPolicy(format: .registry, rules: [HostRule(entry)], overlap: .united).payload
    let key = payload.payload.objectValue?["keys"]?.arrayValue?.first?.objectValue
    #expect(key?["expire"]?.integerValue == Sample.now)
    #expect(payload.losses.contains { $0.text.contains("demands a CA pin there") })
  }

  @Test("lists that differ below a name alone are told")
  func wildcardDrift() throws {
    func findings(_ lists: [String]...) throws -> [String] {
      let policies = try lists.enumerated().map { index, lines in
        let rules = try lines.flatMap { try Sample.policy($0).rules }
        return CheckedPolicy(
          name: "\(index)", policy: PinPolicy(format: .registry, rules: rules, overlap: .united))
      }
      return PolicyCheck(at: Sample.now, within: 0, isPublicSuffix: { _ in false })
        .findings(policies).filter { [.drift, .missingHost].contains($0.rule) }
        .map { "\($0.rule.rawValue) \($0.host)" }
    }
    #expect(try findings(["*.e.example AB"], ["*.e.example AC"]) == ["drift *.e.example"])
    #expect(try findings(["*.e.example AB"], ["f.example AB"]).contains("missing-host *.e.example"))
    #expect(try findings(["**.e.example AB"], ["**.e.example AC"]) == ["drift e.example"])
    #expect(try findings(["*.e.example AB"], ["*.e.example AB"]).isEmpty)
  }
}
