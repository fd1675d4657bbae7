import Pinning
import PinningPlatform
import SslPinning

/// Records a client's verdicts, to be asked about afterwards.
///
///     let verdicts = VerdictRecorder(client)
///     _ = try? await session.data(from: url)
///     let verdict = await verdicts.first { $0.host == "api.example.com" }
///     #expect(verdict?.rule == "leaf-pin")
public final class VerdictRecorder: Sendable {
  private struct State {
    var verdicts: [PinEvaluation] = []
    var waiting: [UInt64: CheckedContinuation<PinEvaluation?, Never>] = [:]
    var conditions: [UInt64: @Sendable (PinEvaluation) -> Bool] = [:]
    var next: UInt64 = 0
    var hasEnded = false
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
  ///   - seconds: real seconds to wait at most, whatever the client's clock says.
  ///   - condition: what it must be like.
  /// - Returns: `nil` where none came in time, or the client went before.
  public func first(
    within seconds: Double = 60,
    where condition: @escaping @Sendable (PinEvaluation) -> Bool = { _ in true }
  ) async -> PinEvaluation? {
    let found = Locked<PinEvaluation?>(nil)
    await firstOf(
      { [self] in
        let verdict = await wait(for: condition)
        found.withLock { $0 = verdict }
      },
      { try? await Clocks.systemSleep(seconds) })
    return found.withLock { $0 }
  }

  private func wait(
    for condition: @escaping @Sendable (PinEvaluation) -> Bool
  ) async -> PinEvaluation? {
    await withCheckedContinuation { continuation in
      let (isOver, known) = state.withLock { state -> (Bool, PinEvaluation?) in
        if let known = state.verdicts.first(where: condition) { return (true, known) }
        guard !state.hasEnded else { return (true, nil) }
        state.next += 1
        state.waiting[state.next] = continuation
        state.conditions[state.next] = condition
        return (false, nil)
      }
      if isOver { continuation.resume(returning: known) }
    }
  }

  private func record(_ verdict: PinEvaluation) {
    let answered = state.withLock { state in
      state.verdicts.append(verdict)
      let ids = state.conditions.filter { $0.value(verdict) }.map(\.key)
      return ids.compactMap { id in
        state.conditions[id] = nil
        return state.waiting.removeValue(forKey: id)
      }
    }
    for continuation in answered { continuation.resume(returning: verdict) }
  }

  private func end() {
    let left = state.withLock { state in
      state.hasEnded = true
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
    for continuation in left { continuation.resume(returning: nil) }
  }
}
