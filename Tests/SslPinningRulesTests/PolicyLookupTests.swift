import SslPinningRules
import Testing

@Suite("Looking a host up")
struct PolicyLookupTests {
  /// A deterministic stream of numbers (SplitMix64), so that a failure can be repeated.
  struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var value = state
      value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
      value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
      return value ^ (value >> 31)
    }
  }

  private static func name(_ numbers: inout Numbers, labels: ClosedRange<Int>) -> String {
    (0..<Int.random(in: labels, using: &numbers))
      .map { _ in "l\(Int.random(in: 0..<20, using: &numbers))" }
      .joined(separator: ".")
  }

  @Test("10 000 entries answer as a scan over all of them does")
  func sameAsScan() throws {
    var numbers = Numbers(state: 1)
    var entries: [PolicyEntry] = []
    for index in 0..<10_000 {
      let text =
        switch index % 4 {
        case 0: Self.name(&numbers, labels: 3...4)
        case 1: "*." + Self.name(&numbers, labels: 2...3)
        case 2: "**." + Self.name(&numbers, labels: 3...4)
        default: "10.\(index % 7).\(index % 11).\(index % 13)"
        }
      entries.append(
        PolicyEntry(
          try HostPattern(text), leaf: PinSet([Pin(.test(UInt8(index % 251)))]),
          match: index % 3 == 0 ? .any : .all,
          enforcement: index % 5 == 0 ? .reportOnly : .enforce))
    }
    let policy = try PinningPolicy(entries: entries)
    var found = 0
    for index in 0..<40 {
      let text =
        index % 6 == 0
        ? "10.\(index % 9).\(index % 11).\(index % 13)" : Self.name(&numbers, labels: 2...6)
      let host = try HostName(text)
      var expected: (pins: PinSet, match: PolicyEntry.Match, PolicyEntry.Enforcement)?
      for entry in entries where entry.pattern.matches(host) {
        guard var known = expected else {
          expected = (entry.leaf, entry.match, entry.enforcement)
          continue
        }
        known.pins.formUnion(entry.leaf)
        if entry.match == .all { known.match = .all }
        if entry.enforcement == .enforce { known.2 = .enforce }
        expected = known
      }
      let entry = policy.entry(for: host)
      #expect((entry == nil) == (expected == nil), "\(text)")
      #expect(entry?.leaf == expected?.pins, "\(text)")
      #expect(entry?.match == expected?.match, "\(text)")
      #expect(entry?.enforcement == expected?.2, "\(text)")
      if entry != nil { found += 1 }
    }
    #expect((10..<40).contains(found))
  }
}
