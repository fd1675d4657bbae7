import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// Denied keys above the leaf: clients refuse every path with one (evaluation rule 6).
@Suite("A denied key in a path") struct DeniedPathTests {
  private static let endpoint = WatchedEndpoint(fqdn: HostName.literal("a.example"))
  private static let id = endpoint.id
  private static let request = DocumentState.Request(who: "ada", at: 0, why: "")

  private static func at(_ answers: LedgerBench.Answer...) -> LedgerBench.View {
    answers.enumerated().map { (LedgerBench.here, "192.0.2.\($0.offset + 1):443", $0.element) }
  }

  /// Two addresses under two CAs, each with a key of its own or one for both.
  private static func two(sharing isShared: Bool = false) -> LedgerBench {
    var bench = LedgerBench()
    bench.endpointKeys = EndpointKeys(
      keys: [], authorities: [pin(100): bench.now, pin(101): bench.now])
    bench.see(at(.key(1), .key(isShared ? 1 : 2, under: 101)), 4, every: 60)
    return bench
  }

  private static func state(_ bench: LedgerBench) -> DocumentState {
    var state = DocumentState()
    state.keysByEndpoint[id] = bench.endpointKeys
    return state
  }

  private static func deny(
    _ number: UInt8, in state: inout DocumentState, at now: Int64, force: Bool = false
  ) -> AdministrationError? {
    do throws(AdministrationError) {
      _ = try state.deny(
        pin(number), configured: [endpoint], force: force, .init(who: "ada", at: now, why: ""))
      return nil
    } catch { return error }
  }

  private static let locked = AdministrationError.locksOut(["a.example", "*.a.example"])

  @Test(
    "locks the users of a silent address out, too: its path is remembered, also by a record",
    arguments: [true, false], [true, false])
  func silentAddress(sharing isShared: Bool, restarted: Bool) throws {
    var bench = Self.two(sharing: isShared)
    bench.see(Self.at(.key(1), .silent), 200, every: 60)
    var state = Self.state(bench)
    if restarted { state = try DocumentState(decoding: state.encoded, file: "a.json") }
    #expect(state.keysByEndpoint[Self.id]?.keys == bench.endpointKeys.keys)
    #expect(Self.deny(101, in: &state, at: bench.now) == Self.locked)
    #expect(Self.deny(100, in: &state, at: bench.now) == Self.locked)
    #expect(state.denied.isEmpty)
    #expect(Self.deny(101, in: &state, at: bench.now, force: true) == nil)
  }

  @Test("locks nobody out once the address shows another path, or the key has left")
  func leftPath() {
    var moved = Self.two()
    moved.see(Self.at(.key(1), .key(2)))
    var state = Self.state(moved)
    #expect(Self.deny(101, in: &state, at: moved.now) == nil)
    // A server behind a balancer may show it again; missed for as long as a withdrawn key, it does not.
    var replaced = Self.two()
    for (probes, isLocked) in [(20, true), (20, false)] {
      replaced.see(Self.at(.key(1), .key(1)), probes, every: 60)
      var state = Self.state(replaced)
      #expect(Self.deny(101, in: &state, at: replaced.now) == (isLocked ? Self.locked : nil))
    }
    // So does one that was shown for long, and is only kept for its grace time.
    var kept = Self.two()
    kept.see(Self.at(.key(1), .key(2, under: 101)), 48, every: 3600)
    for (probes, isLocked) in [(20, true), (400, false)] {
      kept.see(Self.at(.key(1), .key(1)), probes, every: 60)
      #expect(kept.endpointKeys.keys.map(\.pin).contains(pin(2)))
      var state = Self.state(kept)
      #expect(Self.deny(101, in: &state, at: kept.now) == (isLocked ? Self.locked : nil))
    }
    // Clients refuse a denied key whatever is above it.
    var refused = Self.state(Self.two())
    #expect(Self.deny(2, in: &refused, at: 0) == nil)
    #expect(Self.deny(101, in: &refused, at: 0) == nil)
    var revoked = Self.state(Self.two())
    revoked.keysByEndpoint[Self.id]?.withdraw(pin(2))
    #expect(Self.deny(101, in: &revoked, at: 0) == nil)
  }

  @Test("is forgotten with an address that the name has no longer, after the grace time")
  func goneAddress() {
    var bench = Self.two(sharing: true)
    for (days, isLocked) in [(6, true), (2, false)] as [(Int, Bool)] {
      bench.see(Self.at(.key(1)), days * 24, every: 3600)
      var state = Self.state(bench)
      #expect(Self.deny(101, in: &state, at: bench.now) == (isLocked ? Self.locked : nil))
    }
  }

