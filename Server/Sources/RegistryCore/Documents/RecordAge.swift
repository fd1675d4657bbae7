/// Which of two records under one name is the older one.
///
/// A store counts the versions of a record, and begins to count anew where it lost the record. So a record also says
/// how often its store had gone back when it was written: the server that notices writes one more. An older record
/// that is put back is older than everything that was written since, whatever stands or stood in between.
///
/// What a server remembers of a name is the greatest age that it has seen, and that is only ever raised.
package struct RecordAge: Sendable, Hashable, Comparable {
  /// How often the store had gone back. It is sealed with the record.
  package var returns: Int64
  /// The version under which the record is stored; 0 while there is none.
  package var version: Int64

  /// An age; that of a record which is not there, unless more is said.
  package init(returns: Int64 = 0, version: Int64 = 0) {
    (self.returns, self.version) = (returns, version)
  }

  /// No store goes back more often: what says so is no record.
  package static let mostReturns: Int64 = 1 << 40

  package static func < (one: RecordAge, other: RecordAge) -> Bool {
    (one.returns, one.version) < (other.returns, other.version)
  }

  /// What a record says in ``returns`` that goes on after one of this age was lost.
  package var nextReturns: Int64 { min(returns, Self.mostReturns - 1) + 1 }

  /// The age of a record that nobody can read: no store went back as often as seconds passed since 1970.
  package static func unknown(at now: Int64) -> RecordAge {
    RecordAge(returns: min(now, mostReturns - 1))
  }
}

/// The record of a document that is in force, as far as is known: the next write replaces it.
struct RecordInForce: Sendable {
  private(set) var state = DocumentState()
  private(set) var version: Int64 = 0
  private var bytes: [UInt8]?
  /// The newest that was ever known. It is only raised, whatever the store has later.
  private(set) var newest = RecordAge()

  /// Whether there ever was one.
  var isKnown: Bool { newest > RecordAge() }

  func knows(version: Int64, bytes: [UInt8]?) -> Bool {
    version == self.version && bytes == self.bytes
  }

  func isOlder(than read: DocumentRecord) -> Bool { read.age > newest }

  /// A newer one was read.
  mutating func advance(to read: DocumentRecord) {
    goBack(to: read)
    newest = read.age
  }

  /// Nothing of this age or older is believed, whatever is in the store.
  mutating func outdate(_ age: RecordAge) { newest = max(newest, age) }

  /// An older one is in force again.
  mutating func goBack(to read: DocumentRecord) {
    (state, version, bytes) = (read.state, read.version, read.bytes)
  }

  /// What is known of a write that was made.
  enum Outcome {
    /// It is in force.
    case inForce
    /// It is in force under the number of another one that was read meanwhile: the store went back in between.
    case inPlaceOfAnother
    /// A newer one was read while the answer was on its way. It was written over this one.
    case overtaken
    /// The store went back since, and what was read last need not have it in it.
    case lost
  }

  /// A state was written.
  mutating func note(_ written: DocumentState, version: Int64, bytes: [UInt8]) -> Outcome {
    let age = RecordAge(returns: written.returns, version: version)
    guard age.returns >= newest.returns else { return .lost }
    guard age >= newest else { return .overtaken }
    let isOther = age == newest && !knows(version: version, bytes: bytes)
    (state, self.version, self.bytes, newest) = (written, version, bytes, age)
    state.keysByEndpoint = written.keysByEndpoint.mapValues(\.kept)
    return isOther ? .inPlaceOfAnother : .inForce
  }
}

extension DocumentRecord {
  fileprivate var age: RecordAge { RecordAge(returns: state.returns, version: version) }
}
