import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// A document that goes on from its last signed copy, after its record was lost.
@Suite("Keys that only a signed copy lists") struct LastCopyTests {
  private static let signed: Int64 = 1_780_000_000
  private static let day: Int64 = 86_400
  private static let rule = ConfirmationRule(probes: 3, window: 600, grace: 7 * day)

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    /// The first bytes of the keys that the copy lists, and for how many seconds it had listed each.
    let listed: [UInt8: Int64]
    /// What the endpoint shows in the hour after that.
    let shown: UInt8
    let left: Set<UInt8>
    var testDescription: String { name }
  }

  static let scenarios: [Scenario] = [
    Scenario(
      name: "one of a moment ago that is gone is withdrawn", listed: [1: 30 * day, 9: 60], shown: 1,
      left: [1]),
    Scenario(
      name: "one of a moment ago that is shown stays, and so does the one before",
      listed: [1: 30 * day, 2: 60], shown: 2, left: [1, 2]),
    Scenario(
      name: "one that was listed for a day is no key of a moment", listed: [1: 30 * day, 2: day],
      shown: 1, left: [1, 2]),
    Scenario(
      name: "of a first day, the oldest is no key of a moment", listed: [1: 600, 9: 60], shown: 1,
      left: [1]),
    Scenario(
      name: "the oldest stays where the next one is shown", listed: [1: 600, 2: 60], shown: 2,
      left: [1, 2]),
    Scenario(
      name: "nothing leaves while another key is shown", listed: [1: 30 * day, 9: 60], shown: 3,
      left: [1, 3, 9]),
  ]

  private static func copy(
    _ listed: [UInt8: Int64], denied: [UInt8] = [], for host: String = "a.example",
    by fqdn: String? = nil, beside others: [String: UInt8] = [:],
    asking settings: [HostSettings] = [], removed: [String] = []
  ) -> PublishedDocument {
    let listed =
      listed.sorted { $0.key < $1.key }.map { (host, $0, $1) }
      + others.sorted { $0.key < $1.key }.map { ($0, $1, 30 * day) }
    let keys = listed.map { host, key, age in
      JSONValue.object([
        "date": .string(RFC3339.text(signed - age)), "domainName": .string(host),
        "fqdn": .string(fqdn ?? host), "key": .string(pin(key).base64),
      ])
    }
    let document: JSONObject = [
      "payload": .object(["keys": .array(keys)]),
      "statement": .object([
        "denied": .array(denied.map { .string(pin($0).base64) }),
        "hosts": .array(settings.map(\.json)), "removed": .array(removed.map { .string($0) }),
      ]),
    ]
    return PublishedDocument(
      file: "a.json", bytes: JSONValue.object(document).canonicalBytes, document: document,
      signed: signed)
  }

  @Test("stay or leave, by how long it had listed them and what is shown", arguments: scenarios)
  func watched(_ scenario: Scenario) throws {
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("a.example"))
    let state = DocumentState().goingOn(
      from: Self.copy(scenario.listed).signedCopy, endpoints: [endpoint])
    // Nobody knows whether these were announced, so that they are told of again.
    let oldest = scenario.listed.max { $0.value < $1.value }?.key
    let young = scenario.listed.filter { $0.key != oldest && $0.value < Self.day }.keys
    #expect(
      Set((state.alerts[endpoint.id] ?? []).filter { $0.kind == .unannouncedKey }.map(\.pin))
        == Set(young.map { pin($0) }))
    var endpointKeys = try #require(state.keysByEndpoint[endpoint.id])
    #expect(Set(endpointKeys.keys.map(\.pin)) == Set(scenario.listed.keys.map { pin($0) }))
    var events: [KeyEvent] = []
    for second in stride(from: Int64(20), through: 3000, by: 20) {
      events += endpointKeys.enter(
        .accepted(pin(scenario.shown)), at: Self.signed + second, rule: Self.rule)
    }
    #expect(Set(endpointKeys.keys.map(\.pin)) == Set(scenario.left.map { pin($0) }))
    let gone = Set(scenario.listed.keys).subtracting(scenario.left)
    for key in gone { #expect(events.contains(.withdrawn(pin(key)))) }
  }

  @Test("a key that a copy denies is denied after every allowance, whatever the clock said of that")
  func deniedAgain() {
    var state = DocumentState()
    state.allowed[pin(1)] = Self.signed + 500
    let next = state.goingOn(from: Self.copy([2: 60], denied: [1]).signedCopy, endpoints: [])
    var shared = SharedDenials()
    for state in [state, next] { shared.enter(state) }
    #expect(shared.inForce.map(\.pin) == [pin(1)])
    state.uniteDenials(with: next)
    #expect(state.deniedPins == [pin(1)])
    #expect(next.allowed.isEmpty)
  }

  @Test("a denied key that a copy lists alone is followed by no key of any CA without a person")
  func deniedAlone() throws {
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("a.example"))
    let state = DocumentState().goingOn(
      from: Self.copy([1: 30 * Self.day], denied: [1]).signedCopy, endpoints: [endpoint])
    #expect(state.deniedPins == [pin(1)])
    var bench = LedgerBench()
    bench.endpointKeys = try #require(state.keysByEndpoint[endpoint.id])
    bench.context.denied = state.deniedPins
    bench.see([(LedgerBench.here, "", .key(2, under: 101))], 4)
    #expect(bench.keys == [1])
    #expect(bench.endpointKeys.held[pin(2)]?.reasons == [.newIssuer])
  }

  @Test("of a wildcard that nobody speaks for now stay with a host of it: no other CA's comes")
  func narrowed() throws {
    let named = WatchedEndpoint(fqdn: HostName.literal("a.example"))
    let wide = WatchedEndpoint(
      fqdn: HostName.literal("gate.test"), patterns: [try HostPattern("*.example")])
    let copy = Self.copy([1: 30 * Self.day], for: "*.example").signedCopy
    let state = DocumentState().goingOn(from: copy, endpoints: [named])
    var bench = LedgerBench()
    bench.endpointKeys = try #require(state.keysByEndpoint[named.id])
    bench.see([(LedgerBench.here, "", .key(2, under: 101))], 4)
    #expect(bench.keys == [1])
    #expect(bench.endpointKeys.held[pin(2)]?.reasons == [.newIssuer])
    let beside = DocumentState().goingOn(from: copy, endpoints: [named, wide])
    #expect(beside.keysByEndpoint[named.id] == nil)
  }

  @Test(
    "of a host that people added after an older record are watched; of one that left before are not"
  )
  func olderRecord() throws {
    let left = WatchedEndpoint(fqdn: HostName.literal("left.test"))
    var state = DocumentState()
    state.keysByEndpoint[left.id] = EndpointKeys(
      keys: [KnownKey(pin: pin(1), firstSeen: 1, lastSeen: Self.signed)])
    state.document = Self.copy([1: 30 * Self.day], for: "left.test").bytes
    state.follow([left])
    state.tombstones["added.test:443"] = .init(at: 1, by: "ada", why: "")
    for host in ["left.test", "added.test"] {
      state.watchHosts(of: Self.copy([1: 30 * Self.day], for: host).signedCopy, beside: [])
    }
    #expect(state.endpoints(configured: []).map(\.id) == ["added.test:443"])
  }

  @Test("keep an endpoint out of whose hosts one is removed, if others speak for the rest")
  func keptOut() throws {
    let (wide, other) = (try HostPattern("*.a.test"), HostName.literal("b.test"))
    let own = WatchedEndpoint(
      fqdn: HostName.literal("a.test"), patterns: [try HostPattern("a.test"), wide])
    let beside = WatchedEndpoint(fqdn: other, patterns: [wide])
    let copy = Self.copy([1: 30 * Self.day], for: "*.a.test", removed: ["a.test"]).signedCopy
    for isSpokenFor in [true, false] {
      var state = DocumentState()
      state.keepOut(isSpokenFor ? [own, beside] : [own], of: copy)
      #expect(state.tombstones.keys.sorted() == (isSpokenFor ? [own.id] : []))
    }
  }

  @Test("at another port of its host: the key is of the copy, and its CA not known yet")
  func otherPort() throws {
    let (old, new) = (
      WatchedEndpoint(fqdn: HostName.literal("a.example")),
      WatchedEndpoint(fqdn: HostName.literal("a.example"), port: 8443)
    )
    let state = DocumentState().goingOn(
      from: Self.copy([1: 30 * Self.day]).signedCopy, endpoints: [old])
    var inForce = EndpointsInForce([old, new])
    inForce.follow(state, configured: [old, new])
    let settings = MachineBench.settings([old, new])
    for (key, pins) in [(1, [pin(1)]), (2, [])] as [(UInt8, Set<SPKIPin>)] {
      let probe = LedgerBench.probe([(LedgerBench.here, "", .key(key, under: 101))])
      let context = inForce.context(of: new, probe, in: state, settings, isMassChange: false)
      #expect(context.copiedPins == pins)
      #expect(context.listedAuthorities.isEmpty)
    }
  }

  @Test("of a host that people added at another port of a configured name stay listed")
  func addedBeside() throws {
    let configured = WatchedEndpoint(
      fqdn: HostName.literal("gate.test"), patterns: [try HostPattern("a.test")])
    let copy = Self.copy([1: 30 * Self.day], for: "b.test", by: "gate.test").signedCopy
    var state = DocumentState()
    state.watchHosts(of: copy, beside: [configured])
    let endpoints = state.endpoints(configured: [configured])
    #expect(endpoints.map(\.id) == ["gate.test:443", "b.test:443"])
    state = state.goingOn(from: copy, endpoints: endpoints)
    #expect(state.keysByEndpoint["b.test:443"]?.keys.map(\.pin) == [pin(1)])
  }

  @Test(
    "of a host that nobody configured keep what clients ask for, unless a person says otherwise")
  func asking() throws {
    let settings = HostSettings(try HostPattern("b.test"), ca: [pin(101)], match: .any)
    let copy = Self.copy([1: 30 * Self.day], for: "b.test", asking: [settings]).signedCopy
    let (asked, decided) = (
      HostTerms(ca: NamedIssuers(pins: [pin(101)]), match: .any), HostTerms(match: .any)
    )
    for person in [nil, decided] {
      var state = DocumentState()
      if let person { state.overrides["b.test:443", default: .init()].terms = person }
      state.watchHosts(of: copy, beside: [])
      #expect(state.endpoints(configured: []).map(\.terms) == [person ?? asked])
    }
  }

  @Test("of hosts of one name that people added with other keys or terms do not mix")
  func addedApart() throws {
    let settings = HostSettings(try HostPattern("b.test"), ca: [pin(101)], match: .any)
    let copy = Self.copy(
      [1: 30 * Self.day], for: "a.test", by: "gate.test",
      beside: ["b.test": 1, "c.test": 2, "d.test": 1], asking: [settings]
    ).signedCopy
    var state = DocumentState()
    state.watchHosts(of: copy, beside: [])
    let endpoints = state.endpoints(configured: [])
    #expect(endpoints.map(\.id) == ["gate.test:443", "b.test:443", "c.test:443"])
    #expect(
      endpoints.map { $0.patterns.map(\.description) } == [
        ["a.test", "d.test"], ["b.test"], ["c.test"],
      ])
    #expect(endpoints.map(\.terms.match) == [.all, .any, .all])
    state = state.goingOn(from: copy, endpoints: endpoints)
    #expect(
      endpoints.map { state.keysByEndpoint[$0.id]?.keys.map(\.pin) } == [
        [pin(1)], [pin(1)], [pin(2)],
      ])
  }
}

