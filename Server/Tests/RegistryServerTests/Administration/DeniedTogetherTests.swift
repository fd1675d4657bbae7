import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// The host of the second of two documents shows the keys 2 and 3: either can be denied, and not both.
@Suite("A denial counts in every document or, if one objects, in none", .timeLimit(.minutes(3)))
struct DeniedTogetherTests {
  private static let now: Int64 = 1_780_000_000
  private static let files = ["a.json", "b.json"]

  /// A server, and who administers it.
  private struct Server {
    let published = PublishedDocuments(files: DeniedTogetherTests.files)
    let services: CoordinatorServices
    let coordinators: [DocumentCoordinator]
    let administration: RegistryAdministration

    init(_ store: TroubledStore, at time: Int64 = DeniedTogetherTests.now + 70) async throws {
      let yaml = "keys: [{fqdn: a.test, file: a.json}, {fqdn: b.test, file: b.json}]"
      let services = CoordinatorServices(
        signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
        published: published, health: ServiceHealth(), log: .silent)
      let coordinators = try configuration(yaml).documents.map {
        DocumentCoordinator(
          CoordinatorSettings($0, tls: TLSConfiguration(confirmations: 1)), services: services)
      }
      (self.services, self.coordinators) = (services, coordinators)
      administration = RegistryAdministration(
        coordinators: { coordinators }, store: store,
        clock: SteadyClock(TestClock(time)), changed: { _ in })
      for coordinator in coordinators {
        try await coordinator.open(at: DeniedTogetherTests.now)
      }
    }

    /// Publishes what the hosts show.
    func probe() async throws {
      let shown = [[UInt8(1)], [2, 3]]
      for (coordinator, keys) in zip(coordinators, shown) {
        let endpoint = try #require(await coordinator.endpoints.first)
        let view = keys.map { (LedgerBench.here, "192.0.2.\($0)", LedgerBench.Answer.key($0)) }
        _ = await coordinator.enter(
          LedgerBench.probe(view), of: endpoint, at: DeniedTogetherTests.now)
        let pins = published.content(coordinator.file)?.entries.map(\.pin) ?? []
        try #require(Set(pins) == Set(keys.map { pin($0) }))
      }
    }

    /// What became of a denial, and what was told of it meanwhile.
    func deny(_ key: UInt8, by who: String) async -> (error: AdministrationError?, noted: [String])
    {
      var noted: [String] = []
      do throws(AdministrationError) {
        let command = AdministrationCommand.deny(pin(key), force: false)
        _ = try await administration.perform(command, by: who, why: "stolen") {
          noted += $0.map(\.event)
        }
        return (nil, noted)
      } catch { return (error, noted) }
    }

    /// Why a change was not made.
    func refusal(
      of command: AdministrationCommand, _ judgement: ChangeJudgement
    ) async -> AdministrationError? {
      do throws(AdministrationError) {
        _ = try await administration.perform(
          command, by: "ada, confirmed by bob", why: "stolen", judgedBy: judgement
        ) { _ in }
        return nil
      } catch { return error }
    }

    /// What each document denies, and the keys that clients are given for the host of the second.
    func outcome() async -> (denied: [Set<SPKIPin>], listed: Set<SPKIPin>) {
      var denied: [Set<SPKIPin>] = []
      for coordinator in coordinators {
        await coordinator.upkeep(at: DeniedTogetherTests.now + 90)
        denied.append(await coordinator.state.deniedPins)
      }
      let listed = published.content("b.json")?.entries.map(\.pin) ?? []
      return (denied, Set(listed))
    }
  }

  private let store = TroubledStore()
  private static let objection = AdministrationError.leavesWithoutPin(["b.test", "*.b.test"])

  private static func opened() -> Gate {
    let gate = Gate()
    gate.open()
    return gate
  }

  @Test("two at once are made one after the other, and the second is judged after the first")
  func atOnce() async throws {
    let server = try await Server(store)
    try await server.probe()
    let gate = Gate()
    await store.hold(at: gate)
    async let first = server.deny(2, by: "ada")
    #expect(await eventually { gate.count == 1 })
    async let second = server.deny(3, by: "bob")
    #expect(await eventually { server.administration.everywhere.waits == 1 })
    gate.open()
    let (made, refused) = await (first, second)
    #expect(made.error == nil && made.noted == ["key_denied", "key_denied"])
    // Nothing of it was in force at any time.
    #expect(refused.error == Self.objection && refused.noted.isEmpty)
    let outcome = await server.outcome()
    #expect(outcome.denied == [[pin(2)], [pin(2)]])
    #expect(outcome.listed == [pin(3)])
  }

  @Test("at two servers the one that comes second is taken back, everywhere")
  func twoServers() async throws {
    let server = try await Server(store)
    try await server.probe()
    let other = try await Server(store)
    let gate = Gate()
    await store.hold(at: gate)
    async let second = other.deny(3, by: "bob")
    #expect(await eventually { gate.count == 1 })
    await store.hold(at: Self.opened())
    #expect(await server.deny(2, by: "ada").error == nil)
    gate.open()
    let refused = await second
    #expect(refused.error == Self.objection && refused.noted == ["key_denied", "key_allowed"])
    for server in [server, other, server] {
      let outcome = await server.outcome()
      #expect(outcome.denied == [[pin(2)], [pin(2)]])
      #expect(outcome.listed == [pin(3)])
    }
  }

