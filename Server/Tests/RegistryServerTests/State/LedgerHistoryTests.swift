import SslPinningRules
import Testing

@testable import RegistryServer

/// What holds whatever an endpoint, its addresses and the vantage points show, and in whatever order.
@Suite("In any history of probes") struct LedgerHistoryTests {
  /// The SplitMix64 generator: the same histories in every run.
  struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
  }

  private static let points = ["fra", "osl", "syd"]
  private static let addresses = ["a", "b"]
  /// Keys 1 to 8 are under the CA of the endpoint, the others under one that is not.
  private static let foreign: UInt8 = 9

  private static func answer(_ random: inout SplitMix) -> LedgerBench.Answer {
    switch Int.random(in: 0..<10, using: &random) {
    case 0: .refused
    case 1, 2: .silent
    default: key(UInt8.random(in: 1...12, using: &random))
    }
  }

  private static func key(_ key: UInt8) -> LedgerBench.Answer {
    .key(key, under: key < foreign ? 100 : 101)
  }

  /// What one probe shows: each place what it likes, or all of them the same.
  private static func view(_ bench: LedgerBench, _ random: inout SplitMix) -> LedgerBench.View {
    let all = Int.random(in: 0..<3, using: &random) > 0 ? answer(&random) : nil
    var view: LedgerBench.View = []
    for vantage in [LedgerBench.here] + points {
      guard bench.context.vantages.contains(vantage) else { continue }
      let isSilent = Int.random(in: 0..<4, using: &random) == 0
      for address in vantage == LedgerBench.here ? addresses : [""] {
        view.append((vantage, address, isSilent ? .silent : all ?? answer(&random)))
      }
    }
    return view
  }

  /// Who shows which keys, and who answers at all.
  private static func shown(_ view: LedgerBench.View) -> (by: [SPKIPin: Set<String>], Set<String>) {
    var found: [SPKIPin: Set<String>] = [:]
    for (vantage, _, answer) in view {
      if case .key(let key, _) = answer { found[pin(key), default: []].insert(vantage) }
    }
    return (found, found.values.reduce(into: []) { $0.formUnion($1) })
  }

  /// Of hundreds of thousands of claims only those that do not hold cost time.
  private static func claim(_ holds: Bool, _ seed: UInt64, _ text: String) {
    if !holds { Issue.record("seed \(seed): \(text)") }
  }

  private static func bench(_ random: inout SplitMix) -> LedgerBench {
    let count = Int.random(in: 0...points.count, using: &random)
    var bench = LedgerBench(
      points: Array(points.prefix(count)), isUnion: Bool.random(using: &random))
    bench.see([(LedgerBench.here, "a", .key(1))])
    return bench
  }

  @Test(
    "no list is emptied, and no key comes on it that is denied, unseen, outvoted or of one voice's CA"
  )
  func publishing() {
    for seed in 0..<2000 as Range<UInt64> {
      var random = SplitMix(state: seed)
      var bench = Self.bench(&random)
      bench.context.denied = [pin(3)]
      let (points, quorum) = (bench.context.vantages.count - 1, bench.context.quorum)
      var witnesses: [SPKIPin: [String: Int64]] = [:]
      var isForeignKnown = false
      for _ in 0..<20 {
        let view = Self.view(bench, &random)
        let (before, seen) = (bench.endpointKeys.keys, Self.shown(view))
        let pause: Int64 = [2, 20, 60, 700, 86_400].randomElement(using: &random) ?? 2
        let done = bench.events.count
        bench.see(view, Int.random(in: 1...4, using: &random), every: pause)
        for (pin, vantages) in seen.by {
          for vantage in vantages { witnesses[pin, default: [:]][vantage] = bench.now }
        }
        Self.claim(!bench.endpointKeys.keys.isEmpty, seed, "the list is empty")
        for case .published(let key, _) in bench.events[done...] {
          let recent = Set(
            (witnesses[key] ?? [:]).filter { bench.now - $0.value <= LedgerBench.rule.window }.keys)
          let isForeign = (Self.foreign...12).contains { key == pin($0) }
          let others = seen.1.subtracting(recent)
          Self.claim(key != pin(3), seed, "a denied key is published")
          Self.claim(!before.contains { $0.pin == key }, seed, "a key is published twice")
          Self.claim(seen.by[key] != nil, seed, "a key is published that nobody sees")
          Self.claim(
            points == 0 || bench.context.isUnion || others.count < min(quorum, points), seed,
            "an outvoted key is published")
          Self.claim(
            !isForeign || isForeignKnown
              || (seen.by[key]?.count ?? 0) >= quorum
                && (seen.by[key]?.subtracting([LedgerBench.here]).count ?? 0)
                  >= min(quorum, points),
            seed,
            "too few have a new CA published")
          isForeignKnown = isForeignKnown || isForeign
        }
      }
    }
  }

  @Test("a steady key under a known CA is published with its third probe, whatever came before")
  func steady() {
    for seed in 0..<2000 as Range<UInt64> {
      var random = SplitMix(state: seed)
      var bench = Self.bench(&random)
      for _ in 0..<20 {
        bench.see(Self.view(bench, &random), every: [2, 60].randomElement(using: &random) ?? 2)
      }
      let areSilent = Bool.random(using: &random)
      let here = Self.addresses.map { (LedgerBench.here, $0, LedgerBench.Answer.key(20)) }
      let others = bench.context.vantages.subtracting([LedgerBench.here]).sorted().map {
        ($0, "", areSilent ? LedgerBench.Answer.silent : .key(20))
      }
      bench.see(here + others, 3)
      Self.claim(
        bench.endpointKeys.keys.contains { $0.pin == pin(20) }, seed, "it is not published")
    }
  }
}
