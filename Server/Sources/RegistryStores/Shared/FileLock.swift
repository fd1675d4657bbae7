import Foundation

/// An exclusive lock on a file (flock(2)), held until this is dropped or the process ends, however
/// it ends: the kernel lets it go.
///
/// Hazard: whoever removes the file lets a second holder in; ``isInPlace`` tells. Not for network
/// file systems, where such locks often hold on one machine only.
final class FileLock: Sendable {
  private let path: String
  private let descriptor: Int32

  /// Takes the lock if nobody has it, in this process or another; makes the file where missing.
  ///
  /// - Returns: `nil` where somebody has it.
  /// - Throws: ``StoreError/cannotOpen(path:reason:)``.
  static func take(_ path: String) throws(StoreError) -> FileLock? {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
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
