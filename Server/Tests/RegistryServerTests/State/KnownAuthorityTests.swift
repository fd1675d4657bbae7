import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// Under which CAs a new key needs no person.
@Suite("A CA that is known") struct KnownAuthorityTests {
  static let rule = ConfirmationRule(probes: 3, window: 600, grace: 7 * 86_400)
  private static let week = rule.grace

  private static func probe(_ key: UInt8, under ca: UInt8) -> ProbeResult {
    ProbeResult(observations: [
      ProbeObservation(
        outcome: .accepted(
          SeenChain(leaf: SeenCertificate(pin: pin(key)), above: [SeenCertificate(pin: pin(ca))])))
    ])
  }

  /// Shows a key three times, and says whether it is held.
  private static func isHeld(
    _ endpointKeys: inout EndpointKeys, _ key: UInt8, under ca: UInt8, at now: Int64
  ) -> Bool {
    for second in 0..<3 {
      _ = endpointKeys.enter(probe(key, under: ca), at: now + Int64(second), rule: rule)
    }
    return endpointKeys.held[pin(key)] != nil
  }

  /// Approves a key under another CA, and watches that for so long, an hour at a time.
  private static func moved(to ca: UInt8, watched seconds: Int64) -> EndpointKeys {
    var endpointKeys = EndpointKeys()
    _ = endpointKeys.enter(probe(1, under: 100), at: 0, rule: rule)
    let isNew = isHeld(&endpointKeys, 2, under: ca, at: 10)
    #expect(isNew)
    endpointKeys.publish(pin(2), at: 20)
    for now in stride(from: Int64(20), through: 20 + seconds, by: 3600) {
      _ = endpointKeys.enter(probe(2, under: ca), at: now, rule: rule)
    }
    return endpointKeys
  }

  /// What is held after three probes of a key of a stranger's under 200, where key 1 is listed under 100.
  private static func heldAfter(_ answers: LedgerBench.Answer...) -> Bool {
    var bench = LedgerBench()
    for answer in answers { bench.see([(LedgerBench.here, "", answer)], 2) }
    bench.see([(LedgerBench.here, "", .key(66, under: 200))], 3)
    return bench.endpointKeys.held[pin(66)] != nil
  }

  @Test("is none that stood above a listed key in a handshake that was not finished")
  func unfinished() {
    #expect(Self.heldAfter(.key(1, under: 100), .unfinished(1, under: 200)))
    // Nor above a new key that is published meanwhile: its issuer is known, and the rest is put in.
    #expect(!Self.heldAfter(.key(1, under: 100), .key(1, under: 200)))
    // What was seen first is believed, as always, and its CA stays known.
    #expect(Self.heldAfter(.unfinished(1, under: 100)))
    #expect(!Self.heldAfter(.unfinished(1, under: 200)))
    #expect(Self.heldAfter(.unfinished(1, under: 100), .unfinished(1, under: 200)))
    // A certificate that is an anchor itself says nothing of a CA.
    var own = EndpointKeys()
    _ = own.enter(.accepted(pin(1)), at: 0, rule: Self.rule)
    let swapped = LedgerBench.probe([(LedgerBench.here, "", .unfinished(1, under: 200))])
    _ = own.enter(swapped, at: 1, rule: Self.rule)
    #expect(own.authorities.isEmpty)
  }

  @Test(
    "is none that was put in above a new key under a known one, in a handshake that was not finished"
  )
  func crossed() {
    for isConfirmed in [true, false] {
      var endpointKeys = EndpointKeys()
      func show(_ key: UInt8, under above: [UInt8], isConfirmed: Bool, at now: Int64) {
        var chain = SeenChain(
          leaf: SeenCertificate(pin: pin(key)), above: above.map { SeenCertificate(pin: pin($0)) })
        chain.isConfirmed = isConfirmed
        let probe = ProbeResult(observations: [ProbeObservation(outcome: .accepted(chain))])
        _ = endpointKeys.enter(probe, at: now, rule: Self.rule)
      }
      show(1, under: [50, 100], isConfirmed: false, at: 0)
      for now in 10..<13 as Range<Int64> {
        show(2, under: [50, 200], isConfirmed: isConfirmed, at: now)
      }
      #expect(endpointKeys.keys.map(\.pin) == [pin(1), pin(2)])
      #expect((endpointKeys.authorities[pin(200)] != nil) == isConfirmed)
      // What is known of it goes on counting.
      #expect(endpointKeys.authorities[pin(50)] == 12)
      show(66, under: [51, 200], isConfirmed: true, at: 20)
      show(66, under: [51, 200], isConfirmed: true, at: 21)
      show(66, under: [51, 200], isConfirmed: true, at: 22)
      #expect((endpointKeys.held[pin(66)] != nil) == !isConfirmed)
    }
  }