/// What a server's copy says beside a store that went on without it.
@Suite("A copy that is older than the record") struct OlderCopyTests {
  private static let now = MachineBench.begin
  private let bench = MachineBench()

  private func decide(
    _ server: MachineServer, at now: Int64,
    _ change:
      @escaping @Sendable (
        inout DocumentState, DocumentState.Request, [WatchedEndpoint]
      ) throws(AdministrationError) -> [HistoryEntry]
  ) {
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    server.ask(1) { state, configured throws(AdministrationError) in
      try change(&state, request, configured)
    }
    server.rest(at: now)
  }

  private func deny(_ number: UInt8, with server: MachineServer, at now: Int64) {
    decide(server, at: now) { state, request, configured throws(AdministrationError) in
      try state.deny(pin(number), configured: configured, force: true, request)
    }
  }

  private func show(_ number: UInt8, to server: MachineServer, at now: Int64) {
    server.probe(.accepted(pin(number)), at: now)
    server.rest(at: now)
  }

  @Test(
    "denies what it denied, where the store was restored and went on while its server was down",
    arguments: [false, true])
  func lostDenial(isAllowedSince: Bool) throws {
    let server = MachineServer(bench)
    server.rest(at: Self.now)
    show(1, to: server, at: Self.now)
    let before = try #require(bench.record)
    deny(9, with: server, at: Self.now + 1)
    // The other one has no copy of its own, or an older one.
    if !isAllowedSince { bench.goBack(to: before) }
    let other = MachineServer(bench)
    other.rest(at: Self.now + 60)
    if isAllowedSince {
      decide(other, at: Self.now + 61) { state, request, _ throws(AdministrationError) in
        try state.allow(pin(9), request)
      }
    }
    show(2, to: other, at: Self.now + 62)
    let (copy, record) = (try #require(server.copy?.number), try #require(bench.record))
    #expect(try #require(record.state.number) > copy && record.state.denied.isEmpty)
    server.restart()
    server.upkeep()
    server.rest(at: Self.now + 63)
    let denied: Set<SPKIPin> = isAllowedSince ? [] : [pin(9)]
    #expect(server.machine.state.deniedPins == denied)
    #expect(bench.record?.state.deniedPins == denied)
    #expect(server.log.contains("store_went_back") == !isAllowedSince)
    #expect(bench.documents[server.published?.bytes ?? []]?.denied == denied)
    #expect(bench.documents[server.published?.bytes ?? []]?.listed == [pin(1), pin(2)])
  }
  @Test(
    "denies nothing that was allowed before the copy from which a lost store began again",
    arguments: [false, true])
  func begunAgain(isAllowedSince: Bool) throws {
    let server = MachineServer(bench)
    server.rest(at: Self.now)
    show(1, to: server, at: Self.now)
    let other = MachineServer(bench)
    other.rest(at: Self.now + 1)
    deny(9, with: server, at: Self.now + 2)
    if isAllowedSince {
      other.refresh()
      other.rest(at: Self.now + 3)
      decide(other, at: Self.now + 4) { state, request, _ throws(AdministrationError) in
        try state.allow(pin(9), request)
      }
    }
    bench.goBack(to: nil)
    other.restart()
    other.rest(at: Self.now + 60)
    show(2, to: other, at: Self.now + 61)
    let record = try #require(bench.record)
    #expect(record.state.denied.isEmpty && record.state.beganFrom != nil)
    let read = try DocumentState(reading: record.state.encoded)
    #expect(read.beganFrom == record.state.beganFrom && read.number == record.state.number)
    server.restart()
    server.upkeep()
    server.rest(at: Self.now + 62)
    let denied: Set<SPKIPin> = isAllowedSince ? [] : [pin(9)]
    #expect(server.machine.state.deniedPins == denied)
    #expect(bench.record?.state.deniedPins == denied)
  }

  @Test(
    "takes out whose hosts it says are removed, where the store was restored, and not what was added again",
    arguments: [false, true])
  func lostRemoval(isAddedSince: Bool) throws {
    let (one, gone) = (MachineBench.hosts[0], MachineBench.hosts[1])
    func show(_ number: UInt8, at endpoint: WatchedEndpoint, _ server: MachineServer, _ now: Int64)
    {
      server.probe(.accepted(pin(number)), endpoint, at: now)
      server.rest(at: now)
    }
    let server = MachineServer(bench, endpoints: MachineBench.hosts)
    server.rest(at: Self.now)
    show(1, at: one, server, Self.now)
    show(5, at: gone, server, Self.now)
    let before = try #require(bench.record)
    decide(server, at: Self.now + 1) { state, request, configured throws(AdministrationError) in
      try state.remove(gone.id, configured: configured, request)
    }
    if !isAddedSince { bench.goBack(to: before) }
    let other = MachineServer(bench, endpoints: MachineBench.hosts)
    other.rest(at: Self.now + 60)
    if isAddedSince {
      decide(other, at: Self.now + 61) { state, request, configured throws(AdministrationError) in
        try state.add(gone, configured: configured, request)
      }
    }
    show(6, at: gone, other, Self.now + 62)
    #expect(try #require(bench.record?.state.number) > #require(server.copy?.number))
    server.restart()
    server.upkeep()
    server.rest(at: Self.now + 63)
    let record = try #require(bench.record)
    #expect((record.state.tombstones[gone.id] == nil) == isAddedSince)
    #expect(record.state.removed == (isAddedSince ? [] : gone.patterns))
    #expect(server.log.contains("store_went_back") == !isAddedSince)
    let listed: Set<SPKIPin> = isAddedSince ? [pin(1), pin(6)] : [pin(1)]
    #expect(bench.documents[server.published?.bytes ?? []]?.listed == listed)
  }
}
