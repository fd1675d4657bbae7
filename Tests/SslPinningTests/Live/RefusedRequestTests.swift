import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TestSupport
import Testing

@testable import SslPinning

@Suite("What a refused request waits for")
struct RefusedRequestTests {
  private static let pin = SPKIPin(digest: [UInt8](repeating: 1, count: 32))
  private static let otherPin = SPKIPin(digest: [UInt8](repeating: 2, count: 32))

  private let stage: PlacesStage

  init() throws { stage = try PlacesStage() }

  /// A keeper of version 1, which lists a.example.
  private func keeper(mirrors: [Int] = []) async throws -> RegistryUpdater {
    let mirrors = mirrors.map(PlacesStage.mirror)
    stage.set(.own, .parts(try stage.document(1, mirrors: mirrors)))
    let keeper = try await stage.keeper()
    _ = stage.asked()
    return keeper
  }

  private func refusal(
    _ host: String, _ outcome: PinEvaluation.Outcome = .mismatch(.leaf), showing pin: SPKIPin? = pin
  ) -> PinEvaluation {
    PinEvaluation(
      host: host, outcome: outcome, decision: .refuse, presented: pin.map { [$0] } ?? [])
  }

  /// The version by which a request is judged again that was refused.
  private func request(_ refusal: PinEvaluation, to keeper: RegistryUpdater) -> Task<String?, Never>
  {
    Task {
      guard keeper.requestRefresh(after: refusal) else { return nil }
      await keeper.refresh(after: refusal)
      return keeper.versionInForce
    }
  }

  /// Refusals of hosts whose leaf is listed all the time, so that nobody knows what cures them.
  private static let others: [PinEvaluation.Outcome] = [
    .mismatch(.ca), .mismatch(.certificate), .noLivePin, .uncheckable(.ca),
    .clientTooOld(["later"]),
    .registryExpired(at: 0),
  ]

  @Test("the whole fetch, where another pin than the leaf's is missing", arguments: others)
  func wholeFetch(outcome: PinEvaluation.Outcome) async throws {
    let keeper = try await keeper()
    stage.set(.own, .silent)
    let request = request(refusal("a.example", outcome), to: keeper)
    #expect(await stage.isAsked(1))
    // Its fetch's own limit, and the refresh to come: it waits.
    #expect(await eventually { stage.clock.waits >= 2 })
    stage.set(.own, .parts(try stage.document(2)))
    #expect(await request.value == "0.2")
  }

  @Test("of a missing leaf pin, no longer than until it is listed")
  func leaf() async throws {
    let keeper = try await keeper(mirrors: [1])
    stage.set(.own, .silent)
    let first = request(refusal("c.example"), to: keeper)
    let unlisted = request(refusal("c.example", .unlisted), to: keeper)
    #expect(await stage.isAsked(1))
    stage.set(
      try PlacesStage.place(1), .parts(try stage.document(2, ["a.example", "c.example"])))
    // The registry itself stays silent.
    stage.clock.advance(by: 1)
    #expect(await first.value == "0.2")
    #expect(await unlisted.value == "0.2")
    stage.set(.own, .failing())
  }

  @Test("of a host that was not listed, until its key is, too", arguments: [true, false])
  func unlisted(isKey: Bool) async throws {
    let keeper = try await keeper(mirrors: [1])
    stage.set(.own, .silent)
    let request = request(
      refusal("c.example", .unlisted, showing: isKey ? Self.pin : Self.otherPin), to: keeper)
    #expect(await stage.isAsked(1))
    stage.set(
      try PlacesStage.place(1), .parts(try stage.document(2, ["a.example", "c.example"])))
    stage.clock.advance(by: 1)
    #expect(await eventually { keeper.versionInForce == "0.2" })
    if !isKey { stage.set(.own, .parts(try stage.document(3, ["a.example", "c.example"]))) }
    #expect(await request.value == (isKey ? "0.2" : "0.3"))
    stage.set(.own, .failing())
  }

