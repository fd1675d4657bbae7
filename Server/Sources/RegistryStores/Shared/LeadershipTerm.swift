import Foundation
import SslPinningPlatform

/// One leadership from its beginning to its end, however that comes.
///
/// What it is held by (a lock, a connection, a key) belongs to the store: it is let go of by
/// `release`, and the store says with ``end()`` when it was lost.
final class LeadershipTerm: StoreLeadership {
  private struct State {
    var isOver = false
    var waiting: [UUID: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Locked(State())
  private let release: @Sendable () async -> Void

  /// - Parameter release: gives up what it is held by; runs once, when it is resigned before it was
  ///   lost.
  init(release: @escaping @Sendable () async -> Void = {}) { self.release = release }

  /// Whether it was resigned or lost.
  var isOver: Bool { state.withLock { $0.isOver } }

  /// Returns early for a caller whose task was cancelled.
  func ended() async {
    let id = UUID()
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDone = state.withLock { state in
          if state.isOver || Task.isCancelled { return true }
          state.waiting[id] = continuation
          return false
        }
        if isDone { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
    }
  }

  func resign() async {
    if end() { await release() }
  }

  /// Says that it is over.
  ///
  /// - Returns: whether it was not before.
  @discardableResult
  func end() -> Bool {
    let (isFirst, waiting) = state.withLock { state in
      defer { (state.isOver, state.waiting) = (true, [:]) }
      return (!state.isOver, state.waiting)
    }
    for continuation in waiting.values { continuation.resume() }
    return isFirst
  }
}
