import Foundation
import SslPinningPlatform
import TLSTools

/// The leadership of a store in Redis. See ``RedisLease``.
final class RedisLeaderships: Sendable {
  private struct State {
    var lease: RedisLease?
    var isClosed = false
  }

  private let key: String
  private let open: @Sendable () throws(StoreError) -> RedisConnection
  private let token: @Sendable () -> String
  private let queue = WorkQueue("leadership")
  private let connection = Slot<RedisConnection>()
  private let state = Locked(State())

  /// - Parameters:
  ///   - token: makes a text that nobody else makes.
  ///   - open: makes a connection; may block.
  init(
    key: String, token: @escaping @Sendable () -> String = RedisLeaderships.randomToken,
    open: @escaping @Sendable () throws(StoreError) -> RedisConnection
  ) {
    self.key = key
    self.token = token
    self.open = open
  }

  /// Takes the leadership if nobody has it.
  func take() async throws(StoreError) -> (any StoreLeadership)? {
    try await queue.run { [self] () throws(StoreError) in
      guard !state.withLock({ $0.isClosed }) else { throw .closed }
      guard state.withLock({ $0.lease?.term.isOver ?? true }) else { return nil }
      let (start, token) = (ContinuousClock.now, token())
      let answer = try connected().run(
        RedisScripts.take, keys: [key], ["\(token)", "\(RedisLease.lifetime)"])
      guard answer.number == 1 else { return nil }
      let lane = LeaseLane(key: key, token: token, open: open)
      let lease = RedisLease(from: start, renew: lane.renew, release: lane.release)
      state.withLock { $0.lease = lease }
      return lease.term
    }
  }

  /// Resigns where it leads, and closes the connection.
  func close() async {
    let lease = state.withLock { state in
      state.isClosed = true
      return state.lease.take()
    }
    await lease?.term.resign()
    try? await queue.run { self.connection.set(nil) }
  }

  private func connected() throws(StoreError) -> RedisConnection {
    if let kept = connection.value, kept.isUsable { return kept }
    connection.set(nil)
    let new = try open()
    connection.set(new)
    return new
  }

  static func randomToken() -> String {
    var generator = SystemRandomNumberGenerator()
    return "\(generator.next() as UInt64)-\(generator.next() as UInt64)"
  }
}

/// The connection that one lease is renewed over, opened again where it was lost.
private final class LeaseLane: Sendable {
  private let key: String
  private let token: String
  private let open: @Sendable () throws(StoreError) -> RedisConnection
  private let connection = Slot<RedisConnection>()

  init(
    key: String, token: String, open: @escaping @Sendable () throws(StoreError) -> RedisConnection
  ) {
    self.key = key
    self.token = token
    self.open = open
  }

  @Sendable func renew() throws(StoreError) -> Bool {
    try run(RedisScripts.renew, ["\(token)", "\(RedisLease.lifetime)"])
  }

  @Sendable func release() {
    _ = try? run(RedisScripts.resign, ["\(token)"])
    connection.set(nil)
  }

  private func run(_ script: String, _ arguments: [RedisWord]) throws(StoreError) -> Bool {
    if connection.value?.isUsable != true {
      connection.set(nil)
      connection.set(try open())
    }
    return try connection.value?.run(script, keys: [key], arguments).number == 1
  }
}

/// A leadership that lasts as long as it is renewed: a key with a random token that Redis forgets
/// after 5 s.
///
/// It counts as lost as soon as Redis says so, and after 4 s without a renewal whatever hinders it:
/// earlier than anybody else can have it. Times are the monotonic clock's, from before a renewal was
/// sent.
final class RedisLease: Sendable {
  /// Milliseconds after which Redis forgets the key.
  static let lifetime = 5000
  private static let longest: Duration = .seconds(4)

  let term: LeadershipTerm
  private let wakeup = SelfPipe()
  private let renewed: Locked<ContinuousClock.Instant>
  private let watch = Slot<RepeatingWork>()

  /// Begins to renew.
  ///
  /// - Parameters:
  ///   - start: from before the key was set.
  ///   - renew: renews it; false where somebody else has it. May block.
  ///   - release: gives it up. May block.
  init(
    from start: ContinuousClock.Instant,
    renew: @escaping @Sendable () throws(StoreError) -> Bool,
    release: @escaping @Sendable () -> Void
  ) {
    let gone = DispatchGroup()
    renewed = Locked(start)
    term = LeadershipTerm { [wakeup] in
      wakeup.wake()
      await withCheckedContinuation { continuation in
        gone.notify(queue: .global()) { continuation.resume() }
      }
    }
    watch.set(WorkQueue("leadership").every(200) { [weak self] in self?.check() })
    gone.enter()
    BackgroundThread.start("leadership") { [term, wakeup, renewed] in
      while wakeup.wait(milliseconds: 1000) != .woken, !term.isOver {
        let before = ContinuousClock.now
        // An error is no answer: it is tried again until the time is up.
        guard let isOurs = try? renew() else { continue }
        guard isOurs else { break }
        renewed.withLock { $0 = before }
      }
      release()
      term.end()
      gone.leave()
    }
  }

  deinit { wakeup.wake() }

  private func check() {
    guard ContinuousClock.now - renewed.withLock({ $0 }) >= Self.longest else { return }
    term.end()
    wakeup.wake()
    watch.set(nil)
  }
}
