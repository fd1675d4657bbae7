import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// One host in two documents, `a.json` and `b.json`. In the second a third endpoint shows a key of another CA, which waits for a person.
/// Either of the two others can be taken out, and not both: the key that waits would be the host's first one.
@Suite(
  "An endpoint is taken out by what the other documents have at its turn", .timeLimit(.minutes(3)))
struct RemovedTogetherTests {
  private static let now: Int64 = 1_780_000_000
  private static let first = AdministrationCommand.remove(file: "a.json", id: "www.test:443")
  private static let second = AdministrationCommand.remove(file: "b.json", id: "www.test:443")
  private static let refusal = AdministrationError.leavesUnseen(["*.www.test", "www.test"])

  /// A server, and who administers it.
  private struct Server {
    let services: CoordinatorServices
    let coordinators: [DocumentCoordinator]
    let administration: RegistryAdministration
    /// The documents in force.
    let inForce: Locked<[DocumentCoordinator]>

    init(_ store: TroubledStore, second: String = "{fqdn: www.test, file: b.json},") async throws {
      let www = "{fqdn: www.test, file: a.json}, {fqdn: a.test, file: a.json}"
      let waiting = "{fqdn: www.test, port: 8443, file: b.json}, {fqdn: b.test, file: b.json}"
      let yaml = "keys: [\(www), \(second) \(waiting)]"
      let services = CoordinatorServices(
        signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
        published: PublishedDocuments(files: ["a.json", "b.json"]), health: ServiceHealth(),
        log: .silent)
      let coordinators = try configuration(yaml).documents.map {
        DocumentCoordinator(
          CoordinatorSettings($0, tls: TLSConfiguration(confirmations: 1)), services: services)
      }
      let inForce = Locked(coordinators)
      (self.services, self.coordinators, self.inForce) = (services, coordinators, inForce)
      administration = RegistryAdministration(
        coordinators: { inForce.withLock { $0 } }, store: store,
        clock: SteadyClock(TestClock(RemovedTogetherTests.now + 70)), changed: { _ in })
      for coordinator in coordinators {
        try await coordinator.open(at: RemovedTogetherTests.now)
      }
    }

    /// Publishes what the endpoints show, but for the one whose key waits.
    func probe() async throws {
      for coordinator in coordinators {
        for endpoint in await coordinator.endpoints {
          let answer = LedgerBench.Answer.key(
            endpoint.port == 443 ? 1 : 9, under: endpoint.port == 443 ? 100 : 77)
          _ = await coordinator.enter(
            LedgerBench.probe([(LedgerBench.here, "192.0.2.1", answer)]), of: endpoint,
            at: RemovedTogetherTests.now)
        }
      }
      let waiting = await coordinators[1].state.keysByEndpoint["www.test:8443"]
      try #require(waiting?.keys.isEmpty ?? true)
    }

    /// Why an endpoint was not taken out, and what was told of it meanwhile.
    func refusal(
      of command: AdministrationCommand
    ) async -> (error: AdministrationError?, noted: [String]) {
      var noted: [String] = []
      do throws(AdministrationError) {
        _ = try await administration.perform(command, by: "ada", why: "") {
          noted += $0.map(\.event)
        }
        return (nil, noted)
      } catch { return (error, noted) }
    }
  }

  private let store = TroubledStore()

  @Test("of two at once, in two documents, the second is judged after the first")
  func atOnce() async throws {
    let server = try await Server(store)
    try await server.probe()
    let gate = Gate()
    await store.hold(at: gate)
    async let first = server.refusal(of: Self.first)
    #expect(await eventually { gate.count == 1 })
    async let second = server.refusal(of: Self.second)
    #expect(await eventually { server.administration.everywhere.waits == 1 })
    gate.open()
    #expect(await first.error == nil)
    let refused = await second
    // Nothing of it was in force at any time.
    #expect(refused.error == Self.refusal && refused.noted.isEmpty)
  }

  @Test("what another server has stored counts, though this one has not heard of it")
  func twoServers() async throws {
    let server = try await Server(store)
    try await server.probe()
    let other = try await Server(store)
    #expect(await other.refusal(of: Self.second).error == nil)
    let refused = await server.refusal(of: Self.first)
    #expect(refused.error == Self.refusal && refused.noted.isEmpty)
  }

  /// Both were judged before either was made.
  @Test("of two at two servers at once, one at least is taken back with all that the endpoint had")
  func twoServersAtOnce() async throws {
    let server = try await Server(store)
    try await server.probe()
    let other = try await Server(store)
    let gate = Gate()
    await store.hold(at: gate)
    async let first = server.refusal(of: Self.first)
    #expect(await eventually { gate.count == 1 })
    async let second = other.refusal(of: Self.second)
    #expect(await eventually { gate.count == 2 })
    gate.open()
    let answers = await [first, second]
    #expect(answers.contains { $0.error == Self.refusal })
    for (answer, file) in zip(answers, ["a.json", "b.json"]) where answer.error != nil {
      #expect(answer.error == Self.refusal)
      #expect(answer.noted == ["endpoint_removed", "endpoint_added"])
      let record = try #require(try await store.record(named: file))
      let state = try DocumentState(decoding: record.bytes, file: file)
      #expect(state.tombstones.isEmpty)
      #expect(state.keysByEndpoint["www.test:443"]?.keys.map(\.pin) == [pin(1)])
      #expect(state.removed.isEmpty)
    }
  }

  /// Without the second document nobody else speaks for the host.
  @Test(
    "what an edit of the configuration brings while it waits counts", arguments: [false, true])
  func broughtMeanwhile(isBrought: Bool) async throws {
    let server = try await Server(store, second: "")
    try await server.probe()
    server.inForce.withLock { $0 = [server.coordinators[0]] }
    server.services.edits.close()
    async let answer = server.refusal(of: Self.first)
    #expect(await eventually { server.services.edits.waits == 1 })
    if isBrought { server.inForce.withLock { $0 = server.coordinators } }
    server.services.edits.open()
    let (error, noted) = await answer
    #expect(error == (isBrought ? Self.refusal : nil))
    #expect(noted == (isBrought ? [] : ["endpoint_removed"]))
  }
}
