import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A staged key") struct StagedKeyTests {
  private static let rule = ConfirmationRule(probes: 3, window: 600, grace: 7200)
  private static let staging = KnownKey.Staging(at: 5, by: "ada", note: "the next one")

  private func endpointKeys() -> EndpointKeys {
    var endpointKeys = EndpointKeys(keys: [KnownKey(pin: pin(1), firstSeen: 0, lastSeen: 0)])
    endpointKeys.stage(pin(2), Self.staging)
    return endpointKeys
  }

  @Test("is published at once, and stands as staged")
  func published() {
    let endpointKeys = endpointKeys()
    #expect(endpointKeys.keys.map(\.pin) == [pin(1), pin(2)])
    #expect(endpointKeys.keys.map(\.state) == [.active, .staged])
  }

  @Test("is in use with the first probe that shows it: nobody has to confirm what was announced")
  func activated() {
    var endpointKeys = endpointKeys()
    #expect(endpointKeys.enter(.accepted(pin(2)), at: 10, rule: Self.rule) == [.activated(pin(2))])
    #expect(endpointKeys.keys.map(\.state) == [.retiring, .active])
    #expect(endpointKeys.enter(.accepted(pin(2)), at: 11, rule: Self.rule) == [])
  }

  @Test("stays however long nobody shows it")
  func stays() {
    var endpointKeys = endpointKeys()
    for hour in 1...1000 {
      _ = endpointKeys.enter(.accepted(pin(1)), at: Int64(hour) * 3600, rule: Self.rule)
    }
    #expect(endpointKeys.keys.map(\.state) == [.active, .staged])
  }

  @Test("is no key that would let the last one in use go")
  func lastKey() {
    var endpointKeys = endpointKeys()
    for hour in 1...20 {
      _ = endpointKeys.enter(.accepted(pin(9)), at: Int64(hour) * 3000, rule: Self.rule)
    }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1), pin(2)])
  }

  @Test("makes the first key that is seen a changed one")
  func aloneOnTheList() {
    var endpointKeys = EndpointKeys()
    endpointKeys.stage(pin(2), Self.staging)
    #expect(
      endpointKeys.enter(.accepted(pin(3)), at: 10, rule: Self.rule)
        == [.waiting(pin(3), probes: 1, needed: 3)])
  }

  @Test("is one of so many: whoever may announce keys of a host fills no document with them")
  func bounded() throws {
    let request = DocumentState.Request(who: "renewal", at: 5, why: "")
    var state = DocumentState()
    state.keysByEndpoint["a:443"] = EndpointKeys(
      keys: [KnownKey(pin: pin(255), firstSeen: 0, lastSeen: 0)])
    for byte in 0..<UInt8(EndpointKeys.maximumStaged) {
      _ = try state.stage(pin(byte), at: "a:443", request)
    }
    let full = state
    #expect(throws: AdministrationError.tooManyAnnounced("a:443", EndpointKeys.maximumStaged)) {
      try state.stage(pin(200), at: "a:443", request)
    }
    #expect(state == full)
    // Another endpoint's wait for themselves, and what is seen waits no more.
    _ = try state.stage(pin(200), at: "b:443", request)
    _ = state.keysByEndpoint["a:443"]?.enter(.accepted(pin(0)), at: 10, rule: Self.rule)
    _ = try state.stage(pin(200), at: "a:443", request)
  }

  @Test("may have been in use before: one that is about to leave stays for its next use")
  func announcedAgain() throws {
    let request = DocumentState.Request(who: "ada", at: 30, why: "")
    var state = DocumentState()
    state.keysByEndpoint["a"] = endpointKeys()
    #expect(throws: AdministrationError.keyExists(pin(1))) {
      try state.stage(pin(1), at: "a", request)
    }
    for second in [10, 20] as [Int64] {
      _ = state.keysByEndpoint["a"]?.enter(.accepted(pin(2)), at: second, rule: Self.rule)
    }
    let before = try #require(state.keysByEndpoint["a"])
    #expect(throws: AdministrationError.keyExists(pin(2))) {
      try state.stage(pin(2), at: "a", request)
    }
    _ = try state.stage(pin(1), at: "a", request)
    var after = try #require(state.keysByEndpoint["a"])
    // Another server that leads has not read of it yet.
    for merged in [before.merging(after, base: before), after.merging(before, base: before)] {
      #expect(Set(merged.keys.map(\.state)) == [.active, .staged])
    }
    // Nor a probe there that ended its last use.
    var gone = before
    gone.withdraw(pin(1))
    #expect(gone.merging(after, base: before).keys.map(\.pin).contains(pin(1)))
    for hour in 1...1000 {
      _ = after.enter(.accepted(pin(2)), at: Int64(hour) * 3600, rule: Self.rule)
    }
    #expect(Set(after.keys.map(\.pin)) == [pin(1), pin(2)])
  }

  @Test("may have been seen last by a clock that is ahead of the one by which it is announced anew")
  func announcedBehind() throws {
    var before = EndpointKeys()
    for (time, key) in [(500, 1), (510, 2), (512, 2), (514, 2)] as [(Int64, UInt8)] {
      _ = before.enter(.accepted(pin(key)), at: time, rule: Self.rule)
    }
    #expect(before.keys.map(\.state) == [.retiring, .active])
    var state = DocumentState()
    state.keysByEndpoint["a"] = before
    _ = try state.stage(pin(1), at: "a", DocumentState.Request(who: "ada", at: 400, why: ""))
    let after = try #require(state.keysByEndpoint["a"])
    for merged in [before.merging(after, base: before), after.merging(before, base: before)] {
      #expect(Set(merged.keys.map(\.state)) == [.active, .staged])
    }
    // A server that has seen it since ends the announcement.
    var seen = before
    _ = seen.enter(.accepted(pin(1)), at: 520, rule: Self.rule)
    #expect(!seen.merging(after, base: before).keys.contains { $0.staged != nil })
  }

  @Test("may be listed because it was seen: announced, it is not withdrawn when it is gone again")
  func announcedInUse() throws {
    let request = DocumentState.Request(who: "ada", at: 105, why: "")
    for isAnnounced in [false, true] {
      var state = DocumentState()
      var endpointKeys = EndpointKeys()
      for (time, key) in [(0, 1), (100, 2), (102, 2), (104, 2)] as [(Int64, UInt8)] {
        _ = endpointKeys.enter(.accepted(pin(key)), at: time, rule: Self.rule)
      }
      state.keysByEndpoint["a"] = endpointKeys
      state.alerts["a"] = [
        ServerAlert(
          kind: .unannouncedKey, endpoint: "a", pin: pin(2), message: "it is published", since: 104)
      ]
      if isAnnounced {
        let entries = try state.stage(pin(2), at: "a", request)
        #expect(entries.map(\.event) == ["key_staged"] && entries.map(\.who) == ["ada"])
        #expect(state.alerts["a"]?.isEmpty ?? true)
        // It is in use all the same. From then on it exists.
        #expect(state.keysByEndpoint["a"]?.keys.map(\.state) == [.retiring, .active])
        #expect(throws: AdministrationError.keyExists(pin(2))) {
          try state.stage(pin(2), at: "a", request)
        }
      }
      var events: [KeyEvent] = []
      for probe in 1...40 {
        events +=
          state.keysByEndpoint["a"]?.enter(
            .accepted(pin(1)), at: 104 + Int64(probe) * 20, rule: Self.rule) ?? []
      }
      #expect(events.contains(.withdrawn(pin(2))) == !isAnnounced)
      #expect(state.keysByEndpoint["a"]?.keys.contains { $0.pin == pin(2) } == isAnnounced)
    }
  }

  @Test("says nothing of a CA: alone on the list, another key waits for a person")
  func vouchesForNoCA() {
    var bench = LedgerBench()
    bench.endpointKeys.stage(pin(2), Self.staging)
    bench.see([(LedgerBench.here, "", .key(3))], 5)
    #expect(bench.keys == [2])
    #expect(bench.events.contains(.held(pin(3), [.newIssuer])))
    // Once it is seen, its CA is known.
    bench.see([(LedgerBench.here, "", .key(2))])
    bench.see([(LedgerBench.here, "", .key(3))])
    #expect(bench.keys == [2, 3])
  }

  @Test(
    "brings no CA if it was announced by somebody who may do nothing else, until a person speaks for it"
  )
  func bringsNoCA() throws {
    let request = DocumentState.Request(who: "ada", at: LedgerBench().now, why: "")
    func bench(
      bringsCA: Bool = false, _ said: (inout DocumentState) throws -> Void = { _ in }
    ) throws -> LedgerBench {
      var bench = LedgerBench()
      bench.see([(LedgerBench.here, "", .key(1))])
      bench.endpointKeys.stage(pin(2), Self.staging, bringsCA: bringsCA)
      bench.see([(LedgerBench.here, "", .key(2, under: 200))])
      #expect(bench.events.last == .activated(pin(2), isUnderNewCA: !bringsCA))
      var state = DocumentState()
      state.keysByEndpoint["a"] = bench.endpointKeys
      try said(&state)
      bench.endpointKeys = try #require(state.keysByEndpoint["a"])
      bench.see([(LedgerBench.here, "", .key(2, under: 200))])
      bench.see([(LedgerBench.here, "", .key(3, under: 200))], 3)
      return bench
    }
    // Nobody waits for the key itself, and what is under the CA from before is published.
    var stolen = try bench()
    #expect(stolen.keys == [1, 2] && stolen.events.last == .held(pin(3), [.newIssuer]))
    stolen.see([(LedgerBench.here, "", .key(4))], 3)
    #expect(stolen.keys == [1, 2, 4])
    // Announced again it brings no more, nor once it was denied.
    let again = try bench { state in
      let made = try? state.stage(pin(2), at: "a", bringsCA: false, request)
      #expect(made == nil)
      _ = try state.deny(pin(2), configured: [], force: true, request)
      _ = try state.allow(pin(2), request)
    }
    #expect(again.keys == [1, 2])
    let others = [
      try bench(bringsCA: true), try bench { _ = try $0.approve(pin(2), at: "a", request) },
      try bench { _ = try $0.stage(pin(2), at: "a", request) },
    ]
    for other in others { #expect(other.keys == [1, 2, 3]) }
  }

  @Test("that was revoked leaves no CA behind that only it was shown under")
  func revokedCA() {
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "", .key(1))])
    bench.endpointKeys.stage(pin(2), Self.staging, bringsCA: false)
    bench.see([(LedgerBench.here, "", .key(2, under: 200))])
    bench.endpointKeys.withdraw(pin(2))
    bench.see([(LedgerBench.here, "", .key(1))])
    bench.see([(LedgerBench.here, "", .key(3, under: 200))], 3)
    #expect(bench.keys == [1] && bench.events.last == .held(pin(3), [.newIssuer]))
  }

  @Test(
    "brings its CA once a quorum of vantage points has seen it in as many probes as a key takes")
  func secondedCA() {
    let all: LedgerBench.View = [LedgerBench.here, "a", "b"].map { ($0, "", .key(2, under: 200)) }
    for (times, points, isKnown) in [
      (3, ["a", "b"], true), (2, ["a", "b"], false), (3, ["a"], false),
    ] as [(Int, [String], Bool)] {
      var bench = LedgerBench(points: ["a", "b"])
      bench.see([LedgerBench.here, "a", "b"].map { ($0, "", .key(1)) })
      bench.endpointKeys.stage(pin(2), Self.staging, bringsCA: false)
      let view = all.filter { $0.vantage == LedgerBench.here || points.contains($0.vantage) }
      bench.see(view, times)
      // Not in a row.
      bench.see([(LedgerBench.here, "", .key(2, under: 200))])
      bench.see(view, 2)
      #expect((bench.endpointKeys.authorities[pin(200)] != nil) == isKnown, "\(times) \(points)")
    }
    // Nor is this server a quorum where there are no points.
    var alone = LedgerBench()
    alone.see([(LedgerBench.here, "", .key(1))])
    alone.endpointKeys.stage(pin(2), Self.staging, bringsCA: false)
    alone.see([(LedgerBench.here, "", .key(2, under: 200))], 5)
    #expect(alone.endpointKeys.authorities[pin(200)] == nil)
    // Under a CA that is named it needs nobody, nor at first sight.
    alone.context.issuers = [pin(200)]
    alone.see([(LedgerBench.here, "", .key(2, under: 200))])
    #expect(alone.endpointKeys.authorities[pin(200)] != nil)
    var first = LedgerBench()
    first.endpointKeys.stage(pin(2), Self.staging, bringsCA: false)
    first.see([(LedgerBench.here, "", .key(2, under: 200))])
    #expect(first.endpointKeys.authorities[pin(200)] != nil)
    first.see([(LedgerBench.here, "", .key(2, under: 201))], 3)
    #expect(first.endpointKeys.authorities[pin(201)] == nil)
  }

  @Test("that brings no CA brings none after a restart, nor by another server's record")
  func bringsNoCAKept() throws {
    let before = endpointKeys()
    var own = EndpointKeys(keys: [KnownKey(pin: pin(1), firstSeen: 0, lastSeen: 0)])
    own.stage(pin(2), Self.staging, bringsCA: false)
    let read = try EndpointKeys(try StateReader(own.json, "a"))
    #expect(read.keys.map(\.bringsNoCA) == [false, true])
    #expect(own.merging(read, base: own).keys.map(\.bringsNoCA) == [false, true])
    // Whoever decides said otherwise to one of them.
    #expect(own.merging(before, base: own).keys.map(\.bringsNoCA) == [false, false])
    #expect(before.isWorthStoring(over: own, at: 5, rule: Self.rule))
    #expect(!read.isWorthStoring(over: own, at: 5, rule: Self.rule))
  }

  @Test("that nobody shows is told after a week, for a week, until it is shown or revoked")
  func unshown() {
    let day: Int64 = 86_400
    func told(_ state: DocumentState) -> [SPKIPin?] {
      (state.alerts["a"] ?? []).filter { $0.kind == .stagedKeyUnshown }.map(\.pin)
    }
    func after(_ days: Int64, _ change: (inout EndpointKeys?) -> Void = { _ in }) -> DocumentState {
      var state = DocumentState()
      state.keysByEndpoint["a"] = endpointKeys()
      let now = Self.staging.at + days * day
      _ = state.noteAlerts(of: [], at: "a", failures: 0, now: now)
      change(&state.keysByEndpoint["a"])
      _ = state.noteAlerts(of: [], at: "a", failures: 0, now: now)
      return state
    }
    #expect(told(after(6)).isEmpty)
    #expect(told(after(7)) == [pin(2)])
    #expect(told(after(13)) == [pin(2)])
    #expect(told(after(14)).isEmpty)
    let shown = after(8) { _ = $0?.enter(.accepted(pin(2)), at: 8 * day, rule: Self.rule) }
    #expect(told(shown).isEmpty)
    let revoked = after(8) { $0?.withdraw(pin(2)) }
    #expect(told(revoked).isEmpty)
  }
}
