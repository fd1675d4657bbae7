import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A host that an endpoint leaves alone, and goes on for others")
struct LeftAloneTests:
  HeirScene
{
  let bench = MachineBench()
  private var wide: WatchedEndpoint { endpoint(2, "*.x.test") }
  private var both: WatchedEndpoint { endpoint(1, "a.x.test", "m.test") }
  private var narrow: WatchedEndpoint { endpoint(1, "m.test") }
  private var named: WatchedEndpoint { endpoint(4, "a.x.test") }
  private var other: WatchedEndpoint { endpoint(3, "o.test") }
  private var elsewhere: WatchedEndpoint { endpoint(4, "a.x.test") }

  /// The host listed, and then left alone by an edit of the endpoint's patterns.
  private func alone(at now: Int64, isRestart: Bool) -> MachineServer {
    let server = start([both], at: now)
    show(1, under: 101, at: both, server, now)
    return configure(server, [narrow], isRestart: isRestart, at: now + 60)
  }

  @Test("stays listed below a wildcard that comes later", arguments: [false, true])
  func wildcard(isRestart: Bool) {
    let now = Self.begin
    var server = alone(at: now, isRestart: isRestart)
    #expect(listed("a.x.test", by: server) == [pin(1)])
    server = configure(server, [narrow, wide], isRestart: isRestart, at: now + 61)
    show(3, under: 101, at: wide, server, now + 62)
    #expect(listed("a.x.test", by: server) == [pin(1)])
    #expect(listed("*.x.test", by: server) == [pin(3)])
  }

  @Test("is in the first statement of a new key set, and is told", arguments: [false, true])
  func epoch(isRestart: Bool) {
    let server = alone(at: Self.begin, isRestart: isRestart)
    let state = server.machine.state
    let carried = DocumentContent(state, endpoints: [narrow]).entries
    #expect(carried.map { "\($0.pattern)" } == ["m.test", "a.x.test"])
    let alerts = state.markingWhoLeft([narrow]).alerts[narrow.id] ?? []
    #expect(alerts.map(\.kind) == [.leftConfiguration])
    #expect(alerts.first?.message.contains("a.x.test") == true)
  }

  @Test(
    "comes back elsewhere with its key, and under another CA nothing is a first sight",
    arguments: [false, true])
  func elsewhere(isRestart: Bool) {
    let now = Self.begin
    var server = alone(at: now, isRestart: isRestart)
    server = configure(server, [narrow, elsewhere], isRestart: isRestart, at: now + 61)
    for _ in 0..<4 { show(7, under: 107, at: elsewhere, server, now + 62) }
    #expect(listed("a.x.test", by: server) == [pin(1)])
    for second in 63...66 as ClosedRange<Int64> {
      show(2, under: 101, at: elsewhere, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == [pin(1), pin(2)])
  }

  @Test("also if its endpoint has another key by then")
  func rotated() {
    let now = Self.begin
    var server = alone(at: now, isRestart: false)
    for second in 61...64 as ClosedRange<Int64> {
      show(5, under: 101, at: narrow, server, now + second)
    }
    // The grace time of the first key passes.
    for hour in 1...200 as ClosedRange<Int64> {
      show(5, under: 101, at: narrow, server, now + hour * 3600)
    }
    #expect(listed("m.test", by: server) == [pin(5)])
    server = configure(server, [narrow, elsewhere], isRestart: false, at: now + 201 * 3600)
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test(
    "is what the store said last, also if that has an older record now", arguments: [false, true])
  func olderRecord(isRestart: Bool) {
    let now = Self.begin
    let other = endpoint(3, "o.test")
    let server = start([both, other], at: now)
    show(9, under: 109, at: other, server, now)
    let before = bench.record
    show(1, under: 101, at: both, server, now)
    server.configure([narrow, other], at: now + 60)
    server.rest(at: now + 60)
    bench.goBack(to: before)
    server.upkeep()
    server.rest(at: now + 61)
    server.configure([narrow, other, wide], at: now + 62)
    server.rest(at: now + 62)
    show(3, under: 101, at: wide, server, now + 63)
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test("is listed no more where a store goes back to before somebody took it out")
  func takenOutSince() {
    let now = Self.begin
    let server = start([named, other], at: now)
    show(1, under: 101, at: named, server, now)
    show(9, under: 109, at: other, server, now)
    server.configure([other], at: now + 60)
    server.rest(at: now + 60)
    let before = bench.record
    let (id, request) = (named.id, DocumentState.Request(who: "ada", at: now, why: ""))
    perform(server, at: now + 61) { state, configured throws(AdministrationError) in
      try state.remove(id, configured: configured, request)
    }
    #expect(listed("a.x.test", by: server).isEmpty)
    bench.goBack(to: before)
    server.upkeep()
    server.rest(at: now + 62)
    #expect(server.machine.state.orphans.isEmpty)
    #expect(listed("a.x.test", by: server).isEmpty)
  }

  @Test("is not forgotten where a store that was put back does not know yet that it left")
  func copy() throws {
    let now = Self.begin
    let server = start([named, other], at: now)
    show(1, under: 101, at: named, server, now)
    show(9, under: 109, at: other, server, now)
    let before = bench.record
    server.configure([other], at: now + 60)
    server.rest(at: now + 60)
    bench.goBack(to: before)
    server.restart()
    server.rest(at: now + 61)
    server.upkeep()
    server.rest(at: now + 61)
    server.configure([other, wide], at: now + 62)
    server.rest(at: now + 62)
    show(3, under: 101, at: wide, server, now + 63)
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test("stays listed below a wildcard where a store goes back to before somebody added it")
  func addedSince() {
    let now = Self.begin
    let server = start([other, wide], at: now)
    show(9, under: 109, at: other, server, now)
    show(3, under: 101, at: wide, server, now)
    let before = bench.record
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    perform(server, at: now) { [named] state, configured throws(AdministrationError) in
      try state.add(named, configured: configured, request)
    }
    for _ in 0..<3 { show(1, under: 101, at: named, server, now + 1) }
    #expect(listed("a.x.test", by: server) == [pin(1)])
    bench.goBack(to: before)
    server.upkeep()
    server.rest(at: now + 2)
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test("has all keys of a newer copy, though the store went back to before one of them")
  func newerCopy() throws {
    let now = Self.begin
    let server = start([named, other, wide], at: now)
    show(3, under: 101, at: wide, server, now)
    for _ in 0..<3 { show(1, under: 101, at: named, server, now) }
    show(9, under: 109, at: other, server, now)
    let before = bench.record
    for second in 1...3 as ClosedRange<Int64> {
      show(5, under: 101, at: named, server, now + second)
    }
    server.configure([other, wide], at: now + 60)
    server.rest(at: now + 60)
    #expect(listed("a.x.test", by: server) == [pin(1), pin(5)])
    bench.goBack(to: before)
    server.restart()
    server.rest(at: now + 61)
    server.upkeep()
    server.rest(at: now + 61)
    #expect(listed("a.x.test", by: server) == [pin(1), pin(5)])
    #expect(server.machine.state.orphans(of: named.id).count == 1)
  }

  @Test("whose last key was revoked has none of a wildcard that left above it")
  func ghost() {
    let now = Self.begin
    let server = start([named, other, wide], at: now)
    show(3, under: 101, at: wide, server, now)
    for _ in 0..<3 { show(1, under: 101, at: named, server, now) }
    show(9, under: 109, at: other, server, now)
    server.configure([named, other], at: now + 60)
    server.rest(at: now + 60)
    let request = DocumentState.Request(who: "ada", at: now + 61, why: "leaked")
    perform(server, at: now + 61) { [id = named.id] state, configured throws(AdministrationError) in
      try state.revoke(pin(1), at: id, configured: configured, force: true, request)
    }
    server.configureAgain(at: now + 62)
    server.upkeep()
    server.rest(at: now + 62)
    #expect(listed("a.x.test", by: server).isEmpty)
    server.configure([named, other, endpoint(9, "z.test")], at: now + 63)
    server.rest(at: now + 63)
    #expect(listed("a.x.test", by: server).isEmpty)
  }

  @Test("does not lose its last key with one that its endpoint retired, unless that is forced")
  func lastKey() throws {
    let now = Self.begin
    let server = alone(at: now, isRestart: false)
    for second in 61...64 as ClosedRange<Int64> {
      show(5, under: 101, at: narrow, server, now + second)
    }
    var state = server.machine.state
    let request = DocumentState.Request(who: "ada", at: now + 65, why: "")
    #expect(throws: AdministrationError.leavesWithoutPin(["a.x.test"])) {
      try state.revoke(pin(1), at: narrow.id, configured: [narrow], force: false, request)
    }
    _ = try state.revoke(pin(1), at: narrow.id, configured: [narrow], force: true, request)
  }

  @Test("by a wildcard asks nothing of hosts below it that ask for something else")
  func wildcardTerms() {
    let now = Self.begin
    var asking = wide
    asking.terms = HostTerms(ca: NamedIssuers(pins: [pin(101)]))
    let server = start([asking, other], at: now)
    show(3, under: 101, at: asking, server, now)
    show(9, under: 109, at: other, server, now)
    func carried(_ endpoints: [WatchedEndpoint]) -> [String] {
      DocumentContent(server.machine.state, endpoints: endpoints).hosts.map {
        "\($0.pattern)"
      }
    }
    // Also if the statement that says so last is followed by one of another key set.
    #expect(carried([other]) == ["*.x.test"])
    #expect(carried([other, named]).isEmpty)
    server.configure([other], at: now + 60)
    server.rest(at: now + 60)
    func told(_ endpoints: [WatchedEndpoint]) -> Bool {
      server.machine.state.markingWhoLeft(endpoints).alerts[asking.id]?.contains {
        $0.kind == .leftConfiguration && $0.message.contains("below *.x.test ask")
      } == true
    }
    #expect(told([other, named]) && !told([other]))
    func asked(beside endpoints: [WatchedEndpoint]) -> [String] {
      server.configure(endpoints, at: now + 61)
      server.rest(at: now + 61)
      var state = server.machine.state
      state.number = .init(epoch: 1, version: 1)
      return DocumentContent(state, endpoints: endpoints).hosts.map { "\($0.pattern)" }
    }
    #expect(asked(beside: [other]) == ["*.x.test"])
    #expect(asked(beside: [other, named]).isEmpty)
    show(1, under: 101, at: named, server, now + 62)
    #expect(
      server.machine.state.conflict(among: [other, named]).map { "\($0.one) \($0.other)" }
        == "\(wide.id) for *.x.test \(named.id)")
    // Also once the host below has vanished, too.
    #expect(asked(beside: [other]).isEmpty)
  }

  @Test("that is added at another place has no first sight")
  func added() {
    let now = Self.begin
    let server = alone(at: now, isRestart: false)
    let request = DocumentState.Request(who: "ada", at: now + 61, why: "")
    perform(server, at: now + 61) { [elsewhere] state, configured throws(AdministrationError) in
      try state.add(elsewhere, configured: configured, request)
    }
    for second in 62...66 as ClosedRange<Int64> {
      show(7, under: 107, at: elsewhere, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test("loses a key that its endpoint's probes withdraw, and until then people are told of it")
  func withdrawn() {
    let now = Self.begin
    let server = start([both, wide], at: now)
    show(1, under: 101, at: both, server, now)
    show(3, under: 101, at: wide, server, now)
    for second in 1...4 as ClosedRange<Int64> {
      show(7, under: 101, at: both, server, now + second)
    }
    server.configure([narrow, wide], at: now + 5)
    server.rest(at: now + 5)
    #expect(listed("a.x.test", by: server) == [pin(1), pin(7)])
    let told = server.machine.state.markingWhoLeft([narrow, wide]).alerts[narrow.id] ?? []
    #expect(told.contains { $0.message.contains(pin(7).base64) && $0.kind == .leftConfiguration })
    for step in 1...60 as ClosedRange<Int64> {
      show(1, under: 101, at: narrow, server, now + 5 + 20 * step)
    }
    #expect(listed("m.test", by: server) == [pin(1)])
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test("below a wildcard that is added lends that its CAs: no other CA's is a first sight")
  func wildcardAdded() {
    let now = Self.begin
    let server = alone(at: now, isRestart: false)
    let request = DocumentState.Request(who: "ada", at: now + 61, why: "")
    perform(server, at: now + 61) { [wide] state, configured throws(AdministrationError) in
      try state.add(wide, configured: configured, request)
    }
    for second in 62...66 as ClosedRange<Int64> {
      show(7, under: 107, at: wide, server, now + second)
    }
    #expect(listed("*.x.test", by: server).isEmpty)
  }

  @Test("keeps the terms that a person set, also if its endpoint has another key by then")
  func terms() {
    let now = Self.begin
    let asks = HostTerms(ca: NamedIssuers(pins: [pin(101)]))
    let server = start([both], at: now)
    show(1, under: 101, at: both, server, now)
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    perform(server, at: now) { [id = both.id] state, configured throws(AdministrationError) in
      try state.setTerms(asks, of: id, configured: configured, force: true, request)
    }
    server.configure([narrow], at: now + 60)
    server.rest(at: now + 60)
    for second in 61...63 as ClosedRange<Int64> {
      show(5, under: 101, at: narrow, server, now + second)
    }
    let before = server.machine.state
    #expect((try? DocumentState(reading: before.encoded))?.orphans == before.orphans)
    server.configure([narrow, elsewhere], at: now + 70)
    server.rest(at: now + 70)
    #expect(server.machine.endpoints.first { $0.id == elsewhere.id }?.terms == asks)
  }

  @Test("of which only an announced key is listed stays below a wildcard")
  func announced() {
    let now = Self.begin
    let other = endpoint(3, "o.test")
    var server = start([other], at: now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [elsewhere, other], isRestart: false, at: now)
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    perform(server, at: now) { [id = elsewhere.id] state, _ throws(AdministrationError) in
      try state.stage(pin(1), at: id, request)
    }
    #expect(listed("a.x.test", by: server) == [pin(1)])
    server = configure(server, [other], isRestart: true, at: now + 60)
    server = configure(server, [other, wide], isRestart: true, at: now + 61)
    show(3, under: 101, at: wide, server, now + 62)
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }
}

@Suite("Who takes a host's place") struct TakenPlaceTests: HeirScene {
  let bench = MachineBench()
  private var wide: WatchedEndpoint { endpoint(2, "*.x.test") }
  private var named: WatchedEndpoint { endpoint(1, "a.x.test") }
  private var moved: WatchedEndpoint { endpoint(4, "a.x.test") }
  private var other: WatchedEndpoint { endpoint(3, "o.test") }

  private func listing(at now: Int64) -> MachineServer {
    let server = start([named, other], at: now)
    show(1, under: 101, at: named, server, now)
    show(9, under: 109, at: other, server, now)
    return server
  }

  @Test("as a new wildcard has its CAs, in one edit and in two", arguments: [1, 2], [false, true])
  func wildcard(edits: Int, isRestart: Bool) {
    let now = Self.begin
    var server = listing(at: now)
    if edits == 2 { server = configure(server, [other], isRestart: isRestart, at: now + 60) }
    server = configure(server, [other, wide], isRestart: isRestart, at: now + 61)
    for second in 62...66 as ClosedRange<Int64> {
      show(7, under: 107, at: wide, server, now + second)
    }
    #expect(listed("*.x.test", by: server).isEmpty)
    show(3, under: 101, at: wide, server, now + 67)
    for second in 68...70 as ClosedRange<Int64> {
      show(3, under: 101, at: wide, server, now + second)
    }
    #expect(listed("*.x.test", by: server) == [pin(3)])
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test(
    "whose only key was denied has no first sight, and a person decides if one did",
    arguments: [1, 2], [false, true])
  func denied(edits: Int, isManual: Bool) {
    let now = Self.begin
    var server = listing(at: now)
    let request = DocumentState.Request(who: "ada", at: now, why: "stolen")
    perform(server, at: now) { [id = named.id] state, configured throws(AdministrationError) in
      if isManual {
        _ = state.change(id, interval: nil, approval: .manual, isPaused: nil, request)
      }
      return try state.deny(pin(1), configured: configured, force: true, request)
    }
    #expect(listed("a.x.test", by: server).isEmpty)
    if edits == 2 { server = configure(server, [other], isRestart: true, at: now + 60) }
    server = configure(server, [other, moved], isRestart: true, at: now + 61)
    for second in 62...66 as ClosedRange<Int64> {
      show(7, under: 107, at: moved, server, now + second)
    }
    #expect(listed("a.x.test", by: server).isEmpty)
    for second in 67...70 as ClosedRange<Int64> {
      show(2, under: 101, at: moved, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == (isManual ? [] : [pin(2)]))
  }

  @Test(
    "has no key that was revoked, its last one or a wildcard's of before, also not under another key set"
  )
  func revoked() {
    let now = Self.begin
    let server = listing(at: now)
    let request = DocumentState.Request(who: "ada", at: now, why: "leaked")
    perform(server, at: now) { [id = named.id] state, configured throws(AdministrationError) in
      try state.revoke(pin(1), at: id, configured: configured, force: true, request)
    }
    for _ in 0..<2 {
      #expect(listed("a.x.test", by: server).isEmpty)
      server.configureAgain(at: now + 1)
      server.upkeep()
      server.rest(at: now + 1)
    }
    // Its first again.
    show(2, under: 101, at: named, server, now + 2)
    #expect(listed("a.x.test", by: server) == [pin(2)])
    // Its wildcard leaves, and it is listed with that one's key.
    for second in 3...5 as ClosedRange<Int64> {
      show(3, under: 101, at: named, server, now + second)
    }
    server.configure([named, wide, other], at: now + 6)
    server.rest(at: now + 6)
    for second in 7...9 as ClosedRange<Int64> {
      show(3, under: 101, at: wide, server, now + second)
    }
    server.configure([named, other], at: now + 10)
    server.rest(at: now + 10)
    perform(server, at: now + 11) { [id = named.id] state, configured throws(AdministrationError) in
      try state.revoke(pin(3), at: id, configured: configured, force: true, request)
    }
    var state = server.machine.state
    state.number = .init(epoch: 1, version: 1)
    let content = DocumentContent(state, endpoints: [named, other])
    #expect(!content.entries.contains { $0.pin == pin(3) })
  }

  @Test("keeps a key that nobody announced, and people are told which")
  func brief() {
    let now = Self.begin
    var server = start([named, wide, other], at: now)
    show(1, under: 101, at: named, server, now)
    show(9, under: 109, at: other, server, now)
    show(3, under: 101, at: wide, server, now)
    for second in 1...4 as ClosedRange<Int64> {
      show(7, under: 101, at: named, server, now + second)
    }
    // One probe that misses it: it may be a server of a pool.
    show(1, under: 101, at: named, server, now + 5)
    server = configure(server, [wide, other], isRestart: true, at: now + 6)
    #expect(listed("a.x.test", by: server) == [pin(1), pin(7)])
    let told = server.machine.state.markingWhoLeft([wide, other]).alerts[named.id] ?? []
    #expect(told.contains { $0.message.contains(pin(7).base64) })
  }
}
