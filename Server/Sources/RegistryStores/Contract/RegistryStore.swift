import Foundation
import SslPinningPlatform

/// Keeps records, each a name and bytes with a history, for one or several servers.
///
/// The contract, the same for every store and tested once for all of them:
/// - **Compare and swap.** A record has a version: 0 while it does not exist, then 1, 2, 3… A
///   replacement names the version that it replaces; of two that name the same one exactly one is
///   made, across threads, processes and machines, and the other is told the version in force.
/// - **Acknowledged means kept.** When `replace` returns `.replaced`, the bytes survive `kill -9`
///   of this process at any moment after it (for a store that keeps anything at all), and for a
///   store on disk a loss of power too.
/// - **Whole or not at all.** A reader sees a record's bytes as one replacement wrote them, never a
///   mixture of two, and never an older version after it saw a newer one. The history entries that
///   come with a replacement are appended if and only if it is made.
/// - **History is only appended to.** Entries of a record are numbered 1, 2, 3… in the order of the
///   replacements that brought them, without a gap, and never change. The oldest may be forgotten, never the newest:
///   numbers go on.
/// - **One leader.** Of all servers on one store at most one holds the leadership; a holder that dies
///   or loses the store is followed by another within 10 seconds. Leadership says who watches; that
///   nothing is lost or torn rests on compare and swap alone.
/// - **Changes are told** to every server within a second of the replacement; at least once, perhaps
///   without cause, and one change may be told for several.
/// - **One record at a time.** One that cannot be read as it was written is ``StoreError/damaged(path:reason:)``, and keeps nobody
///   from the others. A replacement of version 0, which no such record has, takes its place; where the store knows its version all
///   the same, or cannot let go of it, that is a conflict or an error. One that may be sound, and only cannot be read now, is
///   ``StoreError/withheld(path:reason:)``: nothing takes its place.
/// - A failed call changes nothing, or did change everything: after an error the caller reads again
///   before it decides. A store that was unreachable is tried anew with every call.
///
/// Names are those of ``RecordName/isSafe(file:)``, or such a name behind one leading dot
/// for what is no document; bytes are at most 64 MiB, history entries at most 64 KiB each.
public protocol RegistryStore: Sendable {
  /// The record of this name; `nil` while there is none.
  func record(named name: String) async throws(StoreError) -> StoredRecord?

  /// Replaces the record of this name if `version` is the one in force, and appends to its history.
  func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement

  /// The newest entries of a record's history, newest first.
  ///
  /// - Parameter before: only entries with a smaller number; `nil` begins with the newest.
  func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry]

  /// Forgets the oldest entries of a record's history, up to this number. The newest one stays.
  func forgetHistory(of name: String, through number: Int64) async throws(StoreError)

  /// Names of records that another server may have replaced; the empty name stands for all of them
  /// (after a connection was lost). Ends when the store is closed.
  func changes() -> AsyncStream<String>

  /// Takes the leadership if nobody holds it; `nil` where somebody does.
  func lead() async throws(StoreError) -> (any StoreLeadership)?

  /// What the place that the store is in does not keep of this contract, such as a database that
  /// does not flush; `nil` where it keeps all, or was not reached yet.
  var warning: String? { get async }

  /// Lets go of files and connections. Calls that come later throw ``StoreError/closed``.
  func close() async
}

extension RegistryStore {
  /// Nothing to warn of.
  public var warning: String? { nil }

  /// Replaces a record without a word in its history.
  public func replace(
    _ name: String, version: Int64, with bytes: [UInt8]
  ) async throws(StoreError) -> StoreReplacement {
    try await replace(name, version: version, with: bytes, history: [])
  }
}

/// The leadership of a store, held until it is resigned or lost.
public protocol StoreLeadership: Sendable {
  /// Returns when the leadership is no longer held: resigned, or lost with the connection.
  func ended() async

  /// Gives it up. Further calls do nothing.
  func resign() async
}

/// What a store keeps under one name.
///
/// Whoever can write to the store writes any version there: count on with ``number(after:of:)`` alone.
public struct StoredRecord: Sendable, Hashable {
  /// Which replacement wrote it, counted from 1.
  public let version: Int64
  /// What was written.
  public let bytes: [UInt8]