  @Test(
    "a fetch that began since it was refused: a registry that hangs takes no thread for each host")
  func storm() async throws {
    let keeper = try await keeper()
    stage.set(.own, .silent)
    let requests = (0..<40).map { request(refusal("host\($0).example"), to: keeper) }
    // Each waits for the fetch that it found, for a second; the refresh to come waits, too.
    #expect(await eventually { stage.clock.waits >= 41 })
    stage.clock.advance(by: 1)
    #expect(await stage.isAsked(2))
    stage.set(.own, .failing())
    for request in requests { #expect(await request.value == "0.1") }
    #expect(stage.asked().count == 2)
  }

  @Test("a fetch of its own, where the one that it found changed another host alone")
  func otherChange() async throws {
    let documents = [
      try stage.document(1), try stage.document(2, ["a.example", "b.example"]),
      try stage.document(3, ["a.example", "b.example", "c.example"]),
    ]
    let asked = Locked(0)
    let isOpen = Locked(false)
    let keeper = try await RegistryUpdater(
      config: SslPinningConfig(
        endpointUrl: "https://registry.example/\(SignedRegistry.name)", signingKeyBase64: "",
        storage: .none),
      source: .whole { _ in
        let number = asked.withLock { asked in
          asked += 1
          return asked
        }
        if number == 2 { _ = await eventually { isOpen.withLock { $0 } } }
        return .success(.fresh(documents[min(number, 3) - 1], etag: nil))
      }, trust: stage.trust, store: nil, clocks: stage.clock.clocks)
    let other = request(refusal("b.example"), to: keeper)
    #expect(await eventually { asked.withLock { $0 } == 2 })
    let own = request(refusal("c.example"), to: keeper)
    #expect(await eventually { stage.clock.waits >= 3 })
    isOpen.withLock { $0 = true }
    #expect(await own.value == "0.3")
    _ = await other.value
  }

  @Test(
    "no other fetch, where the one that it found changed what refused it", arguments: [true, false])
  func curedByAnother(isChange: Bool) async throws {
    func document(_ version: Int64, ca: SPKIPin?) throws -> [UInt8] {
      let hosts = ["a.example", "b.example"]
      let pins = ca.map { [$0] } ?? []
      return try stage.registry.document(
        version: version, hosts: hosts,
        settings: try hosts.map { HostSettings(try HostPattern($0), ca: pins) })
    }
    stage.set(.own, .parts(try document(1, ca: Self.pin)))
    let keeper = try await stage.keeper()
    _ = stage.asked()
    stage.set(.own, .silent)
    let refusals = ["a.example", "b.example"].map {
      PinEvaluation(
        host: $0, outcome: .mismatch(.ca), decision: .refuse,
        presented: Self.pin.map { [$0] } ?? [],
        expectedLeaf: Self.pin.map { [Pin($0)] } ?? [], expectedCA: Self.pin.map { [Pin($0)] } ?? []
      )
    }
    let first = request(refusals[0], to: keeper)
    #expect(await stage.isAsked(1))
    let second = request(refusals[1], to: keeper)
    #expect(await eventually { stage.clock.waits >= 3 })
    stage.set(.own, .parts(try document(2, ca: isChange ? Self.otherPin : Self.pin)))
    #expect(await first.value == "0.2")
    #expect(await second.value == "0.2")
    // Where nothing changed, each is owed one that began after it was refused.
    #expect(keeper.state.withLock { $0.flights } == (isChange ? 1 : 2))
  }

  @Test("the fetch that it found, though a later one that asks for less has taken its place")
  func lesserFetch() async throws {
    let keeper = try await keeper(mirrors: [1])
    stage.set(.own, .failing())
    stage.set(try PlacesStage.place(1), .silent)
    let request = request(refusal("c.example"), to: keeper)
    #expect(await stage.isAsked(2))
    // The app asks, too; the registry is slow, and has nothing newer.
    stage.set(.own, .silent)
    let other = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await eventually { keeper.state.withLock { $0.refreshing?.isAnew == false } })
    let waits = stage.clock.waits
    stage.clock.advance(by: 1)
    #expect(await eventually { stage.clock.waits < waits })
    stage.set(.own, .parts(try stage.document(1, mirrors: [PlacesStage.mirror(1)])))
    #expect(await other.value == .success(false))
    stage.set(
      try PlacesStage.place(1), .parts(try stage.document(2, ["a.example", "c.example"])))
    #expect(await request.value == "0.2")
  }

  @Test("the fetch that it found, though a later one is over")
  func laterFetch() async throws {
    let keeper = try await keeper(mirrors: [1, 2])
    stage.set(.own, .failing())
    stage.set(try PlacesStage.place(1), .silent)
    let request = request(refusal("c.example"), to: keeper)
    #expect(await stage.isAsked(2))
    // Another node of the registry, which has nothing newer.
    stage.set(.own, .parts(try stage.document(1, mirrors: [1, 2].map(PlacesStage.mirror))))
    #expect(await keeper.refresh(bypassingCaches: false) == .success(false))
    stage.clock.advance(by: 1)
    #expect(await eventually { stage.asked().contains { $0.contains("mirror2") } })
    stage.set(
      try PlacesStage.place(1), .parts(try stage.document(2, ["a.example", "c.example"])))
    #expect(await request.value == "0.2")
  }

  @Test("a mirror's answer, which may be to another: one that says nothing is asked once more")
  func silentMirror() async throws {
    let keeper = try await keeper(mirrors: [1])
    stage.set(.own, .failing())
    stage.set(try PlacesStage.place(1), .silent)
    let asked = Locked<[String]>([])
    @Sendable func count(_ place: String) -> Int {
      asked.withLock {
        $0 += stage.asked()
        return $0.count { $0.contains(place) }
      }
    }
    var requests: [Task<String?, Never>] = []
    // Its connection may be dead, so another is tried. Not for each request: they would take all threads.
    for (seconds, mirror) in [(2, 1), (3, 1), (3, 2), (3, 3), (3, 4), (3, 4), (3, 4)]
      as [(Double, Int)]
    {
      requests.append(request(refusal("host\(requests.count).example"), to: keeper))
      let own = requests.count
      #expect(await eventually { count("own") == own && count("mirror1") >= mirror })
      stage.clock.advance(by: seconds)
    }
    #expect(count("mirror1") == 4)
    stage.set(try PlacesStage.place(1), .failing())
    for request in requests { #expect(await request.value == "0.1") }
  }
}