  @Test("of an older record stands above the key until it is seen again")
  func olderRecord() throws {
    var state = Self.state(LedgerBench())
    let key =
      #"{"authorities":["\#(pin(7).base64)","\#(pin(8).base64)"],"firstSeen":1,"lastSeen":2,"pin":"\#(pin(1).base64)"}"#
    let record =
      #"{"added":[],"alerts":[],"denied":[],"document":"","domains":{"\#(Self.id)":{"keys":[\#(key)]}},"format":2,"overrides":{},"removed":[],"signed":0,"tombstones":{}}"#
    state = try DocumentState(decoding: [UInt8](record.utf8), file: "a.json")
    #expect(Self.deny(8, in: &state, at: 3) == Self.locked)
    var bench = LedgerBench()
    bench.endpointKeys = try #require(state.keysByEndpoint[Self.id])
    bench.see(Self.at(.key(1)))
    state = Self.state(bench)
    #expect(Self.deny(8, in: &state, at: bench.now) == nil)
  }

  @Test("keeps a new key off the list, and out of those that wait")
  func newKey() throws {
    var bench = Self.two()
    bench.context.denied = [pin(101)]
    bench.events = []
    bench.see(Self.at(.key(1), .key(3, under: 101)), 10)
    #expect(bench.keys == [1, 2])
    #expect(bench.endpointKeys.candidates.isEmpty)
    #expect(Set(bench.events) == [.deniedAuthoritySeen(pin(101))])
    // Where it has another path it counts.
    bench.see(Self.at(.key(3), .key(3, under: 101)), 10)
    #expect(bench.keys == [1, 2, 3])
    var first = LedgerBench()
    first.context.denied = [pin(101)]
    first.see(Self.at(.key(1, under: 101)), 3)
    #expect(first.keys == [])
  }

  @Test("ends the waiting of a held key under it")
  func heldKey() {
    var bench = Self.two()
    bench.see(Self.at(.key(1), .key(3, under: 102)), 4)
    var state = Self.state(bench)
    state.raise(ServerAlert(kind: .keyHeld, endpoint: Self.id, pin: pin(3), message: "", since: 0))
    #expect(bench.endpointKeys.held[pin(3)] != nil)
    #expect(Self.deny(102, in: &state, at: bench.now) == nil)
    #expect(state.keysByEndpoint[Self.id]?.candidates.isEmpty == true)
    #expect(state.alerts.isEmpty)
  }

  @Test("above a live key is told for as long as it stands there, also by a silent address")
  func told() {
    var bench = LedgerBench()
    bench.see(Self.at(.key(1)))
    bench.context.denied = [pin(102)]
    var state = DocumentState()
    func alerts(_ view: LedgerBench.View) -> [SPKIPin?] {
      bench.events = []
      bench.see(view)
      state.keysByEndpoint[Self.id] = bench.endpointKeys
      _ = state.noteAlerts(of: bench.events, at: Self.id, failures: 0, now: bench.now)
      return state.alerts[Self.id]?.filter { $0.kind == .deniedKeySeen }.map(\.pin) ?? []
    }
    #expect(alerts(Self.at(.key(1))) == [])
    #expect(alerts(Self.at(.key(1, under: 102))) == [pin(102)])
    #expect(bench.keys == [1])
    #expect(state.isTold(.deniedAuthoritySeen(pin(102)), at: Self.id))
    for view in [Self.at(.silent), Self.at(.refused)] { #expect(alerts(view) == [pin(102)]) }
    #expect(alerts(Self.at(.key(1))) == [])
  }

  @Test("leaves a key of no use, so the last good one is not denied or revoked beside it")
  func lastGoodKey() {
    let bench = Self.two()
    var state = Self.state(bench)
    #expect(Self.deny(101, in: &state, at: bench.now, force: true) == nil)
    let bare = AdministrationError.leavesWithoutPin(["a.example", "*.a.example"])
    #expect(Self.deny(1, in: &state, at: bench.now) == bare)
    #expect(throws: bare) {
      try state.revoke(
        pin(1), at: Self.id, configured: [Self.endpoint], force: false, Self.request)
    }
    // The one that clients refuse already may go.
    #expect(Self.deny(2, in: &state, at: bench.now) == nil)
  }

  @Test("is the path of the server that saw it last, where two know one")
  func merged() {
    let base = Self.two(sharing: true)
    var (own, theirs) = (base, base)
    own.see(Self.at(.key(1), .silent))
    theirs.see(Self.at(.key(1), .key(1)), 2)
    for merged in [
      own.endpointKeys.merging(theirs.endpointKeys, base: base.endpointKeys),
      theirs.endpointKeys.merging(own.endpointKeys, base: base.endpointKeys),
    ] {
      #expect(merged.keys.flatMap(\.paths.values) == [[pin(100)], [pin(100)]])
    }
    #expect(
      theirs.endpointKeys.isWorthStoring(
        over: base.endpointKeys, at: theirs.now, rule: LedgerBench.rule))
  }
}
