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

  /// What people did, or what waits for them.
  enum Word: CaseIterable {
    case nothing, manual, terms, announced, held, takenOut
  }

  @Test("does not go along to another document, which is told", arguments: Word.allCases)
  func otherDocument(_ word: Word) throws {
    var state = seen()
    let (request, terms) = (
      Self.request, HostTerms(ca: NamedIssuers(pins: [pin(101)]), match: .any)
    )
    switch word {
    case .nothing: break
    case .manual:
      _ = state.change(one.id, interval: nil, approval: .manual, isPaused: nil, request)
    case .terms:
      _ = try state.setTerms(
        terms, of: one.id, configured: [one, other], force: true, request)
    case .announced: _ = try state.stage(pin(8), at: one.id, request)
    case .held:
      let server = start([one, other], at: now)
      for second in 1...4 as ClosedRange<Int64> {
        show(1, under: 101, at: one, server, now)
        show(9, under: 109, at: one, server, now + second)
      }
      state = server.machine.state
      #expect(state.keysByEndpoint[one.id]?.held.isEmpty == false)
    case .takenOut: _ = try state.remove(one.id, configured: [one, other], request)
    }
    let beside = DocumentState()
    func isTold(_ newcomers: [WatchedEndpoint], keeping: [WatchedEndpoint]) -> Bool {
      !state.wordsLeft(by: newcomers, keeping: keeping).isEmpty
    }
    #expect(isTold(beside.newcomers(among: [one]), keeping: [other]) == (word != .nothing))
    // The document is left as a whole, or a wildcard speaks for the host there.
    #expect(isTold(beside.newcomers(among: [one]), keeping: []) == (word != .nothing))
    let wide = endpoint(1, "*.test")
    #expect(isTold(beside.newcomers(among: [wide]), keeping: [other]) == (word != .nothing))
    // It stays here, too: what waits would be a first sight all the same.
    #expect(isTold(beside.newcomers(among: [one]), keeping: [one, other]) == (word == .held))
    // Said again where it is then.
    var said = one
    (said.approval, said.terms) = (.manual, terms)
    let isAgain = [.announced, .held, .takenOut].contains(word)
    #expect(isTold(beside.newcomers(among: [said]), keeping: [other]) == isAgain)
    // Others move, or the other document has it already.
    #expect(!isTold(beside.newcomers(among: [other]), keeping: [one]))
    #expect(
      seen().newcomers(among: [one, endpoint(3, "a.test", "c.test")]).map(\.patterns) == [
        endpoint(3, "c.test").patterns
      ])
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
  }
}
