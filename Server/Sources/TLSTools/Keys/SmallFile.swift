import CSslPinningShims
import Foundation

/// Reads whole files of an operator's: keys, configurations, anchors.
///
/// - Bounded: an endless or mistaken file (`/dev/zero`, a disk image) ends in an error.
/// - Regular files only. A directory reads as one cause, and a pipe nobody writes to never blocks.
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
    var bytes: [UInt8] = []
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

/// How the system's allocator treats this process.
package enum ProcessMemory {
  /// Has threads that are yet to come share so many places to take memory from, and blocks above a
  /// mebibyte given back as soon as nobody needs them.
  ///
  /// By default a process has up to eight such places for each processor, and what one of them does not
  /// need is of no use to the others; and the first large block that is freed makes later ones, up to
  /// 32 MiB, part of what is only ever used again.
  package static func economise(arenas: Int32) { pp_memory_economise(arenas, 1 << 20) }

  /// Gives back what nobody needs. Takes some milliseconds: for the end of something large and seldom.
  package static func giveBack() { pp_memory_give_back() }
}
