import Foundation
import SslPinningPlatform
import TLSTools

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
