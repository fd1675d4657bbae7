import Foundation
import SslPinningPlatform

/// Why a store could not be asked. No case holds a password.
public enum StoreError: Error, Equatable, Sendable {
  /// The file or its directory cannot be used; `reason` is the system's.
  case cannotOpen(path: String, reason: String)
  /// The store at this place was written by a newer version of this program.
  case newerSchema(path: String, found: Int64, known: Int64)
  /// The file is a database of another program.
  case foreign(path: String)
  /// The file does not hold what was written to it.
  case damaged(path: String, reason: String)
  /// The text that says where the database is cannot be used; `hint` says what to write.
  case invalidDSN(reason: String, hint: String)
  /// The database could not be reached, or the connection to it broke; `reason` is the system's or
  /// its own. What was under way may have been done or not.
  case unreachable(place: String, reason: String)
  /// The database did not let this server in, or not do this; `reason` is its own.
  case denied(place: String, reason: String)
  /// A name that is none of a record.
  case invalidName(String)
  /// Another process held the store for longer than the busy time-out, or every connection was in
  /// use for as long.
  case busy
  /// Reading or writing failed; `reason` is the store's.
  case failed(operation: String, reason: String)
  /// What the store has is not as a server with the signing key wrote it; it decides nothing.
  case seal(SealFault)
  /// The store was closed.
  case closed
}

extension StoreError {
  /// A file that the system does not open, with its reason.
  package static func cannotOpen(path: String, errno code: Int32) -> StoreError {
    .cannotOpen(path: path, reason: String(cString: strerror(code)).lowercased())
  }
}

extension StoreError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .cannotOpen(let path, let reason):
      "cannot open \(path): \(reason); hint: set storage.dsn to a place that you can write"
    case .newerSchema(let path, let found, let known):
      "\(path) has schema \(found), and \(known) is the newest known here; hint: update this server"
    case .foreign(let path):
      "\(path) is a database of another program; hint: set storage.dsn to a file of its own"
    case .damaged(let path, let reason):
      "\(path) is damaged: \(reason); hint: put it back from a backup"
    case .invalidDSN(let reason, let hint): "storage.dsn \(reason); hint: \(hint)"
    case .unreachable(let place, let reason):
      "no connection to \(place): \(reason); hint: does it run, and does storage.dsn name it?"
    case .denied(let place, let reason):
      "\(place) refuses: \(reason); hint: are user, password and rights right?"
    case .invalidName(let name):
      "\"\(name)\" cannot be a record's name; hint: letters, digits, '.', '_' and '-'"
    case .busy: "the store is held by another process; hint: is a backup running?"
    case .failed(let operation, let reason): "\(operation) failed: \(reason)"
    case .seal(let fault): fault.description
    case .closed: "the store is closed"
    }
  }
}

extension StoreError: ExplainedError {}
