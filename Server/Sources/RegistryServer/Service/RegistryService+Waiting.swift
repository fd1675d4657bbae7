import RegistryStores
import SslPinningPlatform

/// How the service starts while its store is away.
///
/// - It listens, serves the last copies of `publish.dir` that can stand in (``LastCopies/served(_:)``), and says what it
///   waits for: in the log, `/readyz`, a metric, the overview. Administration is refused with the reason.
/// - Nothing is decided, signed, stored or copied before the store is open: what is known, and denied, is in there.
/// - A store of a newer program, or another program's, ends the waiting, and the server, as it ends a start. Whatever else it says is
///   no reason to, if one was open here before.
extension RegistryService {
  /// What came of the waiting.
  struct Waiting: Sendable {
    /// Why the store refused.
    var refusal: StoreError?
    /// Is told when it is over, and of a refusal.
    var whenOver: (@Sendable (StoreError?) -> Void)?
  }

  /// Has the mark written that could not be, and tells if it still cannot, or once it is.
  static func tellMark(of store: SealedStore, _ services: CoordinatorServices, at now: Int64) {
    let (mark, isOfCopies) = (services.copies?.mark ?? store.mark, services.copies?.mark != nil)
    // Without copies nothing is remembered of them.
    guard !isOfCopies || services.copies?.directory != nil else { return }
    mark.settle()
    let consequence =
      if isOfCopies {
        "an older copy in publish.dir is believed"
      } else if mark.isUnread {
        "no store is believed"
      } else {
        "an older store's own record is believed, and a store without any is a new one"
      }
    let message = "tls.dir does not have what this server saw last: at a start \(consequence)"
    let cure =
      isOfCopies
      ? "remove it, which lets an older copy be believed at a start until the next one of its"
        + " document is written, within a day"
      : "ssl-pinning store reset \(StoreIdentity.recordName) --take, after which older records and copies"
        + " are believed until the next one of their document"
    let hint =
      mark.isUnread ? "; hint: let the server's user read it or, if it is damaged, \(cure)" : ""
    let reason = mark.problem.map { $0 + hint }
    // Behind the one that is there. A place where there never was one may be meant, and is told by the log alone.
    let isBehind = reason != nil && mark.written != nil
    guard
      services.health.unwritten(
        mark: reason.map { "\(message): \($0)" }, isBehind: isBehind, at: now)
    else { return }
    guard let reason else { return services.log.event(.info, "store_marked") }
    services.log.event(
      isBehind ? .error : .info, "store_not_marked", ["reason": reason, "message": message])
  }

  /// How long the log says nothing more of a store that stays away, in milliseconds.
  static let quietTime: Int64 = 600_000

  /// The pauses between attempts, in milliseconds: twice as long each, and no longer than a leader is missed.
  static func pause(after attempts: Int) -> Int64 { min(5000, 250 << Int64(min(attempts, 8))) }

  /// Whether an error is no reason to end a start.
  func isAbsence(_ error: StoreError) -> Bool {
    error.isAbsence(wasOpen: store.mark.seen != nil)
  }

  /// Says that the store is away, and publishes what can stand in for it.
  func beginWaiting(because error: StoreError) async {
    health.awaits(store: "\(error)", at: clock.now())
    metrics.awaitsStore(true)
    tellAbsence(error)
    await publishCopies()
  }

  /// Publishes the last copy of each document that has none yet.
  func publishCopies() async {
    for coordinator in duty.coordinators where documents.document(coordinator.file) == nil {
      guard let copy = await services.copies?.served(coordinator.file) else { continue }
      await coordinator.serve(copy)
    }
  }

  /// Tries until the store is open.
  ///
  /// - Returns: whether it is; not if the task was cancelled, or the store refuses.
  func waitForStore() async -> Bool {
    let began = MonotonicReading.milliseconds()
    var (attempts, told) = (0, began)
    while true {
      // Not by the clock: nothing is decided by it, and a clock that is set changes nothing.
      let pause = Self.pause(after: attempts)
      guard (try? await Task.sleep(for: .milliseconds(pause))) != nil else { return false }
      attempts += 1
      guard let error = await inTurn({ [self] in await tryToOpen() }) else {
        let seconds = (MonotonicReading.milliseconds() - began) / 1000
        log.event(.info, "store_came", ["waited": "\(seconds) s", "attempts": "\(attempts)"])
        waiting.withLock(\.whenOver)?(nil)
        return true
      }
      health.awaits(store: "\(error)", at: clock.now())
      guard isAbsence(error) else {
        log.event(.error, "store_refused", ["reason": "\(error)"])
        waiting.withLock { $0.refusal = error }
        waiting.withLock(\.whenOver)?(error)
        return false
      }
      // Those that could not be read before.
      await publishCopies()
      let now = MonotonicReading.milliseconds()
      guard now - told >= Self.quietTime else { continue }
      told = now
      tellAbsence(error)
    }
  }

  private func tryToOpen() async -> StoreError? {
    do throws(StoreError) { try await open() } catch { return error }
    // In this order: what is asked for from now on finds it open.
    health.awaits(store: nil, at: clock.now())
    metrics.awaitsStore(false)
    return nil
  }

  private func tellAbsence(_ error: StoreError) {
    log.event(
      .warn, "store_away",
      [
        "reason": "\(error)",
        "message":
          "the last copies in publish.dir are served, and nothing is decided or signed; it is tried again",
      ])
  }

  /// Runs what must not run beside other such work: opening the store, and taking a configuration in force.
  func inTurn<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) async -> Value {
    let task = turn.withLock { last in
      let task = Task { [last] in
        await last?.value
        return await work()
      }
      last = Task { _ = await task.value }
      return task
    }
    return await task.value
  }
}