  @Test(
    "what a document took over before its turn is judged all the same, and it is told if it cannot be taken back",
    arguments: [false, true])
  func takenOver(isStoreFailing: Bool) async throws {
    let server = try await Server(store)
    try await server.probe()
    let gate = Gate()
    await store.hold(at: gate)
    async let answer = server.deny(3, by: "bob")
    #expect(await eventually { gate.count == 1 })
    await store.hold(at: Self.opened())
    // Meanwhile the other key leaves the list, and what the first document denies gets to the second before its turn.
    _ = try await server.administration.perform(
      .revoke(file: "b.json", id: "b.test:443", pin(2), force: false), by: "ada", why: ""
    ) { _ in }
    server.services.edits.close()
    gate.open()
    #expect(await eventually { server.services.edits.waits == 1 })
    await server.coordinators[1].shareDenials(at: Self.now + 80)
    #expect(await server.coordinators[1].state.deniedPins == [pin(3)])
    await store.fail(isStoreFailing)
    server.services.edits.open()
    let refused = await answer
    await store.fail(false)
    guard isStoreFailing else {
      #expect(refused.error == Self.objection)
      #expect(refused.noted == ["key_denied", "key_allowed", "key_allowed"])
      let outcome = await server.outcome()
      #expect(outcome.denied == [[], []])
      #expect(outcome.listed == [pin(3)])
      return
    }
    #expect(refused.error == .notTakenBack([pin(3)], "\(Self.objection)"))
    #expect(refused.error.map { APIError($0).status } == 503)
  }

  /// When they confirm it, no host loses its last key by it.
  @Test(
    "what two people confirmed is made in no document if, at the turn of one, it is not what they saw",
    arguments: [false, true])
  func confirmed(isChanged: Bool) async throws {
    let server = try await Server(store)
    try await server.probe()
    let command = AdministrationCommand.deny(pin(3), force: true)
    let request = DocumentState.Request(who: "ada", at: Self.now + 70, why: "stolen")
    let documents = await server.administration.documents()
    let circumstances = command.circumstances(in: documents, request)
    let judgement = ChangeJudgement(
      confirmed: ChangeJudgement.Confirmed(
        basis: ChangeJudgement.Confirmed.hash(circumstances, "key"),
        hosts: Set(
          command.hostsLockedOut(in: documents, request).map(ChangeJudgement.Confirmed.mark)),
        keyID: "key", who: "ada"))
    let gate = Gate()
    await store.hold(at: gate)
    async let answer = server.refusal(of: command, judgement)
    #expect(await eventually { gate.count == 1 })
    await store.hold(at: Self.opened())
    if isChanged {
      _ = try await server.administration.perform(
        .revoke(file: "b.json", id: "b.test:443", pin(2), force: false), by: "eve", why: ""
      ) { _ in }
    }
    gate.open()
    #expect(await answer == (isChanged ? AdministrationError.changedMeanwhile("ada") : nil))
    let denied: Set<SPKIPin> = isChanged ? [] : [pin(3)]
    let outcome = await server.outcome()
    #expect(outcome.denied == [denied, denied])
    #expect(outcome.listed == (isChanged ? [pin(3)] : [pin(2)]))
  }

  @Test(
    "a denial stays that is repeated in the same words, if the repetition is not made in every document",
    arguments: [false, true])
  func repeated(isElsewhere: Bool) async throws {
    let server = try await Server(store)
    try await server.probe()
    let other = try await Server(store, at: Self.now + 80)
    let command = AdministrationCommand.deny(pin(9), force: false)
    #expect(await server.refusal(of: command, ChangeJudgement()) == nil)
    let ended = ChangeJudgement { file throws(AdministrationError) in
      if file == "b.json" { throw AdministrationError.tokenEnded }
    }
    let repeating = isElsewhere ? other : server
    // The other one has not read of it until it writes.
    let isKnown = await repeating.coordinators[0].state.deniedPins.contains(pin(9))
    #expect(isKnown != isElsewhere)
    #expect(await repeating.refusal(of: command, ended) == .tokenEnded)
    for server in [repeating, server] {
      #expect(await server.outcome().denied == [[pin(9)], [pin(9)]])
    }
    // What it was the first to make is taken back.
    let first = AdministrationCommand.deny(pin(8), force: false)
    #expect(await repeating.refusal(of: first, ended) == .tokenEnded)
    #expect(await repeating.outcome().denied == [[pin(9)], [pin(9)]])
  }

  @Test(
    "what somebody decided again since is not taken back with it, by whichever clock",
    arguments: [6, 5, 3] as [Int64])
  func decidedAgain(time: Int64) throws {
    var state = DocumentStateTests.settled()
    let bob = DocumentState.Request(who: "bob", at: 5, why: "stolen")
    _ = try state.deny(pin(9), configured: [], force: false, bob)
    var other = state
    let ada = DocumentState.Request(who: "ada", at: time, why: "stolen, too")
    _ = try other.deny(pin(9), configured: [], force: false, ada)
    let (error, now) = (Self.objection, Int64(7))
    let taken = state.takeBackDenial(of: pin(9), by: bob, because: error, at: now)
    #expect(taken.map(\.event) == ["key_allowed"] && state.deniedPins.isEmpty)
    #expect(other.takeBackDenial(of: pin(9), by: bob, because: error, at: now).isEmpty)
    #expect(other.deniedPins == [pin(9)])
    // Nor by a document that heard of the end alone.
    other.uniteDenials(with: state)
    #expect(other.deniedPins == [pin(9)])
  }
}
