/// Keeps records, each a name and bytes, for one or several servers.
///
/// The contract, the same for every store and tested once for all of them:
/// - **Compare and swap.** A record has a version: 0 while it does not exist, then 1, 2, 3… A
///   replacement names the version that it replaces; of two that name the same one exactly one is
///   made, across threads, processes and machines, and the other is told the version in force.
/// - **Acknowledged means kept.** When `replace` returns `.replaced`, the bytes survive `kill -9`
///   of this process at any moment after it (for a store that keeps anything at all), and for a
///   store on disk a loss of power too.
/// - **Whole or not at all.** A reader sees a record's bytes as one replacement wrote them, never a
///   mixture of two, and never an older version after it saw a newer one.
/// - A failed call changes nothing, or did change everything: after an error the caller reads again
///   before it decides.
///
/// Names are those of ``DocumentConfiguration/isSafe(file:)``; bytes are at most 64 MiB.
public protocol RegistryStore: Sendable {
  /// The record of this name; `nil` while there is none.
  func record(named name: String) async throws(StoreError) -> StoredRecord?

  /// Replaces the record of this name if `version` is the one in force.
  func replace(
    _ name: String, version: Int64, with bytes: [UInt8]
  ) async throws(StoreError) -> StoreReplacement

  /// Lets go of files and connections. Calls that come later throw ``StoreError/closed``.
  func close() async
}

/// What a store keeps under one name.
public struct StoredRecord: Sendable, Hashable {
  /// Which replacement wrote it, counted from 1.
  public let version: Int64
  /// What was written.
  public let bytes: [UInt8]
}

/// What came of a replacement.
public enum StoreReplacement: Sendable, Hashable {
  /// It is made and kept; the record has this version now.
  case replaced(version: Int64)
  /// Somebody else was first; the version in force.
  case conflict(version: Int64)
}
