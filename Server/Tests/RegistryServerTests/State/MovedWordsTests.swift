import SslPinningRules
import Testing

@testable import RegistryCore

/// What people said of an endpoint, where its hosts go on without it.
@Suite("What people decided about hosts that move") struct MovedWordsTests: HeirScene {
  let bench = MachineBench()
  private let now = MachineBench.begin
  private static let request = DocumentState.Request(
    who: "ada", at: MachineBench.begin, why: "")
  private var one: WatchedEndpoint { endpoint(1, "a.test") }
  private var other: WatchedEndpoint { endpoint(2, "b.test") }

  /// Of an endpoint with a key, and another one beside it.
  private func seen() -> DocumentState {
    let server = start([one, other], at: now)
    show(1, under: 101, at: one, server, now)
    show(2, under: 101, at: other, server, now)
    return server.machine.state
  }

  private func named(_ endpoint: WatchedEndpoint) -> WatchedEndpoint {
    var next = self.endpoint(7)
    next.patterns = endpoint.patterns
    return next
  }

  @Test("does not come back over what they said since, at a rename to and fro")
  func toAndFro() {
    var state = seen()
    let next = named(one)
    _ = state.change(one.id, interval: nil, approval: .manual, isPaused: true, Self.request)
    state.follow(state.endpoints(configured: [next, other]))
    #expect(state.endpoints(configured: [next, other]).map(\.approval) == [.manual, nil])
    #expect(!state.isPaused(next.id))
    _ = state.change(next.id, interval: nil, approval: .automatic, isPaused: nil, Self.request)
    state.follow(state.endpoints(configured: [one, other]))
    #expect(state.endpoints(configured: [one, other]).map(\.approval) == [nil, nil])
    #expect(!state.isPaused(one.id))
  }

  @Test("is still known of an endpoint that never showed a key, when it is configured again")
  func neverSeen() {
    var state = seen()
    let new = endpoint(4, "new.test")
    state.follow(state.endpoints(configured: [one, other, new]))
    _ = state.change(new.id, interval: nil, approval: .manual, isPaused: nil, Self.request)
    state.follow(state.endpoints(configured: [one, other]))
    state.follow(state.endpoints(configured: [one, other, new]))
    #expect(state.endpoints(configured: [new]).first?.approval == .manual)
  }

  /// What people did.
  enum Word: CaseIterable {
    case nothing, manual, terms, announced, takenOut
  }

  @Test("does not go along to another document, which is told", arguments: Word.allCases)
  func otherDocument(_ word: Word) throws {
    var state = seen()
    let request = Self.request
    let terms = HostTerms(ca: NamedIssuers(pins: [pin(101)]), match: .any)
    switch word {
    case .nothing: break
    case .manual:
      _ = state.change(one.id, interval: nil, approval: .manual, isPaused: nil, request)
    case .terms:
      _ = try state.setTerms(
        terms, of: one.id, configured: [one, other], force: true, request)
    case .announced: _ = try state.stage(pin(8), at: one.id, request)
    case .takenOut: _ = try state.remove(one.id, configured: [one, other], request)
    }
    var beside = DocumentState()
    func isTold(_ endpoints: WatchedEndpoint..., keeping: [WatchedEndpoint]?) -> Bool {
      let stay = keeping.map(DocumentState.Stay.keeps) ?? .goes
      return DocumentState.Words(in: state, stay: stay)?.left(by: endpoints, of: beside).isEmpty
        == false
    }
    let isSaid = word != .nothing
    // A document in which nothing was decided is held against no other one: they would be pairs without number.
    #expect((DocumentState.Words(in: state, stay: .goes) != nil) == isSaid)
    #expect((DocumentState.Words(in: state, stay: .keeps([one, other])) != nil) == isSaid)
    #expect(isTold(one, keeping: [other]) == isSaid)
    // The document is left as a whole; a wildcard speaks for the host there; the host had left before.
    #expect(isTold(one, keeping: nil) == isSaid)
    #expect(isTold(endpoint(1, "*.test"), keeping: [other]) == isSaid)
    if word != .takenOut {
      let before = state
      state.follow(state.endpoints(configured: [other]))
      #expect(isTold(one, keeping: [other]) == isSaid)
      state = before
    }
    // It stays here, too: one that was taken out would be watched there all the same. Others move.
    #expect(isTold(one, keeping: [one, other]) == (word == .takenOut))
    #expect(!isTold(other, keeping: [one]))
    // Said again where it is then.
    var said = one
    (said.approval, said.terms) = (.manual, terms)
    #expect(isTold(said, keeping: [other]) == [.announced, .takenOut].contains(word))
    // It was copied there before, or is renamed there now, or another endpoint there speaks for its host.
    let isSaidHere = isSaid && word != .takenOut
    beside.watched = [one]
    #expect(isTold(one, keeping: [other]) == isSaidHere)
    #expect(isTold(named(one), keeping: [other]) == isSaidHere)
    beside.watched = [named(one)]
    #expect(isTold(named(one), keeping: [other]) == isSaidHere)
    #expect(isTold(one, keeping: [other]) == isSaid)
    (beside.watched, beside.orphans) = ([], [one.orphan(for: one.patterns[0])])
    #expect(isTold(one, keeping: [other]) == isSaid)
    // What left before is told once, to whoever begins to speak for its host, or comes back there.
    guard word != .takenOut else { return }
    state.follow(state.endpoints(configured: [other]))
    beside.watched = [one]
    #expect(!isTold(one, keeping: [other]))
    #expect(!isTold(named(one), keeping: [other]))
    beside.watched = [named(one)]
    #expect(isTold(one, keeping: [other]) == isSaid)
  }

