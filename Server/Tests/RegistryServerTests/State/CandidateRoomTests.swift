import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// More new keys than can wait at once.
@Suite("Among too many new keys") struct CandidateRoomTests {
  private static let here = LedgerBench.here

  /// So many keys, each at an address of its own.
  private static func crowd(
    _ keys: Range<UInt8>, under authority: UInt8 = 101, and more: LedgerBench.View = []
  ) -> LedgerBench.View {
    keys.map { (here, "\($0)", .key($0, under: authority)) } + more
  }

  private static func settled() -> LedgerBench {
    var bench = LedgerBench()
    bench.see([(here, "a", .key(1))])
    return bench
  }

  private static func dropped(_ bench: LedgerBench) -> Int {
    bench.events.count { if case .tooManyCandidates = $0 { true } else { false } }
  }

  @Test("one under a known CA is published within three probes, and somebody is told what gave way")
  func knownFirst() {
    var bench = Self.settled()
    bench.see(Self.crowd(10..<26), 3)
    #expect(bench.endpointKeys.held.count == EndpointKeys.maximumCandidates)
    #expect(Self.dropped(bench) == 0)
    bench.see([(Self.here, "a", .key(2))], 3)
    #expect(bench.keys == [1, 2])
    #expect(Self.dropped(bench) == 1)
  }

  @Test("one under a known CA is published though the others are shown beside it")
  func besideOthers() {
    var bench = Self.settled()
    bench.see(Self.crowd(10..<40, and: [(Self.here, "z", .key(2))]), 3)
    #expect(bench.keys == [1, 2])
  }

  @Test("one that is shown steadily is published though others under its CA come and go")
  func steady() {
    var bench = Self.settled()
    for key in UInt8(10)..<60 { bench.see([(Self.here, "a", .key(key))]) }
    bench.see(Self.crowd(60..<70, under: 100, and: [(Self.here, "z", .key(2))]))
    bench.see(Self.crowd(70..<80, under: 100, and: [(Self.here, "z", .key(2))]))
    bench.see(Self.crowd(80..<90, under: 100, and: [(Self.here, "z", .key(2))]))
    #expect(bench.keys == [1, 2])
  }

  @Test("one under another CA displaces none under a known one")
  func unknownWaits() {
    var bench = Self.settled()
    for key in UInt8(10)..<26 { bench.see([(Self.here, "a", .key(key))]) }
    bench.see([(Self.here, "a", .key(2, under: 101))])
    #expect(bench.endpointKeys.candidates[pin(2)] == nil)
    #expect(bench.endpointKeys.candidates.count == EndpointKeys.maximumCandidates)
    #expect(bench.events.last == .tooManyCandidates(pin(2)))
  }

  @Test(
    "the first that gives way is an alert and an entry of the history, and the others are neither")
  func told() {
    var state = DocumentState()
    let event = KeyEvent.tooManyCandidates(pin(2))
    #expect(event.isHistoric && !state.isTold(event, at: "a"))
    let isNew = state.noteAlerts(of: [event], at: "a", failures: 0, now: 100)
    #expect(isNew)
    #expect(state.alerts["a"]?.map(\.kind) == [.tooManyKeys])
    #expect(state.isTold(.tooManyCandidates(pin(3)), at: "a"))
    let before = Condition.alerts(of: state, [:], in: "f").map(\.identity)
    let isNews = state.noteAlerts(
      of: [.tooManyCandidates(pin(3))], at: "a", failures: 0, now: 200)
    #expect(!isNews)
    #expect(state.alerts["a"]?.map(\.since) == [200])
    #expect(Condition.alerts(of: state, [:], in: "f").map(\.identity) == before)
  }
}
