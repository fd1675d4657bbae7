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

/// An exclusive lock on a file (flock(2)), held until this is dropped or the process ends, however
/// it ends: the kernel lets it go.
///
/// Hazard: whoever removes the file lets a second holder in; ``isInPlace`` tells. Not for network
/// file systems, where such locks often hold on one machine only.
final class FileLock: Sendable {
  private let path: String
  private let descriptor: Int32

  /// Takes the lock if nobody has it, in this process or another; makes the file where missing. What root makes is the
  /// directory's owner's, as whom the server runs.
  ///
  /// - Returns: `nil` where somebody has it.
  /// - Throws: ``StoreError/cannotOpen(path:reason:)``.
  static func take(_ path: String) throws(StoreError) -> FileLock? {
    let descriptor = AtomicFile.openLock(path: path)
    guard descriptor >= 0 else { throw .cannotOpen(path: path, errno: errno) }
    let lock = FileLock(path: path, descriptor: descriptor)
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      switch errno {
      case EINTR: continue
      case EWOULDBLOCK: return nil
      case let code: throw .cannotOpen(path: path, errno: code)
      }
    }
    return lock.isInPlace ? lock : nil
  }

  /// Why nobody could take the lock as this user, or as the directory's owner if this is root; `nil` if somebody could, or the
  /// file is not there. Makes nothing.
  static func problem(_ path: String) -> StoreError? {
    let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor < 0 else {
      defer { close(descriptor) }
      guard AtomicFile.isRootsAmongOthers(descriptor, path: path) else { return nil }
      return .cannotOpen(path: path, reason: "it is root's, and its directory is not")
    }
    let code = errno
    return code == ENOENT ? nil : .cannotOpen(path: path, errno: code)
  }

  private init(path: String, descriptor: Int32) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit {
    // Closing alone is not enough: a child process that has not come to its exec yet has the file open
    // as well, and the lock goes with the last of them (flock(2)).
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Whether the locked file is still the one that others find under its name.
  var isInPlace: Bool {
    var (held, found) = (stat(), stat())
    return fstat(descriptor, &held) == 0 && stat(path, &found) == 0
      && held.st_ino == found.st_ino && held.st_dev == found.st_dev
  }
}
