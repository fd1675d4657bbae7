import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TestSupport
import Testing

@testable import SslPinning

@Suite("A registry with mirrors")
struct MirrorTests {
  private let stage: PlacesStage
  private static let mirrors = [PlacesStage.mirror(1), PlacesStage.mirror(2)]

  init() throws { stage = try PlacesStage() }

  /// A client of version 1, whose statement names two mirrors.
  private func keeper() async throws -> RegistryUpdater {
    stage.set(.own, .parts(try stage.document(1, mirrors: Self.mirrors), tag: "\"one\""))
    let keeper = try await stage.keeper()
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(stage.asked() == ["own document", "own statement 0"])
    return keeper
  }

  @Test("while it answers, nobody else is asked")
  func answering() async throws {
    let keeper = try await keeper()
    for place in [1, 2] { stage.set(try PlacesStage.place(place), .parts(try stage.document(9))) }
    _ = await keeper.refresh(bypassingCaches: true)
    #expect(stage.asked() == ["own statement 0 if \"one\""])
    stage.set(.own, .parts(try stage.document(2, mirrors: Self.mirrors)))
    _ = await keeper.refresh(bypassingCaches: true)
    #expect(stage.asked() == ["own statement 0 if \"one\""])
    #expect(keeper.versionInForce == "0.2" && keeper.status.origin == .network)
  }

