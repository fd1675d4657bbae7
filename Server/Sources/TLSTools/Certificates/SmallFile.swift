import CSslPinningShims
import Foundation

/// Reads an operator's files as a whole: keys, configurations, anchors.
///
/// - Bounded: an endless or wrong file (`/dev/zero`, a disk image) is an error.
/// - Regular files only. A directory is an error of its own, and a pipe without a writer never blocks.
package enum SmallFile {
  /// Why a file was not read.
  package enum Failure: Error, Equatable, CustomStringConvertible {
    /// The system's reason.
    case unreadable(reason: String)
    /// More bytes than the limit.
    case tooLarge(limit: Int)

    package var description: String {
      switch self {
      case .unreadable(let reason): reason
      case .tooLarge(let limit): "it has more than \(limit) bytes"
      }
    }
  }

  /// The bytes of a file.
  package static func read(_ path: String, limit: Int) throws(Failure) -> [UInt8] {
    // NONBLOCK: opening a pipe without a writer would wait for one.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw failure() }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure() }
    guard status.st_mode & S_IFMT == S_IFREG else {
      let isDirectory = status.st_mode & S_IFMT == S_IFDIR
      throw .unreadable(reason: isDirectory ? "it is a directory" : "it is not a regular file")
    }
    // Some files, as in /proc, do not say how large they are.
    guard status.st_size <= limit else { throw .tooLarge(limit: limit) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(status.st_size))
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Foundation.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure() }
      guard count > 0 else { return bytes }
      guard bytes.count + count <= limit else { throw .tooLarge(limit: limit) }
      bytes += chunk.prefix(count)
    }
  }

  private static func failure() -> Failure {
    .unreadable(reason: String(cString: strerror(errno)).lowercased())
  }
}

/// How the system treats the memory of this process.
package enum ProcessMemory {
  /// Limits the allocator's arenas for threads that start later, and returns blocks above 1 MiB to the
  /// system as soon as they are freed.
  ///
  /// By default a process has up to eight arenas for each processor, and none uses another's free memory.
  /// Besides, the first large block that is freed raises the limit for returning blocks, up to 32 MiB.
  package static func economise(arenas: Int32) { pp_memory_economise(arenas, 1 << 20) }

  /// Returns free memory to the system. Takes some milliseconds: call it after large, rare work.
  package static func giveBack() { pp_memory_give_back() }

  /// Keeps what is in memory, private keys above all, out of core dumps, and from other processes of the same
  /// user (ptrace(2), `/proc/PID/mem`).
  ///
  /// - Root reads it all the same.
  /// - Programs that this process starts inherit the limit of core dumps, and not the rest: execve(2) ends that.
  /// - Files in `/proc/PID` belong to root from then on. The process still reads its own, but for `environ`.
  package static func hide() { pp_memory_hide() }

  /// Whether it is hidden from other processes.
  package static var isHidden: Bool { pp_memory_is_hidden() }
}
