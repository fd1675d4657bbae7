import CanonicalJSON
import RegistryCore
import SslPinningPlatform

/// What this server saw of its store's own record last: the file `sealed-store` in `tls.dir`.
///
/// - Somebody who can write to the store, and to nothing else, cannot change it. So he cannot pass off as the store
///   an older record, another store, or one without a seal.
/// - It is written after the record is, and only ever raised: it may lag behind the store, and is never ahead of what
///   this server saw. Each server has its own.
/// - Where it cannot be written it lasts until the process ends (``problem``).
///
/// Hazard: whoever restores `tls.dir` together with the store takes both back, and nothing can tell.
package final class SealMark: Sendable {
  /// What was seen.
  package struct Seen: Sendable, Equatable {
    /// The store's id. That of a file that cannot be read is empty, and no store's.
    package var id = ""
    /// Which of the store's own records it was.
    package var age = RecordAge()
    /// The names that it had, with those that it lost since.
    package var records: Set<String> = []

    /// This, and what was seen of the same store besides.
    package func raised(to other: Seen) -> Seen {
      guard other.id == id else { return self }
      return Seen(id: id, age: max(age, other.age), records: records.union(other.records))
    }

    /// Why a record of this id and age is not the store's own; `nil` if it may be.
    package func refusal(ofStore id: String, _ age: RecordAge) -> SealFault.Reason? {
      if id != self.id { return .otherStore }
      return age < self.age ? .older : nil
    }
  }

  private struct State {
    /// What the file had when it was last read or written.
    var bytes: [UInt8]?
    var seen: Seen?
    var problem: String?
  }

  private let file: AtomicFile?
  private let isReadOnly: Bool
  private let state = Locked(State())
  private static let limit = 16 << 20

  /// The mark in this directory.
  ///
  /// - Parameters:
  ///   - directory: `nil` for one that lasts as long as the process.
  ///   - isReadOnly: whether the file is left as it is, for whoever stands beside the server.
  package init(directory: String?, isReadOnly: Bool = false) {
    file = directory.map { AtomicFile(path: $0 + "/sealed-store") }
    self.isReadOnly = isReadOnly
  }

  /// What was seen; `nil` before any store was. The file counts if it is another than before: somebody else on
  /// this machine may have written or removed it.
  package var seen: Seen? {
    state.withLock { state in
      read(into: &state)
      return state.seen
    }
  }

  /// Why the file could not be written, in the system's words; `nil` if it has what was seen.
  package var problem: String? { state.withLock(\.problem) }

  /// Notes what was seen.
  ///
  /// - Parameter isOther: whether it takes the place of what was seen before: an operator's word.
  package func note(_ new: Seen, isOther: Bool = false) {
    state.withLock { state in
      read(into: &state)
      let next = isOther ? new : state.seen?.raised(to: new) ?? new
      guard next != state.seen || state.problem != nil else { return }
      state.seen = next
      guard let file, !isReadOnly else { return }
      let bytes = Self.encode(next)
      do throws(FileError) {
        try file.write(bytes)
        (state.bytes, state.problem) = (bytes, nil)
      } catch {
        state.problem = "\(error)"
      }
    }
  }

  private func read(into state: inout State) {
    guard let file else { return }
    let bytes: [UInt8]?
    do throws(FileError) { bytes = try file.read(limit: Self.limit) } catch { bytes = [] }
    guard bytes != state.bytes else { return }
    (state.bytes, state.seen) = (bytes, bytes.map { Self.decode($0) ?? Seen() })
  }

  private static func encode(_ seen: Seen) -> [UInt8] {
    let json: JSONObject = [
      "id": .string(seen.id), "returns": .integer(seen.age.returns),
      "version": .integer(seen.age.version),
      "records": .array(seen.records.sorted().map { .string($0) }),
    ]
    return JSONValue.object(json).canonicalBytes
  }

  private static func decode(_ bytes: [UInt8]) -> Seen? {
    guard let object = (try? JSONValue(parsing: bytes))?.objectValue,
      let id = object["id"]?.stringValue, let returns = object["returns"]?.integerValue,
      let version = object["version"]?.integerValue, let records = object["records"]?.arrayValue
    else { return nil }
    return Seen(
      id: id, age: RecordAge(returns: returns, version: version),
      records: Set(records.compactMap(\.stringValue)))
  }
}