  @Test(
    "is none that was put in above a held key, in a handshake that was not finished, before a person approves it",
    arguments: [false, true])
  func exchanged(isRestart: Bool) throws {
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "", .key(1, under: 100))])
    bench.see(
      [
        (LedgerBench.here, "192.0.2.1:443", .unfinished(2, under: 200)),
        (LedgerBench.here, "192.0.2.2:443", .key(2, under: 101)),
      ], 3)
    func issuer() -> SPKIPin? { bench.endpointKeys.held[pin(2)]?.chain.issuer }
    #expect(issuer() == pin(101))
    let stored = bench.endpointKeys
    bench.see([(LedgerBench.here, "", .unfinished(2, under: 200))])
    #expect(issuer() == pin(101))
    #expect(!bench.endpointKeys.isWorthStoring(over: stored, at: bench.now, rule: LedgerBench.rule))
    if isRestart {
      bench.endpointKeys = try EndpointKeys(StateReader(bench.endpointKeys.json, "keys"))
      bench.see([(LedgerBench.here, "", .unfinished(2, under: 200))])
      #expect(issuer() == pin(101))
    }
    var state = DocumentState()
    state.keysByEndpoint["a"] = bench.endpointKeys
    _ = try state.approve(pin(2), at: "a", .init(who: "ada", at: bench.now, why: ""))
    #expect(state.keysByEndpoint["a"]?.authorities.keys.sorted() == [pin(100), pin(101)])
  }

  @Test("above a held key is stored as soon as a finished handshake shows it")
  func confirmedLater() {
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "", .key(1, under: 100))])
    bench.see([(LedgerBench.here, "", .unfinished(2, under: 101))], 3)
    for answer in [LedgerBench.Answer.unfinished(2, under: 102), .key(2, under: 102)] {
      let stored = bench.endpointKeys
      bench.see([(LedgerBench.here, "", answer)])
      #expect(
        bench.endpointKeys.isWorthStoring(over: stored, at: bench.now, rule: LedgerBench.rule))
    }
  }

  @Test("above a held key of a record that does not say whether its handshake was finished is none")
  func unsaid() throws {
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "", .key(1, under: 100))])
    bench.see([(LedgerBench.here, "", .key(2, under: 101))], 3)
    let record = String(decoding: bench.endpointKeys.json.canonicalBytes, as: UTF8.self)
    let older = record.replacing(#""confirmed":true,"#, with: "")
    #expect(older != record)
    var state = DocumentState()
    state.keysByEndpoint["a"] = try EndpointKeys(
      StateReader(JSONValue(parsing: Array(older.utf8)), "keys"))
    _ = try state.approve(pin(2), at: "a", .init(who: "ada", at: bench.now, why: ""))
    #expect(state.keysByEndpoint["a"]?.authorities.keys.sorted() == [pin(100)])
  }

  @Test("is none that an announced key was shown under so, after the last key that was shown went")
  func unfinishedAfterRevocation() throws {
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("a.test"))
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "", .key(1, under: 100))])
    var state = DocumentState()
    state.keysByEndpoint[endpoint.id] = bench.endpointKeys
    let request = DocumentState.Request(who: "ada", at: bench.now, why: "")
    _ = try state.stage(pin(2), at: endpoint.id, request)
    _ = try state.revoke(pin(1), at: endpoint.id, configured: [endpoint], force: true, request)
    bench.endpointKeys = try #require(state.keysByEndpoint[endpoint.id])
    bench.see([(LedgerBench.here, "", .unfinished(2, under: 200))])
    #expect(bench.endpointKeys.keys.map(\.state) == [.active])
    #expect(bench.endpointKeys.authorities.keys.sorted() == [pin(100)])
  }

  @Test("is none beside a certificate that is an anchor itself: a key under a CA waits")
  func ownAnchor() {
    var endpointKeys = EndpointKeys()
    _ = endpointKeys.enter(.accepted(pin(1)), at: 0, rule: Self.rule)
    let isHeld = Self.isHeld(&endpointKeys, 2, under: 100, at: 10)
    #expect(isHeld)
    for second in 20..<23 as Range<Int64> {
      _ = endpointKeys.enter(.accepted(pin(3)), at: second, rule: Self.rule)
    }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1), pin(3)])
  }

  @Test("is none where a certificate is an anchor itself: beside keys under a CA it waits")
  func otherAnchor() {
    var endpointKeys = EndpointKeys()
    let isFirstHeld = Self.isHeld(&endpointKeys, 1, under: 100, at: 0)
    #expect(!isFirstHeld)
    for second in 20..<23 as Range<Int64> {
      _ = endpointKeys.enter(.accepted(pin(3)), at: second, rule: Self.rule)
    }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1)] && endpointKeys.held[pin(3)] != nil)
  }

  @Test("is still known within the grace time after it was left")
  func withinGrace() {
    var endpointKeys = Self.moved(to: 101, watched: Self.week - 7200)
    let isHeld = Self.isHeld(&endpointKeys, 3, under: 100, at: Self.week - 3600)
    #expect(!isHeld)
  }

  @Test("is new again once it was left for the grace time")
  func left() {
    var endpointKeys = Self.moved(to: 101, watched: Self.week + 7200)
    #expect(endpointKeys.keys.map(\.pin) == [pin(2)])
    let isHeld = Self.isHeld(&endpointKeys, 3, under: 100, at: Self.week + 8000)
    #expect(isHeld)
  }

  @Test("is new again once the only key under it is denied")
  func denied() throws {
    var state = DocumentState()
    state.keysByEndpoint["a"] = Self.moved(to: 101, watched: 3600)
    _ = try state.deny(pin(2), configured: [], force: true, .init(who: "ada", at: 4000, why: ""))
    var endpointKeys = try #require(state.keysByEndpoint["a"])
    #expect(endpointKeys.authorities[pin(100)] != nil)
    let isHeld = Self.isHeld(&endpointKeys, 3, under: 101, at: 4000)
    #expect(isHeld)
  }

  @Test("is new again once the only key under it came and went", arguments: [true, false])
  func passed(isUsedBesides: Bool) {
    var endpointKeys = EndpointKeys()
    func show(_ key: UInt8, under ca: UInt8, _ times: ClosedRange<Int64>) {
      for time in times {
        _ = endpointKeys.enter(Self.probe(key, under: ca), at: time * 20, rule: Self.rule)
      }
    }
    show(1, under: isUsedBesides ? 101 : 100, 0...1)
    show(1, under: 100, 2...3)
    // A stranger's, under a known CA at first.
    show(2, under: 100, 4...7)
    show(2, under: 101, 8...9)
    #expect(endpointKeys.authorities[pin(101)] != nil)
    show(1, under: isUsedBesides ? 101 : 100, 10...90)
    #expect(endpointKeys.keys.map(\.pin) == [pin(1)])
    #expect(Self.isHeld(&endpointKeys, 3, under: 101, at: 2000) == !isUsedBesides)
  }

  @Test("is new again once the only key under it is revoked, which comes before its denial")
  func revoked() throws {
    var state = DocumentState()
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("a.test"))
    state.keysByEndpoint[endpoint.id] = Self.moved(to: 101, watched: 3600)
    _ = try state.revoke(
      pin(2), at: endpoint.id, configured: [endpoint], force: true,
      .init(who: "ada", at: 4000, why: ""))
    var endpointKeys = try #require(state.keysByEndpoint[endpoint.id])
    #expect(endpointKeys.authorities.keys.sorted() == [pin(100)])
    let isHeld = Self.isHeld(&endpointKeys, 3, under: 101, at: 4000)
    #expect(isHeld)
  }

  @Test("is known again once the only key under it is allowed again")
  func allowedAgain() throws {
    var state = DocumentState()
    state.keysByEndpoint["a"] = Self.moved(to: 101, watched: 3600)
    _ = try state.deny(pin(2), configured: [], force: true, .init(who: "ada", at: 4000, why: ""))
    _ = try state.allow(pin(2), .init(who: "ada", at: 4100, why: ""))
    var endpointKeys = try #require(state.keysByEndpoint["a"])
    let isHeld = Self.isHeld(&endpointKeys, 3, under: 101, at: 4200)
    #expect(!isHeld)
  }

  @Test("is new again once all keys under it are denied, one after the other")
  func deniedInTurn() throws {
    var state = DocumentState()
    var endpointKeys = Self.moved(to: 101, watched: 3600)
    let isHeld = Self.isHeld(&endpointKeys, 3, under: 101, at: 4000)
    #expect(!isHeld)
    state.keysByEndpoint["a"] = endpointKeys
    for key in [UInt8(2), 3] {
      _ = try state.deny(
        pin(key), configured: [], force: true, .init(who: "ada", at: 5000, why: ""))
    }
    #expect(try #require(state.keysByEndpoint["a"]).authorities.keys.sorted() == [pin(100)])
  }

  @Test("is new again with all its intermediates once the only key under it is denied")
  func deniedUnderSeveral() throws {
    var state = DocumentState()
    var endpointKeys = Self.moved(to: 101, watched: 3600)
    // The same key, under a new intermediate of the CA.
    for second in 0..<3 {
      _ = endpointKeys.enter(Self.probe(2, under: 102), at: 4000 + Int64(second), rule: Self.rule)
    }
    state.keysByEndpoint["a"] = endpointKeys
    _ = try state.deny(pin(2), configured: [], force: true, .init(who: "ada", at: 5000, why: ""))
    #expect(try #require(state.keysByEndpoint["a"]).authorities.keys.sorted() == [pin(100)])
  }

  @Test("that somebody's denial made new is not brought back by a server that had not heard of it")
  func deniedElsewhere() throws {
    var base = DocumentState()
    base.keysByEndpoint["a"] = Self.moved(to: 101, watched: 3600)
    var theirs = base
    _ = try theirs.deny(pin(2), configured: [], force: true, .init(who: "ada", at: 4000, why: ""))
    var own = base
    _ = own.keysByEndpoint["a"]?.enter(Self.probe(2, under: 101), at: 4100, rule: Self.rule)
    let merged = own.merging(theirs, base: base)
    #expect(try #require(merged.keysByEndpoint["a"]).authorities.keys.sorted() == [pin(100)])
  }

  @Test("is known after however long an outage")
  func outage() {
    var endpointKeys = EndpointKeys()
    _ = endpointKeys.enter(Self.probe(1, under: 100), at: 0, rule: Self.rule)
    let isHeld = Self.isHeld(&endpointKeys, 2, under: 100, at: 10 * Self.week)
    #expect(!isHeld)
  }

  @Test("is known while nothing but a held key is shown, however long")
  func besideHeld() {
    var endpointKeys = EndpointKeys()
    _ = endpointKeys.enter(Self.probe(1, under: 100), at: 0, rule: Self.rule)
    let isHeld = Self.isHeld(&endpointKeys, 2, under: 101, at: 5)
    #expect(isHeld)
    for now in stride(from: Int64(10), through: 3 * Self.week, by: 1800) {
      _ = endpointKeys.enter(Self.probe(2, under: 101), at: now, rule: Self.rule)
    }
    #expect(endpointKeys.held[pin(2)] != nil)
    #expect(endpointKeys.keys.map(\.pin) == [pin(1)])
  }

  @Test("is the 33rd as well; who was not seen for longest gives way")
  func many() {
    var endpointKeys = EndpointKeys()
    _ = endpointKeys.enter(Self.probe(1, under: 100), at: 0, rule: Self.rule)
    for number in 1...UInt8(EndpointKeys.maximumAuthorities) {
      let now = Int64(number) * 100
      _ = Self.isHeld(&endpointKeys, 1 + number, under: 100 + number, at: now)
      endpointKeys.publish(pin(1 + number), at: now + 10)
    }
    #expect(endpointKeys.authorities.count == EndpointKeys.maximumAuthorities)
    #expect(endpointKeys.authorities[pin(100)] == nil)
    #expect(endpointKeys.authorities[pin(132)] != nil)
  }
}
