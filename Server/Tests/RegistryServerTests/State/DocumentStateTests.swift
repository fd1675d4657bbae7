import CanonicalJSON
import Foundation
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

@Suite("The state of a document") struct DocumentStateTests {
  static let endpoints = ["a", "b"].map {
    WatchedEndpoint(fqdn: HostName.literal("\($0).example"))
  }
  static let a = "a.example:443"
  static let b = "b.example:443"
  static let request = DocumentState.Request(who: "ada", at: 50, why: "because")

  /// Two endpoints with a key each.
  static func settled() -> DocumentState {
    var state = DocumentState()
    state.keysByEndpoint[a] = EndpointKeys(keys: [KnownKey(pin: pin(1), firstSeen: 1, lastSeen: 9)])
    state.keysByEndpoint[b] = EndpointKeys(keys: [KnownKey(pin: pin(2), firstSeen: 2, lastSeen: 9)])
    state.document = [UInt8]("{}".utf8)
    return state
  }

  /// A state with something of everything that is kept.
  static func full() throws -> DocumentState {
    var state = settled()
    state.number = RegistryStamp.Version(epoch: 2, version: 1_780_000_000)
    state.signed = 1_780_000_000
    var candidate = CandidateKey(
      firstSeen: 3,
      chain: SeenChain(
        leaf: SeenCertificate(
          pin: pin(7), subject: "CN=a \"quoted\"", issuer: "CN=ca", notBefore: 1, notAfter: 2),
        above: [SeenCertificate(pin: pin(100))]))
    candidate.probes = 3
    candidate.witnesses = ["direct": .init(probes: 3, lastSeen: candidate.lastSeen)]
    candidate.reasons = [.manual, .newIssuer]
    state.keysByEndpoint[a] = EndpointKeys(
      keys: [
        KnownKey(
          pin: pin(1), firstSeen: 1, lastSeen: 9, missedSince: 5, certificateExpires: 1_800_000_000)
      ],
      held: [pin(7): candidate], authorities: [pin(100): 9, pin(101): 8])
    _ = try state.stage(pin(8), at: b, request)
    _ = try state.deny(pin(99), configured: endpoints, force: false, request)
    _ = try state.deny(pin(98), configured: endpoints, force: false, request)
    _ = try state.allow(pin(98), request)
    state.returns = 3
    _ = try state.add(
      WatchedEndpoint(
        fqdn: HostName.literal("c.example"), port: 8443, patterns: [HostPattern("**.c.example")],
        interval: 30_000, approval: .manual), configured: endpoints, request)
    _ = try state.remove(b, configured: endpoints, request)
    _ = state.change(a, interval: 10_000, approval: .manual, isPaused: true, request)
    state.raise(ServerAlert(kind: .keyHeld, endpoint: a, pin: pin(7), message: "held", since: 3))
    return state
  }

  @Test("survives being written and read")
  func encoding() throws {
    let state = try Self.full()
    #expect(try DocumentState(decoding: state.encoded, file: "a.json") == state)
  }

  @Test("does not keep keys that only wait for more probes")
  func transientCandidates() throws {
    var state = Self.settled()
    _ = state.keysByEndpoint[Self.a]?.enter(.accepted(pin(5)), at: 10, rule: ConfirmationRule())
    #expect(state.keysByEndpoint[Self.a]?.candidates.count == 1)
    let read = try DocumentState(decoding: state.encoded, file: "a.json")
    #expect(read.keysByEndpoint[Self.a]?.candidates.isEmpty == true)
  }

