import SslPinningPlatform

/// The leadership of a store on one machine: an exclusive lock on a file, which the kernel lets go
/// of when its holder dies.
final class FileLeaderships: Sendable {
  private struct Holding {
    let lock: FileLock
    let term: LeadershipTerm
    let watch: RepeatingWork
  }

  private let path: String
  private let queue = WorkQueue("store leadership")
  private let holding = Locked<Holding?>(nil)

  /// - Parameter path: the file to lock.
  init(path: String) { self.path = path }

  /// Takes the leadership if nobody has it.
  func take() async throws(StoreError) -> (any StoreLeadership)? {
    try await queue.run { [self] () throws(StoreError) in
      guard let lock = try FileLock.take(path) else { return nil }
      let term = LeadershipTerm { [weak self] in await self?.end() }
      let watch = queue.every(1000) { [weak self] in self?.check() }
      drop()
      holding.withLock { $0 = Holding(lock: lock, term: term, watch: watch) }
      return term
    }
  }

  /// Ends the leadership if it is held here; on return somebody else may have it.
  func end() async {
    // On the queue, so that no check holds on to the lock.
    try? await queue.run { self.drop() }
  }

  /// Whoever removes the file lets somebody else lead.
  private func check() {
    if holding.withLock({ $0?.lock.isInPlace }) == false { drop() }
  }

  private func drop() { holding.withLock { $0.take() }?.term.end() }
}
