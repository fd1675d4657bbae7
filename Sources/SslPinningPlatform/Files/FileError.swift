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
}

extension FileError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .failed(let step, let path, let reason): "\(reason): cannot \(step.rawValue) \(path)"
    case .tooLarge(let path, let limit): "\(path) is larger than \(limit) bytes"
    }
  }
}
