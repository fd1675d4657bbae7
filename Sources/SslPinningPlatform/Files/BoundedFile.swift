import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#endif

/// Reads the small files that an app ships: property lists, certificates.
///
/// - Bounded: an endless or mistaken file ends in an error, not in the system's memory.
enum BoundedFile {
  /// Why a file was not read.
  enum Failure: Error {
    /// The system's reason.
    case unreadable(String)
    case tooLarge(limit: Int)
  }

  /// The bytes of a file.
  ///
  /// - Parameter url: a file URL; nothing is ever fetched.
  static func read(_ url: URL, limit: Int) throws(Failure) -> [UInt8] {
    guard url.isFileURL else { throw .unreadable("not a file URL") }
    let data: Data?
    do {
      let file = try FileHandle(forReadingFrom: url)
      defer { try? file.close() }
      // One byte more than allowed tells a file that is too large from one that just fits.
      data = try file.read(upToCount: limit + 1)
    } catch { throw .unreadable(error.localizedDescription) }
    guard let data, data.count <= limit else {
      if data == nil { return [] }
      throw .tooLarge(limit: limit)
    }
    return [UInt8](data)
  }
}

/// An open file's number, closed when its holder lets go.
struct Descriptor: ~Copyable {
  let number: Int32

  init(_ number: Int32) { self.number = number }

  deinit {
    if isOpen { _ = close(number) }
  }

  var isOpen: Bool { number >= 0 }

  /// The number, which the caller closes from now on.
  consuming func release() -> Int32 {
    let kept = number
    discard self
    return kept
  }

  /// Whether it has places to read from: no pipe, socket or terminal. (A directory has some, and fails to be read.)
  ///
  /// Not by `fstat`: Apple has apps give a reason for it, because it tells times.
  var hasPlaces: Bool { lseek(number, 0, SEEK_CUR) >= 0 }

  /// Up to `limit` bytes from where the file stands; none at its end, `nil` and `errno` on failure.
  borrowing func bytes(limit: Int) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: limit)
    let count = retrying { read(number, &buffer, limit) }
    return count < 0 ? nil : Array(buffer.prefix(count))
  }

  /// Writes all bytes; false and `errno` on failure.
  borrowing func append(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = retrying { rest.withUnsafeBytes { write(number, $0.baseAddress, $0.count) } }
      guard count >= 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}

/// A system call's answer, asked again as long as signals interrupt it.
func retrying<Number: SignedInteger>(_ call: () -> Number) -> Number {
  while true {
    let answer = call()
    if answer != -1 || errno != EINTR { return answer }
  }
}

/// Why a file of the state directory could not be read, written or locked.
package enum FileError: Error, Hashable, Sendable {
  /// The system call that failed.
  package enum Step: String, Hashable, Sendable {
    case makeDirectory = "make the directory of"
    case open = "open"
    case lock = "lock"
    case read = "read"
    case write = "write"
    case replace = "replace"
  }

  /// The system refused this step, for this reason (such as "Permission denied").
  case failed(Step, path: String, reason: String)
  /// The file has more bytes than this.
  case tooLarge(path: String, limit: Int)
  /// The file has what another process understands, and this one does not.
  case anothers(path: String, reason: String)
}

extension FileError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .failed(let step, let path, let reason): "\(reason): cannot \(step.rawValue) \(path)"
    case .tooLarge(let path, let limit): "\(path) is larger than \(limit) bytes"
    case .anothers(let path, let reason):
      "\(path) is kept as it is: \(reason); hint: another version or setting of this app stored it"
    }
  }
}
