import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import SslPinning

@Suite("What comes in while a registry is being stored, and what could not be read before")
struct StoringRaceTests {
  @Test("what another process had stored takes no new epoch back, and no withdrawn key")
  func rollback() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 1))
    let keeper = try await stage.keeper()
    let other = try stage.believed(stage.document(1, 3, ["a.example", "evil.example"]))
    let lock = try stage.lock()
    stage.publish(try stage.document(1, 2))
    let second = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await keeper.reaches("1.2"))
    try await StoringStage.untilStoring()
    // The cure: another online key.
    stage.publish(try stage.document(2, 1))
    let third = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await keeper.reaches("2.1"))
    try stage.release(lock, storing: other)
    _ = await (second.value, third.value)
    #expect(keeper.versionInForce == "2.1")
    #expect(keeper.trusted.keySetEpoch == 2)
    #expect(try !keeper.lists(HostName("evil.example")))
    let (store, trust) = (stage.store, stage.trust)
    #expect(
      await eventually {
        let stored = try? store.load(under: trust, at: StoringStage.now).registry
        return stored?.stamp.version == .init(epoch: 2, version: 1)
      })
    // The thief of the withdrawn key is told no.
    stage.publish(try stage.document(1, 99, ["a.example", "thief.example"]))
    guard case .failure = await keeper.refresh(bypassingCaches: true) else {
      Issue.record("the withdrawn key is believed")
      return
    }
    #expect(try keeper.versionInForce == "2.1" && !keeper.lists(HostName("thief.example")))
  }

  @Test(
    "what takes long to judge is judged once, and nothing that comes meanwhile is lost",
    arguments: [true, false])
  func longJudgement(isNewerSlow: Bool) async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 1))
    let keeper = try await stage.keeper()
    let (document, trust) = (try stage.document(1, 2), stage.trust)
    @Sendable func newer(_ base: TrustedRegistry) -> RegistryUpdater.Change {
      .init(registry: base.update(with: document, under: trust, at: StoringStage.now).registry)
    }
    // An answer that changes nothing, as each of a server that says the same.
    @Sendable func unchanged(_ base: TrustedRegistry, _ count: Int) -> RegistryUpdater.Change {
      .init(registry: base.confirmed(at: StoringStage.now + Int64(count)))
    }
    var count = 0
    try keeper.putNow { base in
      count += 1
      guard count < 5 else { return nil }
      let (isOver, count) = (DispatchSemaphore(value: 0), count)
      Thread.detachNewThread {
        _ = try? keeper.putNow { isNewerSlow ? unchanged($0, count) : newer($0) }
        isOver.signal()
      }
      _ = isOver.wait(timeout: .now() + .milliseconds(100))
      return isNewerSlow ? newer(base) : unchanged(base, count)
    }
    #expect(count == 1)
    #expect(await keeper.reaches("1.2"))
    #expect(keeper.turns.sync { keeper.versionInForce } == "1.2")
  }

  @Test(
    "answers that take long to judge hold up no other client of the process, nor many of them what is handed over",
    .timeLimit(.minutes(1)))
  func manyAnswers() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 1))
    let keeper = try await stage.keeper()
    let (gate, document) = (DispatchSemaphore(value: 0), try stage.document(1, 2))
    keeper.turns.async { gate.wait() }
    let asked = keeper.trusted
    let visitor = RegistryVisitor(
      asked: asked, tag: nil, bypassesCaches: false, time: asked.time(at: StoringStage.now),
      fetch: { _ in .success(.fresh(document, etag: nil)) })
    let failed = Locked(0)
    let visits = (0..<10).map { _ in
      promptTask {
        let visit = await keeper.visit(.own, by: visitor)
        if case .failure = visit.result { failed.withLock { $0 += 1 } }
      }
    }
    // Four wait for their turn; the threads that all clients share wait for nothing.
    #expect(await eventually { failed.withLock { $0 } == 6 })
    #expect(await promptTask { true }.value)
    gate.signal()
    for visit in visits { await visit.value }
    #expect(failed.withLock { $0 } == 6)
    #expect(keeper.versionInForce == "1.2")
  }

  @Test("the tag of the newest document stays with it, whatever another process knew beyond")
  func tag() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 2), tag: "\"two\"")
    let keeper = try await stage.keeper()
    // The same document, and a host that vanished with it.
    let other = try stage.believed(stage.document(1, 1, ["a.example", "b.example"]))
      .update(with: stage.document(1, 2), under: stage.trust, at: StoringStage.now).registry
    var lock = try stage.lock()
    let second = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await stage.isAsked(2))
    try await StoringStage.untilStoring()
    // More knowledge of the same document: its tag is still its tag.
    try stage.release(lock, storing: other)
    _ = await second.value
    #expect(try await keeper.comesToList("b.example"))
    #expect(keeper.versionInForce == "1.2")
    lock = try stage.lock()
    let third = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await stage.isAsked(3))
    #expect(stage.asks.withLock { $0.last?.etag } == "\"two\"")
    try await StoringStage.untilStoring()
    // A newer document with a tag of its own, while the older one is being stored.
    stage.publish(try stage.document(1, 4, ["a.example", "new.example"]), tag: "\"four\"")
    let fourth = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await keeper.reaches("1.4"))
    let more = try stage.believed(stage.document(1, 1, ["a.example", "c.example"]))
      .update(with: stage.document(1, 2), under: stage.trust, at: StoringStage.now).registry
    try stage.release(lock, storing: more)
    _ = await (third.value, fourth.value)
    #expect(keeper.versionInForce == "1.4")
    for host in ["b.example", "c.example", "new.example"] {
      #expect(try await keeper.comesToList(host), "\(host)")
    }
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(stage.asks.withLock { $0.last?.etag } == "\"four\"")
    #expect(keeper.versionInForce == "1.4")
    // An "unchanged" for it confirms nothing older.
    #expect(try keeper.lists(HostName("new.example")))
  }

  @Test("of two statements with one number the one that was stored first stays, for every process")
  func oneNumber() async throws {
    let stage = try StoringStage()
    let first = try stage.believed(stage.document(1, 5, ["a.example", "b.example"]))
    _ = try stage.store.save(first, under: stage.trust, at: StoringStage.now)
    // This process cannot read it yet.
    let unlock = try stage.makeUnreadable()
    stage.publish(try stage.document(1, 5))
    let keeper = try await stage.keeper()
    #expect(keeper.versionInForce == "1.5")
    #expect(try !keeper.lists(HostName("b.example")))
    try unlock()
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(try await keeper.comesToList("b.example"))
    let saved = try stage.store.save(
      stage.believed(stage.document(1, 5)), under: stage.trust, at: StoringStage.now)
    #expect(saved.isSameDocument(as: first))
  }

  @Test("a document of another process that came in with no tag is asked for as a whole")
  func noTag() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 1), tag: "\"one\"")
    let keeper = try await stage.keeper()
    _ = try stage.store.save(
      stage.believed(stage.document(1, 5, ["a.example", "b.example"])), under: stage.trust,
      at: StoringStage.now)
    // "Unchanged" is about 1.1; storing it brings 1.5, whose tag nobody knows.
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(stage.asks.withLock { $0.last?.etag } == "\"one\"")
    #expect(try await keeper.comesToList("b.example"))
    #expect(keeper.versionInForce == "1.5")
    stage.publish(try stage.document(1, 6), tag: "\"one\"")
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(stage.asks.withLock { $0.last.map { $0.etag == nil } } == true)
    #expect(keeper.versionInForce == "1.6")
  }

  @Test("what another process stored counts where this one cannot fetch")
  func unreachable() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 1))
    let keeper = try await stage.keeper()
    _ = try stage.store.save(
      stage.believed(stage.document(1, 5, ["a.example", "b.example"])), under: stage.trust,
      at: StoringStage.now)
    stage.answer.withLock { $0 = { _ in .failure(.unreachable("an outage")) } }
    guard case .failure = await keeper.refresh(bypassingCaches: true) else {
      Issue.record("an outage is no success")
      return
    }
    #expect(try await keeper.comesToList("b.example"))
    #expect(keeper.versionInForce == "1.5")
  }

  @Test(
    "what another process stored counts where a mirror has only what this one has, on a full disk")
  func unwritable() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 2))
    let keeper = try await stage.keeper()
    _ = try stage.store.save(
      stage.believed(stage.document(1, 5, ["a.example", "b.example"])), under: stage.trust,
      at: StoringStage.now)
    try stage.makeUnwritable()
    // A node that is behind: news, but none that is taken.
    stage.publish(try stage.document(1, 1))
    _ = await keeper.refresh(bypassingCaches: true)
    #expect(try await keeper.comesToList("b.example"))
    #expect(keeper.versionInForce == "1.5")
  }

  @Test("a store that cannot be read at the start is asked again while nothing can be fetched")
  func unreadAtStart() async throws {
    let stage = try StoringStage()
    _ = try stage.store.save(
      stage.believed(stage.document(1, 5)), under: stage.trust, at: StoringStage.now)
    // As on a device that is locked: the file is there, and opening it fails.
    let unlock = try stage.makeUnreadable()
    let keeper = try await stage.keeper(bundle: stage.document(1, 1))
    #expect(keeper.versionInForce == "1.1")
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(keeper.versionInForce == "1.1")
    #expect(keeper.status.storage != .kept)
    try unlock()
    await #expect(throws: SslPinningError.self) {
      try await keeper.refresh(bypassingCaches: false).get()
    }
    #expect(await keeper.reaches("1.5"))
    #expect(keeper.status.storage == .kept)
  }

  @Test("a store that could not be read is read where nothing can be written, too")
  func unreadOnAFullDisk() async throws {
    let stage = try StoringStage()
    _ = try stage.store.save(
      stage.believed(stage.document(1, 5)), under: stage.trust, at: StoringStage.now)
    let unlock = try stage.makeUnreadable()
    let keeper = try await stage.keeper(bundle: stage.document(1, 1))
    try stage.makeUnwritable()
    try unlock()
    _ = await keeper.refresh(bypassingCaches: false)
    #expect(await keeper.reaches("1.5"))
    #expect(keeper.status.storage != .kept)
  }
}

