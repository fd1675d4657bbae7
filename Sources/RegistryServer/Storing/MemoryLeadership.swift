import PinningPlatform

/// A leadership that only ``resign()`` ends.
final class MemoryLeadership: StoreLeadership {
  private struct State {
    var isOver = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  /// Whether it was resigned.
  var isOver: Bool { state.withLock { $0.isOver } }

  func ended() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.isOver { state.waiting.append(continuation) }
        return state.isOver
      }
      if isOver { continuation.resume() }
    }
  }

  func resign() async {
    let waiting = state.withLock { state in
      state.isOver = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}