  @Test(
    "is told if they said it where an older configuration still has a host that left here",
    arguments: [false, true])
  func saidBehind(isLeft: Bool) {
    let server = start([one, other], at: now)
    show(1, under: 101, at: one, server, now)
    show(2, under: 101, at: other, server, now)
    let behind = start([one, other], at: now)
    if isLeft {
      server.configure([other], at: now + 1)
      server.rest(at: now + 1)
      behind.refresh()
      behind.rest(at: now + 1)
    }
    let (id, request) = (one.id, Self.request)
    perform(behind, at: now + 2) { state, _ throws(AdministrationError) in
      try state.stage(pin(8), at: id, request)
    }
    for second in 2...3 as ClosedRange<Int64> {
      server.refresh()
      server.rest(at: now + second)
    }
    #expect(server.log.filter { $0 == "words_left" }.count == (isLeft ? 1 : 0))
    #expect(!behind.log.contains("words_left"))
  }

  @Test("a first sight beside another document's list of the host is one under a CA known there")
  func listedElsewhere() throws {
    let lists = DocumentListing(seen())
    for (key, authority, isListed) in [
      (1, 101, true), (5, 101, true), (9, 109, false),
    ] as [(UInt8, UInt8, Bool)] {
      for endpoint in [one, endpoint(5, "*.test"), endpoint(6, "c.test")] {
        let server = MachineServer(MachineBench(), endpoints: [endpoint])
        server.rest(at: now)
        server.others = [lists]
        for second in 1...4 as ClosedRange<Int64> {
          show(key, under: authority, at: endpoint, server, now + second)
        }
        let keys = server.machine.state.keysByEndpoint[endpoint.id]?.keys ?? []
        #expect(keys.map(\.pin) == (isListed || endpoint.port == 6 ? [pin(key)] : []))
        let held = server.machine.state.keysByEndpoint[endpoint.id]?.held ?? [:]
        #expect(held.isEmpty == (isListed || endpoint.port == 6))
      }
    }
  }

  @Test("a denial that was ended elsewhere ends, with its alert, and is in the history")
  func allowedElsewhere() throws {
    var (state, elsewhere, shared) = (seen(), seen(), SharedDenials())
    _ = try state.deny(pin(9), configured: [], force: true, Self.request)
    elsewhere.denied = state.denied
    _ = try elsewhere.allow(pin(9), .init(who: "bob", at: now + 5, why: "false alarm"))
    state.raise(
      ServerAlert(
        kind: .deniedKeySeen, endpoint: one.id, pin: pin(9), message: "", since: now))
    for each in [state, elsewhere] { shared.enter(each) }
    #expect(state.takeOver(shared, at: now + 9).map(\.event) == ["key_allowed"])
    #expect(state.denied.isEmpty)
    #expect(state.alerts[one.id, default: []].isEmpty)
    #expect(state.allowed[pin(9)] == now + 5)
    #expect(state.takeOver(shared, at: now + 10).isEmpty)
    // A younger document's next denial stands, also by a clock that was set back meanwhile.
    var younger = DocumentState()
    #expect(younger.takeOver(shared, at: now).isEmpty)
    _ = try younger.deny(
      pin(9), configured: [], force: true, .init(who: "ada", at: now - 3600, why: "for real"))
    for _ in 0..<2 {
      for each in [state, elsewhere, younger] { shared.enter(each) }
      for index in 0..<3 {
        switch index {
        case 0: _ = state.takeOver(shared, at: now)
        case 1: _ = elsewhere.takeOver(shared, at: now)
        default: _ = younger.takeOver(shared, at: now)
        }
      }
    }
    #expect([state, elsewhere, younger].allSatisfy { $0.deniedPins == [pin(9)] })
  }
}
