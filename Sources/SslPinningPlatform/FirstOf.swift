/// Returns as soon as one of the two does. The first goes on; the second is cancelled.
package func firstOf(
  _ first: @escaping @Sendable () async -> Void, _ second: @escaping @Sendable () async -> Void
) async {
  await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
    let waiting = Locked<CheckedContinuation<Void, Never>?>(continuation)
    let goOn: @Sendable () -> Void = {
      let first = waiting.withLock { waiting in
        defer { waiting = nil }
        return waiting
      }
      first?.resume()
    }
    let other = Task {
      await second()
      goOn()
    }
    Task {
      await first()
      other.cancel()
      goOn()
    }
  }
}