  @Test("reads what the version before wrote")
  func format1() throws {
    let record = """
      {"format":1,"signed":1779192131,"document":"{}","keysByEndpoint":{"a.example:443":[
        {"pin":"\(pin(1).base64)","firstSeen":1,"lastSeen":9,"missedSince":5}]}}
      """
    let state = try DocumentState(decoding: [UInt8](record.utf8), file: "a.json")
    #expect(state.signed == 1_779_192_131)
    #expect(
      state.keysByEndpoint[Self.a]?.keys
        == [KnownKey(pin: pin(1), firstSeen: 1, lastSeen: 9, missedSince: 5)])
  }

  @Test(
    "refuses to read what it does not understand",
    arguments: [
      "", "[]", "{}", #"{"format":3,"signed":1,"document":""}"#,
      #"{"format":2,"signed":1,"document":""}"#,
      #"{"format":1,"signed":1,"document":"","keysByEndpoint":{"a":[{"pin":"short"}]}}"#,
    ])
  func unreadable(_ record: String) {
    #expect(throws: StoreError.self) {
      try DocumentState(decoding: [UInt8](record.utf8), file: "a.json")
    }
  }

  // MARK: - Commands

  @Test("a key that is denied is in no document, and cannot be staged or approved")
  func deny() throws {
    var state = Self.settled()
    state.keysByEndpoint[Self.a]?.stage(pin(3), KnownKey.Staging(at: 1, by: "ada"))
    let entries = try state.deny(
      pin(3), configured: Self.endpoints, force: false, Self.request)
    #expect(entries.map(\.event) == ["key_denied"])
    let content = DocumentContent(state, endpoints: Self.endpoints)
    #expect(Set(content.entries.map(\.pin)) == [pin(1), pin(2)])
    #expect(content.denied == [pin(3)])
    #expect(throws: AdministrationError.keyDenied(pin(3))) {
      try state.stage(pin(3), at: Self.b, Self.request)
    }
    #expect(try state.allow(pin(3), Self.request).map(\.event) == ["key_allowed"])
    #expect(DocumentContent(state, endpoints: Self.endpoints).denied.isEmpty)
  }

  @Test("denying lists the hosts that it leaves without a live pin, and then needs force")
  func denyLast() throws {
    var state = Self.settled()
    // A staged key is no live one: no server shows it yet.
    state.keysByEndpoint[Self.a]?.stage(pin(3), KnownKey.Staging(at: 1, by: "ada"))
    let before = state
    #expect(
      throws: AdministrationError.leavesWithoutPin(["a.example", "*.a.example"], areStaged: true)
    ) {
      try state.deny(pin(1), configured: Self.endpoints, force: false, Self.request)
    }
    #expect(state == before)
    _ = try state.deny(pin(1), configured: Self.endpoints, force: true, Self.request)
    #expect(
      Set(DocumentContent(state, endpoints: Self.endpoints).entries.map(\.pin)) == [pin(2), pin(3)])
  }

  @Test("the hint says what is missing: a staged key, or the probe that sees it")
  func denialHints() {
    let hosts = ["a.example"]
    let nothing = "\(AdministrationError.leavesWithoutPin(hosts))"
    #expect(nothing.hasSuffix("; hint: stage the next key first, or force it"))
    let staged = "\(AdministrationError.leavesWithoutPin(hosts, areStaged: true))"
    #expect(staged.hasSuffix("switch the servers to it, and wait for the next probe"))
    #expect(!staged.contains("force") && !staged.contains("first"))
  }

  @Test("denying the last key that may be used needs force too, where no server shows it any more")
  func denyLastUsable() throws {
    var state = Self.settled()
    state.keysByEndpoint[Self.a] = EndpointKeys(keys: [
      KnownKey(pin: pin(1), firstSeen: 1, lastSeen: 5, missedSince: 6),
      KnownKey(pin: pin(3), firstSeen: 2, lastSeen: 9),
    ])
    _ = try state.deny(pin(3), configured: Self.endpoints, force: true, Self.request)
    #expect(throws: AdministrationError.leavesWithoutPin(["a.example", "*.a.example"])) {
      try state.deny(pin(1), configured: Self.endpoints, force: false, Self.request)
    }
  }

  @Test(
    "revoking the only key of an endpoint needs force also if that key is denied: the next one would be its first"
  )
  func revokeDenied() throws {
    var state = Self.settled()
    _ = try state.deny(pin(1), configured: Self.endpoints, force: true, Self.request)
    let hosts = AdministrationError.leavesWithoutPin(["a.example", "*.a.example"])
    func revoke(_ key: UInt8, force: Bool = false) throws {
      _ = try state.revoke(
        pin(key), at: Self.a, configured: Self.endpoints, force: force, Self.request)
    }
    #expect(throws: hosts) { try revoke(1) }
    state.keysByEndpoint[Self.a]?.publish(pin(4), at: 9)
    try revoke(1)
    #expect(throws: hosts) { try revoke(4) }
    try revoke(4, force: true)
    #expect(state.keysByEndpoint[Self.a]?.keys == [])
  }

  @Test(
    "a revoked key leaves every endpoint of the same hosts, but for wider ones and one that has no other"
  )
  func revokeBeside() throws {
    func endpoint(_ port: UInt16, _ pattern: String) throws -> WatchedEndpoint {
      WatchedEndpoint(
        fqdn: HostName.literal("a.example"), port: port, patterns: [try HostPattern(pattern)])
    }
    for (own, pattern, keys, left) in [
      ("a.example", "a.example", [1, 3], [3]), ("a.example", "a.example", [1], [1]),
      ("*.example", "a.example", [1, 3], [3]), ("*.example", "a.example", [1], [1]),
      ("a.example", "*.example", [1, 3], [1, 3]), ("a.example", "b.example", [1, 3], [1, 3]),
    ] as [(String, String, [UInt8], [UInt8])] {
      let (asked, other) = (try endpoint(443, own), try endpoint(8443, pattern))
      var state = DocumentState()
      for (id, pins) in [(asked.id, [1, 2]), (other.id, keys)] as [(String, [UInt8])] {
        state.keysByEndpoint[id] = EndpointKeys(
          keys: pins.map { KnownKey(pin: pin($0), firstSeen: 1, lastSeen: 9) })
      }
      let entries = try state.revoke(
        pin(1), at: asked.id, configured: [asked, other], force: false, Self.request)
      #expect(entries.map(\.endpoint) == [asked.id] + (left.contains(1) ? [] : [other.id]))
      #expect(state.keysByEndpoint[asked.id]?.keys.map(\.pin) == [pin(2)])
      #expect(state.keysByEndpoint[other.id]?.keys.map(\.pin) == left.map { pin($0) })
    }
  }

  @Test("denying everything leaves what was denied last, for an empty registry is never published")
  func denyAll() throws {
    var state = Self.settled()
    for byte in UInt8(1)...2 {
      state.publish(Self.endpoints)
      _ = try state.deny(pin(byte), configured: Self.endpoints, force: true, Self.request)
    }
    let content = DocumentContent(state, endpoints: Self.endpoints)
    // The first was out already: it does not come back.
    #expect(Set(content.entries.map(\.pin)) == [pin(2)])
    #expect(content.denied == [pin(1), pin(2)])
  }

  @Test("an endpoint that is taken out leaves a tombstone, and its hosts may be forgotten")
  func remove() throws {
    var state = Self.settled()
    let entries = try state.remove(Self.b, configured: Self.endpoints, Self.request)
    #expect(entries.map(\.event) == ["endpoint_removed"])
    #expect(state.endpoints(configured: Self.endpoints).map(\.id) == [Self.a])
    let content = DocumentContent(
      state, endpoints: state.endpoints(configured: Self.endpoints))
    #expect(content.removed.map(\.description) == ["b.example", "*.b.example"])
    #expect(content.entries.map(\.pin).contains(pin(2)) == false)
    // And can come back, with the hosts no longer forgotten.
    _ = try state.add(Self.endpoints[1], configured: Self.endpoints, Self.request)
    #expect(state.endpoints(configured: Self.endpoints).map(\.id) == [Self.a, Self.b])
    #expect(state.removed.isEmpty)
  }

  @Test("a host that another endpoint speaks of is not forgotten")
  func removeShared() throws {
    var endpoints = Self.endpoints
    endpoints[1].patterns = endpoints[0].patterns
    var state = Self.settled()
    _ = try state.remove(Self.b, configured: endpoints, Self.request)
    #expect(state.removed.isEmpty)
  }

  @Test("the last endpoint with a key stays")
  func removeLast() throws {
    var state = Self.settled()
    _ = try state.remove(Self.b, configured: Self.endpoints, Self.request)
    #expect(throws: AdministrationError.wouldBeEmpty) {
      try state.remove(Self.a, configured: Self.endpoints, Self.request)
    }
  }

  @Test(
    "a person who approves a key makes its CA known: of a handshake that was not finished by naming its issuer",
    arguments: [false, true])
  func approvesCA(isRestart: Bool) throws {
    for (answer, issuer, isKnown) in [
      (.key(2, under: 102), nil, true), (.unfinished(2, under: 102), nil, false),
      (.unfinished(2, under: 102), pin(102), true),
    ] as [(LedgerBench.Answer, SPKIPin?, Bool)] {
      var bench = LedgerBench()
      bench.see([(LedgerBench.here, "", .key(1, under: 101))], 1)
      bench.see([(LedgerBench.here, "", answer)], 4)
      if isRestart {
        bench.endpointKeys = try EndpointKeys(StateReader(bench.endpointKeys.json, "keys"))
      }
      var state = DocumentState()
      state.keysByEndpoint[Self.a] = bench.endpointKeys
      #expect(bench.endpointKeys.held[pin(2)]?.reasons == [.newIssuer])
      #expect(throws: AdministrationError.otherIssuer(pin(2))) {
        try state.approve(pin(2), at: Self.a, under: pin(103), Self.request)
      }
      _ = try state.approve(pin(2), at: Self.a, under: issuer, Self.request)
      #expect((state.keysByEndpoint[Self.a]?.authorities[pin(102)] != nil) == isKnown)
    }
  }

  @Test(
    "a listed key that nobody announced is vouched for under the issuer that was read, and no other"
  )
  func vouchesUnder() throws {
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "", .key(1, under: 101))], 1)
    bench.see([(LedgerBench.here, "", .key(2, under: 101))], 4)
    var state = DocumentState()
    state.keysByEndpoint[Self.a] = bench.endpointKeys
    #expect(throws: AdministrationError.otherIssuer(pin(2))) {
      try state.approve(pin(2), at: Self.a, under: pin(103), Self.request)
    }
    #expect(state.keysByEndpoint[Self.a]?.keys.last?.isUnannounced == true)
    _ = try state.approve(pin(2), at: Self.a, under: pin(101), Self.request)
    #expect(state.keysByEndpoint[Self.a]?.keys.last?.isUnannounced == false)
  }

  @Test("a key that is approved while nobody shows it spares no other one until a probe shows it")
  func approvesUnshown() throws {
    func view(_ keys: UInt8...) -> LedgerBench.View {
      keys.map { (LedgerBench.here, "192.0.2.\($0):443", .key($0)) }
    }
    for (isShown, states) in [
      (false, [.active, .retiring]), (true, [.active, .active]),
    ] as [(Bool, [KeyState])] {
      var bench = LedgerBench()
      bench.context.approval = .manual
      bench.see(view(1))
      bench.see(view(1, 2), 3)
      bench.see(isShown ? view(1, 2) : view(1, 4), 5)
      var state = DocumentState()
      state.keysByEndpoint[Self.a] = bench.endpointKeys
      let request = DocumentState.Request(who: "ada", at: bench.now, why: "")
      _ = try state.approve(pin(2), at: Self.a, request)
      bench.endpointKeys = try #require(state.keysByEndpoint[Self.a])
      #expect(bench.endpointKeys.keys.map(\.state) == states)
      let bare = AdministrationError.leavesWithoutPin(["a.example", "*.a.example"])
      func deny() throws {
        _ = try state.deny(pin(1), configured: Self.endpoints, force: false, request)
      }
      if !isShown {
        #expect(throws: bare) { try deny() }
        bench.see(view(1, 2))
        #expect(bench.endpointKeys.keys.map(\.state) == [.active, .active])
        state.keysByEndpoint[Self.a] = bench.endpointKeys
      }
      try deny()
    }
  }

  @Test("only a held key is approved, and only a published one revoked")
  func approveAndRevoke() throws {
    var state = try Self.full()
    #expect(throws: AdministrationError.noSuchKey(pin(55), .held)) {
      try state.approve(pin(55), at: Self.a, Self.request)
    }
    _ = try state.approve(pin(7), at: Self.a, Self.request)
    #expect(state.keysByEndpoint[Self.a]?.keys.map(\.pin) == [pin(1), pin(7)])
    #expect(state.alerts[Self.a] == nil)
    _ = try state.revoke(
      pin(1), at: Self.a, configured: Self.endpoints, force: false, Self.request)
    #expect(state.keysByEndpoint[Self.a]?.keys.map(\.pin) == [pin(7)])
    #expect(throws: AdministrationError.self) {
      try state.revoke(
        pin(7), at: Self.a, configured: Self.endpoints, force: false, Self.request)
    }
  }

  // MARK: - Merging

  @Test("unites what two servers saw, and keeps what people decided")
  func merging() throws {
    let base = Self.settled()
    var own = base
    _ = own.keysByEndpoint[Self.a]?.enter(
      .accepted(pin(5)), at: 10, rule: ConfirmationRule(probes: 1))
    var theirs = base
    _ = try theirs.deny(pin(99), configured: Self.endpoints, force: false, Self.request)
    theirs.keysByEndpoint[Self.b]?.stage(pin(8), KnownKey.Staging(at: 1, by: "ada"))
    let merged = own.merging(theirs, base: base)
    #expect(merged.keysByEndpoint[Self.a]?.keys.map(\.pin) == [pin(1), pin(5)])
    #expect(merged.keysByEndpoint[Self.b]?.keys.map(\.pin) == [pin(8), pin(2)])
    #expect(merged.deniedPins == [pin(99)])
  }

  @Test("keeps what only one server was told, also where the record before said nothing of it")
  func mergingUnmet() throws {
    let base = Self.settled()
    var (own, silent) = (base, base)
    silent.keysByEndpoint["c.example:443"] = EndpointKeys()
    own.keysByEndpoint["c.example:443"] = EndpointKeys(
      keys: [KnownKey(pin: pin(5), firstSeen: 3, lastSeen: 9)])
    let theirs = try DocumentState(decoding: silent.encoded, file: "a.json")
    for base in [base, silent] {
      #expect(own.merging(theirs, base: base).keysByEndpoint == own.keysByEndpoint)
    }
  }

  @Test("unites alerts one by one, and has none of endpoints that were taken out")
  func mergingAlerts() throws {
    func alert(_ kind: ServerAlert.Kind, _ id: String, _ text: String = "") -> ServerAlert {
      ServerAlert(kind: kind, endpoint: id, message: text, since: 1)
    }
    var base = Self.settled()
    for id in [Self.a, Self.b] { base.raise(alert(.unreachable, id, "refused")) }
    var (own, theirs) = (base, base)
    for id in [Self.a, Self.b] { own.raise(alert(.unreachable, id, "timed out")) }
    own.raise(alert(.chainRefused, Self.a))
    theirs.raise(alert(.keyHeld, Self.a))
    _ = try theirs.remove(Self.b, configured: Self.endpoints, Self.request)
    var merged = own.merging(theirs, base: base)
    #expect(merged.alerts[Self.b] == nil)
    #expect(merged.alerts[Self.a]?.map(\.kind) == [.unreachable, .keyHeld, .chainRefused])
    own.settle(.unreachable, Self.a)
    merged = own.merging(theirs, base: base)
    #expect(merged.alerts[Self.a]?.map(\.kind) == [.keyHeld, .chainRefused])
  }

  @Test("on top of an older record has its decisions, every denial, and what probes showed since")
  func goingOn() throws {
    var older = Self.settled()
    _ = try older.deny(pin(90), configured: Self.endpoints, force: false, Self.request)
    _ = older.change(
      Self.a, interval: 10_000, approval: nil, isPaused: nil, Self.request)
    var state = Self.settled()
    _ = try state.deny(pin(99), configured: Self.endpoints, force: false, Self.request)
    state.keysByEndpoint[Self.a] = EndpointKeys(keys: [
      KnownKey(pin: pin(5), firstSeen: 3, lastSeen: 30)
    ])
    let next = state.goingOn(from: older, after: RecordAge(returns: 4, version: 9), Self.endpoints)
    #expect(next.returns == 5)
    #expect(next.deniedPins == [pin(90), pin(99)])
    #expect(next.overrides == older.overrides)
    #expect(next.keysByEndpoint[Self.a]?.keys.map(\.pin) == [pin(5)])
  }

  @Test("takes over what others deny, tells it once, and has nothing wait for it any more")
  func takingOver() throws {
    var state = try Self.full()
    state.denied = []
    let candidate = try #require(state.keysByEndpoint[Self.a]?.candidates[pin(7)])
    state.keysByEndpoint[Self.a]?.candidates[pin(91)] = candidate
    let denial = DocumentState.Denial(pin: pin(91), at: 101, by: "ada", why: "stolen")
    var (other, shared) = (Self.settled(), SharedDenials())
    other.denied = [denial, denial]
    shared.enter(other)
    let entries = state.takeOver(shared, at: 200)
    #expect(state.denied == [denial])
    #expect(
      entries.map { "\($0.event) \($0.why) \($0.who) \($0.time)" } == ["key_denied stolen ada 200"])
    #expect(state.keysByEndpoint[Self.a]?.candidates.keys.sorted() == [pin(7)])
  }

  @Test("keeps nothing of endpoints that are gone, nor of hosts that came back")
  func leftovers() throws {
    var state = Self.settled()
    state.raise(
      ServerAlert(kind: .unreachable, endpoint: "typo.example:443", message: "", since: 1))
    state.raise(ServerAlert(kind: .storing, message: "", since: 1))
    _ = try state.remove(Self.b, configured: Self.endpoints, Self.request)
    #expect(state.removed == Self.endpoints[1].patterns)
    let changed = state.forgetLeftovers(Self.endpoints.filter { $0.id == Self.a })
    #expect(changed)
    #expect(state.removed == Self.endpoints[1].patterns)
    #expect(state.alerts.keys.sorted() == [""])
    // The same host at another port.
    let moved = WatchedEndpoint(
      fqdn: HostName.literal("b.example"), port: 8443, patterns: Self.endpoints[1].patterns)
    let both = [Self.endpoints[0], moved]
    let isForgotten = state.forgetLeftovers(both)
    #expect(!isForgotten)
    #expect(DocumentContent(state, endpoints: both).removed == moved.patterns)
    state.keysByEndpoint[moved.id] = EndpointKeys(keys: [
      KnownKey(pin: pin(2), firstSeen: 2, lastSeen: 9)
    ])
    #expect(DocumentContent(state, endpoints: both).removed.isEmpty)
    let changedAgain = state.forgetLeftovers(both)
    #expect(changedAgain)
    #expect(state.removed.isEmpty)
    let changedOnceMore = state.forgetLeftovers([Self.endpoints[0], moved])
    #expect(!changedOnceMore)
  }

  @Test("says that a denied key is shown for as long as it is")
  func deniedKeyGone() {
    var state = Self.settled()
    let seen = state.noteAlerts(of: [.deniedKeySeen(pin(99))], at: Self.a, failures: 0, now: 1)
    #expect(seen)
    let unreachable = state.noteAlerts(
      of: [.unreachable(reason: "timed out")], at: Self.a, failures: 1, now: 2)
    #expect(!unreachable)
    #expect(state.alerts[Self.a]?.map(\.kind) == [.deniedKeySeen])
    let gone = state.noteAlerts(of: [], at: Self.a, failures: 0, now: 3)
    #expect(gone)
    #expect(state.alerts.isEmpty)
  }

  @Test("brings nothing back that somebody took away")
  func mergingRevoked() throws {
    let base = Self.settled()
    var theirs = base
    theirs.keysByEndpoint[Self.a]?.stage(pin(8), KnownKey.Staging(at: 1, by: "ada"))
    theirs.keysByEndpoint[Self.a]?.withdraw(pin(1))
    _ = try theirs.remove(Self.b, configured: Self.endpoints, Self.request)
    let merged = base.merging(theirs, base: base)
    #expect(merged.keysByEndpoint[Self.a]?.keys.map(\.pin) == [pin(8)])
    #expect(merged.keysByEndpoint[Self.b] == nil)
  }
}

extension HostName {
  /// A name that a test spells out.
  static func literal(_ text: String) -> HostName {
    guard let name = try? HostName(text) else { preconditionFailure("\(text) is no host name") }
    return name
  }
}
