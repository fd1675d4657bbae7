/// Why a store could not be asked.
public enum StoreError: Error, Equatable, Sendable {
  /// The file or its directory cannot be used; `reason` is the system's.
  case cannotOpen(path: String, reason: String)
  /// The file was written by a newer version of this program.
  case newerSchema(path: String, found: Int64, known: Int64)
  /// The file is a database of another program.
  case foreign(path: String)
  /// Another process held the store for longer than the busy time-out.
  case busy
  /// Reading or writing failed; `reason` is the store's.
  case failed(operation: String, reason: String)
  /// The store was closed.
  case closed
}

extension StoreError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .cannotOpen(let path, let reason):
      "cannot open \(path): \(reason); hint: set storage.dsn to a file in a directory you can write"
    case .newerSchema(let path, let found, let known):
      "\(path) has schema \(found), and \(known) is the newest known here; hint: update this server"
    case .foreign(let path):
      "\(path) is a database of another program; hint: set storage.dsn to a file of its own"
    case .busy: "the store is held by another process; hint: is a backup running?"
    case .failed(let operation, let reason): "\(operation) failed: \(reason)"
    case .closed: "the store is closed"
    }
  }
}