  /// A record.
  public init(version: Int64, bytes: [UInt8]) {
    self.version = version
    self.bytes = bytes
  }
}

extension StoredRecord {
  /// The number after this one, of versions or entries.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)`` after the last number that there is.
  package static func number(after number: Int64, of name: String) throws(StoreError) -> Int64 {
    let (next, isOver) = number.addingReportingOverflow(1)
    guard !isOver else {
      throw .failed(
        operation: "writing \(name)",
        reason:
          "no number comes after \(number), which no server wrote; hint: restore the store from a backup"
      )
    }
    return next
  }
}

/// One entry of a record's history.
public struct StoredEntry: Sendable, Hashable {
  /// Its place in the history, counted from 1.
  public let number: Int64
  /// What was appended.
  public let bytes: [UInt8]

  /// How many are read at once when all are.
  package static let page = 500

  /// An entry.
  public init(number: Int64, bytes: [UInt8]) {
    self.number = number
    self.bytes = bytes
  }
}

/// What came of a replacement.
public enum StoreReplacement: Sendable, Hashable {
  /// It is made and kept; the record has this version now.
  case replaced(version: Int64)
  /// Somebody else was first; the version in force.
  case conflict(version: Int64)
}

/// Why a store could not be asked. No case holds a password.
public enum StoreError: Error, Equatable, Sendable {
  /// The file or its directory cannot be used; `reason` is the system's.
  case cannotOpen(path: String, reason: String)
  /// The store at this place was written by a newer version of this program.
  case newerSchema(path: String, found: Int64, known: Int64)
  /// The file is a database of another program.
  case foreign(path: String)
  /// The file, or a record in it, does not hold what was written to it.
  case damaged(path: String, reason: String)
  /// A record is there, and the system does not give it out now; `reason` is its own. Nothing says that it is damaged, so
  /// nothing takes its place.
  case withheld(path: String, reason: String)
  /// No backup can be written here; `reason` is the system's.
  case cannotBackUp(path: String, reason: String)
  /// The file is no backup that can be read.
  case cannotReadBackup(path: String, reason: String)
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

  /// The same error before the store is open: then the damage is in no record, but keeps people from all of them.
  var whileOpening: StoreError {
    guard case .damaged(let path, let reason) = self else { return self }
    return .cannotOpen(path: path, reason: reason)
  }
}

extension StoreError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .cannotOpen(let path, let reason):
      "cannot open \(path): \(reason); hint: set storage.dsn to a place that you can write or, if it is damaged,"
        + " put it back from a backup"
    case .newerSchema(let path, let found, let known):
      "\(path) has schema \(found), and \(known) is the newest known here; hint: update this server"
    case .foreign(let path):
      "\(path) is a database of another program; hint: set storage.dsn to a file of its own"
    case .damaged(let path, let reason):
      "\(path) is damaged: \(reason); hint: put it back from a backup"
    case .withheld(let path, let reason):
      "\(path) cannot be read now: \(reason); hint: may this user read it, and is its disk there?"
    case .cannotBackUp(let path, let reason):
      "cannot write \(path): \(reason); hint: another name, in a directory that is there"
    case .cannotReadBackup(let path, let reason):
      "\(path) is no backup that can be read: \(reason); hint: a file of store backup or store export"
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

/// Which names records may have.
package enum RecordName {
  /// What the store says of itself.
  static let store = ".store"

  /// Refuses what is neither a document's file name nor such a name behind one dot: nothing else may
  /// become part of a path or a key.
  static func check(_ name: String) throws(StoreError) {
    let file = name.hasPrefix(".") ? String(name.dropFirst()) : name
    guard isSafe(file: file) else { throw .invalidName(name) }
  }

  /// Whether `name` is 1 to 128 letters, digits, `.`, `_` and `-`, not beginning with a dot.
  package static func isSafe(file name: String) -> Bool {
    let bytes = name.utf8
    guard (1...128).contains(bytes.count), bytes.first != UInt8(ascii: ".") else { return false }
    return bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "-"):
        true
      default: false
      }
    }
  }
}
