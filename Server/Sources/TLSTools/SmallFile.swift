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
