import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

/// Records a client's verdicts, to be asked about afterwards.
///
///     let verdicts = VerdictRecorder(client)
///     _ = try? await session.data(from: url)
///     let verdict = await verdicts.first { $0.host == "api.example.com" }
///     #expect(verdict?.rule == "leaf-pin")
public final class VerdictRecorder: Sendable {
  private struct State {
    var verdicts: [PinEvaluation] = []
    var waits: [UInt64: Wait] = [:]
    var next: UInt64 = 0
    var hasEnded = false
  }

  /// Somebody who waits: from the moment he asks until he has his answer.
  private struct Wait {
    let condition: @Sendable (PinEvaluation) -> Bool
    var continuation: CheckedContinuation<PinEvaluation?, Never>?
  }

  private let state = Locked(State())
  private let listening: Locked<Task<Void, Never>?> = Locked(nil)

  /// Records from now on, for as long as it lives.
  public convenience init(_ client: SslPinningClient) { self.init(client.evaluations) }

  /// Records from now on, for as long as it lives.
  public convenience init(_ client: FixedPinsClient) { self.init(client.evaluations) }

  private init(_ stream: AsyncStream<PinEvaluation>) {
    listening.withLock {
      $0 = Task { [weak self] in
        for await verdict in stream { self?.record(verdict) }
        self?.end()
      }
    }
  }

  deinit {
    listening.withLock { $0 }?.cancel()
  }

  /// Every verdict so far, the oldest first.
  public var all: [PinEvaluation] { state.withLock { $0.verdicts } }

  /// The first verdict that is like this; waits for it.
  ///
  /// - Parameters:
  ///   - timeout: real seconds to wait at most, whatever the client's clock says.
  ///   - condition: what it must be like.
  /// - Returns: `nil` where none came in time, the task was cancelled, or the client went before.
  public func first(
    timeout: TimeInterval = 60,
    where condition: @escaping @Sendable (PinEvaluation) -> Bool = { _ in true }
  ) async -> PinEvaluation? {
    let id = state.withLock { state in
      state.next += 1
      state.waits[state.next] = Wait(condition: condition)
      return state.next
    }
    let timer = Task {
      try? await Clocks.systemSleep(timeout)
      answer(id, nil)
    }
    defer { timer.cancel() }
    return await withTaskCancellationHandler {
      await wait(id)
    } onCancel: {
      answer(id, nil)
    }
  }

  private func wait(_ id: UInt64) async -> PinEvaluation? {
    await withCheckedContinuation { continuation in
      let (wait, verdicts, hasEnded) = state.withLock { state in
        // What comes from now on looks at it, too.
        state.waits[id]?.continuation = continuation
        return (state.waits[id], state.verdicts, state.hasEnded)
      }
      // It is gone where the time or the task ended before anybody waited.
      guard let wait else { return continuation.resume(returning: nil) }
      let known = verdicts.first(where: wait.condition)
      if known != nil || hasEnded { answer(id, known) }
    }
  }

  private func answer(_ id: UInt64, _ verdict: PinEvaluation?) {
    let wait = state.withLock { $0.waits.removeValue(forKey: id) }
    wait?.continuation?.resume(returning: verdict)
  }

  private func record(_ verdict: PinEvaluation) {
    let waits = state.withLock { state in
      state.verdicts.append(verdict)
      // Whoever does not wait yet finds it among the others.
      return state.waits.filter { $0.value.continuation != nil }
    }
    // Outside of the lock: a condition may ask for all verdicts.
    for (id, wait) in waits where wait.condition(verdict) { answer(id, verdict) }
  }

  private func end() {
    let ids = state.withLock { state in
      state.hasEnded = true
      return state.waits.filter { $0.value.continuation != nil }.keys
    }
    for id in ids { answer(id, nil) }
  }
}