@Suite("Fetches that were under way already")
struct JoinedFetchTests {
  @Test("a refusal that found a fetch under way is owed its own, though that one brought a change")
  func change() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 1))
    let keeper = try await stage.keeper()
    let isOpen = Locked(false)
    let count = Locked(0)
    let old = try stage.document(1, 2, ["a.example", "b.example"])
    let new = try stage.document(1, 3, ["a.example", "b.example", "c.example"])
    stage.answer.withLock {
      $0 = { _ in
        let number = count.withLock { count in
          count += 1
          return count
        }
        guard number == 1 else { return .success(.fresh(new, etag: nil)) }
        // It was answered before the key was published.
        _ = await eventually { isOpen.withLock { $0 } }
        return .success(.fresh(old, etag: nil))
      }
    }
    let running = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await eventually { count.withLock { $0 } == 1 })
    let refusal = PinEvaluation(host: "c.example", outcome: .unlisted, decision: .refuse)
    #expect(keeper.requestRefresh(after: refusal))
    let own = Task { await keeper.refresh(after: refusal) }
    try await StoringStage.untilStoring()
    isOpen.withLock { $0 = true }
    _ = await (running.value, own.value)
    #expect(count.withLock { $0 } == 2)
    #expect(try keeper.versionInForce == "1.3" && keeper.lists(HostName("c.example")))
  }

  @Test("a refresh past caches that found one through caches under way makes its own")
  func caches() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 1))
    let keeper = try await stage.keeper()
    let isOpen = Locked(false)
    let old = try stage.document(1, 1)
    let new = try stage.document(1, 3, ["a.example", "c.example"])
    stage.answer.withLock {
      $0 = { ask in
        _ = await eventually { isOpen.withLock { $0 } }
        // A cache on the way keeps the old one for its minute.
        return .success(.fresh(ask.bypassesCaches ? new : old, etag: nil))
      }
    }
    let running = Task { await keeper.refresh(bypassingCaches: false) }
    #expect(await stage.isAsked(2))
    let own = Task { await keeper.refresh(bypassingCaches: true) }
    try await StoringStage.untilStoring()
    isOpen.withLock { $0 = true }
    let (first, second) = await (running.value, own.value)
    #expect(stage.asks.withLock { $0.dropFirst().map(\.bypassesCaches) } == [false, true])
    #expect(try first.get() == false)
    #expect(try second.get())
    #expect(keeper.versionInForce == "1.3")
  }

  @Test("a refresh that found another one under way, answered before, makes its own")
  func answeredBefore() async throws {
    let stage = try StoringStage()
    stage.publish(try stage.document(1, 1))
    let keeper = try await stage.keeper()
    let isOpen = Locked(false)
    let old = try stage.document(1, 1)
    let new = try stage.document(1, 3, ["a.example", "c.example"])
    let count = Locked(0)
    stage.answer.withLock {
      $0 = { _ in
        let number = count.withLock { count in
          count += 1
          return count
        }
        if number == 1 { _ = await eventually { isOpen.withLock { $0 } } }
        return .success(.fresh(number == 1 ? old : new, etag: nil))
      }
    }
    let first = Task { await keeper.refresh(bypassingCaches: true) }
    #expect(await eventually { count.withLock { $0 } == 1 })
    let second = Task { await keeper.refresh(bypassingCaches: true) }
    try await StoringStage.untilStoring()
    isOpen.withLock { $0 = true }
    #expect(try await first.value.get() == false)
    #expect(try await second.value.get())
    #expect(count.withLock { $0 } == 2 && keeper.versionInForce == "1.3")
  }
}