  @Test("where it fails, they are asked one after the other, without its tag")
  func failing() async throws {
    let keeper = try await keeper()
    stage.set(.own, .failing())
    stage.set(try PlacesStage.place(1), .failing(.status(500)))
    stage.set(try PlacesStage.place(2), .parts(try stage.document(3, ["b.example"])))
    #expect(await keeper.refresh(bypassingCaches: false) == .success(true))
    #expect(
      stage.asked() == [
        "own statement 0 if \"one\"", "\(PlacesStage.mirror(1)) statement 0",
        "\(PlacesStage.mirror(2)) statement 0", "\(PlacesStage.mirror(2)) payload",
      ])
    #expect(keeper.versionInForce == "0.3" && keeper.status.origin == .mirror)
    // That statement names none.
    #expect(await keeper.refresh(bypassingCaches: false) != .success(true))
    #expect(stage.asked() == ["own statement 0"])
  }

  @Test("where it is silent, they are asked after a second each; who answers later still counts")
  func silent() async throws {
    let keeper = try await keeper()
    stage.set(.own, .silent)
    stage.set(try PlacesStage.place(1), .silent)
    stage.set(
      try PlacesStage.place(2), .parts(try stage.document(2, mirrors: Self.mirrors)))
    let waits = stage.clock.waits
    let refresh = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await stage.isAsked(1))
    for asked in [2, 3] {
      #expect(await eventually { stage.clock.waits > waits })
      stage.clock.advance(by: 1)
      #expect(await stage.isAsked(asked))
    }
    #expect(await keeper.reaches("0.2"))
    #expect(keeper.status.origin == .mirror)
    // The mirror held back what the registry has.
    stage.set(.own, .parts(try stage.document(5, mirrors: Self.mirrors)))
    #expect(await refresh.value == .success(false))
    #expect(await keeper.reaches("0.5"))
    #expect(keeper.status.origin == .network)
    // And whoever is older than that takes nothing back.
    stage.set(try PlacesStage.place(1), .parts(try stage.document(4, ["thief.example"])))
    #expect(await eventually { keeper.state.withLock { $0.asked.values.allSatisfy(\.isEmpty) } })
    #expect(stage.asked().count == 3)
    #expect(try keeper.versionInForce == "0.5" && !keeper.lists(HostName("thief.example")))
  }

  @Test("what a mirror sends is believed for its signatures alone")
  func hostile() async throws {
    let keeper = try await keeper()
    stage.set(.own, .failing())
    let genuine = try stage.document(2, ["thief.example"], mirrors: Self.mirrors)
    let tampered = String(decoding: genuine, as: UTF8.self).replacing("thief", with: "chief")
    for answer in [
      .parts([UInt8](tampered.utf8)), .whole([UInt8](tampered.utf8)),
      .parts(try stage.document(1, ["thief.example"])), .failing(.status(404)),
      .part([UInt8]("{}".utf8), document: [UInt8]("<html>".utf8)),
    ] as [PlacesStage.Answer] {
      for place in [1, 2] { stage.set(try PlacesStage.place(place), answer) }
      guard case .failure = await keeper.refresh(bypassingCaches: false) else {
        Issue.record("believed: \(answer)")
        continue
      }
      #expect(try keeper.versionInForce == "0.1" && !keeper.lists(HostName("thief.example")))
    }
    // The control.
    stage.set(try PlacesStage.place(2), .parts(genuine))
    #expect(await keeper.refresh(bypassingCaches: false) == .success(true))
    #expect(keeper.versionInForce == "0.2")
  }

  @Test("after a refusal, a registry that holds back what is new does not keep it from its client")
  func heldBack() async throws {
    let keeper = try await keeper()
    stage.set(
      try PlacesStage.place(1), .parts(try stage.document(2, ["a.example", "c.example"])))
    let refusal = PinEvaluation(host: "c.example", outcome: .unlisted, decision: .refuse)
    #expect(keeper.requestRefresh(after: refusal))
    await keeper.refresh(after: refusal)
    #expect(try keeper.versionInForce == "0.2" && keeper.lists(HostName("c.example")))
  }

  @Test("a mirror that repeats itself hides neither that the registry is gone nor its list's age")
  func repeating() async throws {
    let keeper = try await keeper()
    stage.set(.own, .failing(.status(503, retryAfter: 80_000)))
    stage.set(
      try PlacesStage.place(1), .parts(try stage.document(1, mirrors: Self.mirrors)))
    stage.clock.advance(by: 8 * 86400)
    guard case .failure = await keeper.refresh(bypassingCaches: false) else {
      Issue.record("that the registry failed is hidden")
      return
    }
    #expect(keeper.status.isStale)
    // What it has that is newer counts, and from when it was signed.
    let issued = stage.clock.now.unixSeconds - 100
    stage.set(
      try PlacesStage.place(1),
      .parts(try stage.document(2, mirrors: Self.mirrors, issued: issued)))
    #expect(await keeper.refresh(bypassingCaches: false) == .success(false))
    #expect(keeper.status.age == 100 && keeper.status.origin == .mirror)
  }

  @Test("a mirror that is silent keeps nobody from asking the registry again")
  func silentMirror() async throws {
    let keeper = try await keeper()
    stage.set(try PlacesStage.place(1), .silent)
    stage.set(try PlacesStage.place(2), .silent)
    #expect(keeper.requestRefresh(after: refusal("b.example")))
    let first = Task { await keeper.refresh(after: refusal("b.example")) }
    #expect(await stage.isAsked(2))
    stage.set(.own, .parts(try stage.document(2, ["a.example", "c.example"])))
    #expect(keeper.requestRefresh(after: refusal("c.example")))
    await keeper.refresh(after: refusal("c.example"))
    #expect(try keeper.versionInForce == "0.2" && keeper.lists(HostName("c.example")))
    for place in [1, 2] { stage.set(try PlacesStage.place(place), .failing()) }
    await first.value
  }

  @Test("why the registry itself failed is what is told, and all are asked again later")
  func told() async throws {
    let keeper = try await keeper()
    stage.set(.own, .failing(.status(503, retryAfter: 500)))
    guard
      case .failure(
        .httpStatus(503, retryAfter: 500, url: "https://registry.example/signed.json")) =
        await keeper.refresh(bypassingCaches: false)
    else {
      Issue.record("another failure is told")
      return
    }
    #expect(stage.asked().count == 3)
  }

  private func refusal(_ host: String) -> PinEvaluation {
    PinEvaluation(host: host, outcome: .mismatch(.leaf), decision: .refuse)
  }

  /// Whether a request that was refused would wait, and find its host listed then.
  private func isServed(_ host: String, by keeper: RegistryUpdater) async throws -> Bool {
    let refusal = refusal(host)
    guard keeper.requestRefresh(after: refusal) else { return false }
    await keeper.refresh(after: refusal)
    return try keeper.lists(HostName(host))
  }

  @Test(
    "requests that are refused wait for the mirrors, too, where the registry fails or is behind",
    arguments: [true, false])
  func waiting(fails: Bool) async throws {
    let keeper = try await keeper()
    if fails { stage.set(.own, .failing()) }
    stage.set(try PlacesStage.place(1), .silent)
    let first = Task { try await isServed("c.example", by: keeper) }
    #expect(await stage.isAsked(2))
    // The limit keeps them from a fetch of their own, and there is one to wait for.
    let refusal = refusal("c.example")
    for _ in 0..<5 { #expect(keeper.requestRefresh(after: refusal)) }
    let others = (0..<5).map { _ in
      Task {
        await keeper.refresh(after: refusal)
        return try keeper.lists(HostName("c.example"))
      }
    }
    stage.set(
      try PlacesStage.place(1),
      .parts(try stage.document(2, ["a.example", "c.example"], mirrors: Self.mirrors)))
    for task in [first] + others { #expect(try await task.value) }
  }

  @Test("a refused request that finds a fetch which hangs is owed one of its own")
  func hangingFetch() async throws {
    let keeper = try await keeper()
    stage.set(.own, .silent)
    let scheduled = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await stage.isAsked(1))
    _ = stage.asked()
    stage.clock.advance(by: 1)
    let document = try stage.document(2, ["a.example", "c.example"])
    let request = Task { try await isServed("c.example", by: keeper) }
    // The registry itself, once more.
    #expect(await eventually { stage.asked().contains { $0.hasPrefix("own ") } })
    stage.set(.own, .parts(document))
    #expect(try await request.value)
    _ = await scheduled.value
  }

  @Test("silent mirrors are asked four times at most, however many requests are refused meanwhile")
  func manyRefusals() async throws {
    let keeper = try await keeper()
    for place in [1, 2] { stage.set(try PlacesStage.place(place), .silent) }
    let refused = (0..<40).map { number in
      Task { try await isServed("host\(number).example", by: keeper) }
    }
    // Each has had an answer of the registry itself, and nobody waits for more than one mirror.
    let asked = Locked<[String]>([])
    #expect(
      await eventually {
        stage.clock.advance(by: 1)
        return asked.withLock {
          $0 += stage.asked()
          return $0.contains { $0.contains("mirror2") }
        }
      })
    #expect((1...4).contains(asked.withLock { $0.count { $0.contains("mirror1") } }))
    for place in [1, 2] { stage.set(try PlacesStage.place(place), .failing()) }
    for task in refused { #expect(try await !task.value) }
  }

  @Test("a refused request waits for no answer of a mirror that a cache may give")
  func cachedAnswer() async throws {
    let keeper = try await keeper()
    stage.set(.own, .failing())
    for place in [1, 2] { stage.set(try PlacesStage.place(place), .silent) }
    let scheduled = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await stage.isAsked(2))
    stage.clock.advance(by: 1)
    let request = Task { try await isServed("c.example", by: keeper) }
    let asked = Locked<[String]>([])
    #expect(
      await eventually {
        asked.withLock {
          $0 += stage.asked()
          return $0.count { $0.contains("mirror1") } == 2
        }
      })
    for place in [1, 2] { stage.set(try PlacesStage.place(place), .failing()) }
    #expect(try await !request.value)
    _ = await scheduled.value
  }

  @Test("a mirror that hands out old versions, one a round, keeps nobody from the next one")
  func trickle() async throws {
    let keeper = try await keeper()
    stage.set(.own, .failing())
    stage.set(
      try PlacesStage.place(1), .parts(try stage.document(2, mirrors: Self.mirrors)))
    stage.set(
      try PlacesStage.place(2),
      .parts(try stage.document(60, ["a.example", "c.example"], mirrors: Self.mirrors)))
    #expect(try await isServed("c.example", by: keeper))
    #expect(keeper.versionInForce == "0.60")
  }

  @Test("a mirror that is behind is asked for its statement, and for nothing more")
  func behind() async throws {
    let keeper = try await keeper()
    stage.set(.own, .parts(try stage.document(5, mirrors: Self.mirrors)))
    _ = await keeper.refresh(bypassingCaches: true)
    stage.set(.own, .failing())
    stage.set(try PlacesStage.place(1), .parts(try stage.document(3, ["b.example"])))
    _ = stage.asked()
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(
      stage.asked().filter { $0.contains("mirror1") } == ["\(PlacesStage.mirror(1)) statement 0"])
    #expect(keeper.versionInForce == "0.5")
  }

  @Test("refused requests of several hosts share a fetch that has just begun")
  func shared() async throws {
    let keeper = try await keeper()
    stage.set(.own, .silent)
    #expect(keeper.requestRefresh(after: refusal("b.example")))
    let begun = keeper.state.withLock { $0.flights }
    #expect(keeper.requestRefresh(after: refusal("c.example")))
    #expect(keeper.state.withLock { $0.flights } == begun)
    // One that hangs they do not share.
    stage.clock.advance(by: 1)
    #expect(keeper.requestRefresh(after: refusal("d.example")))
    #expect(keeper.state.withLock { $0.flights } == begun + 1)
    stage.set(.own, .failing())
  }
}
