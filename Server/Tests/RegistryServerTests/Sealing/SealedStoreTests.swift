import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

/// A second signing key for all tests.
let otherSigningKey = Result { try SigningKey.generate(bits: 2048) }

/// What is sealed and what is refused, over every store.
@Suite("A sealed store") struct SealedStoreTests {
  static let names = ["a.json", "b.json"]

  static func keys(former: Bool = false) throws -> SealKeys {
    try SealKeys(try testSigningKey.get(), former: former ? try otherSigningKey.get() : nil)
  }

  /// Keys of which `prv.pem` is the other one.
  static func otherKeys(former: Bool = false) throws -> SealKeys {
    try SealKeys(try otherSigningKey.get(), former: former ? try testSigningKey.get() : nil)
  }

  private func open(
    _ base: any RegistryStore, _ keys: SealKeys? = nil
  ) async throws -> (store: SealedStore, opening: SealedStore.Opening) {
    let store = SealedStore(base, keys: try keys ?? Self.keys())
    return (store, try await store.open(documents: Self.names))
  }

  /// Why a record is not believed; `nil` if it is.
  private func fault(_ store: SealedStore, _ name: String = "a.json") async throws -> SealFault? {
    do throws(StoreError) { _ = try await store.record(named: name) } catch {
      guard case .seal(let fault) = error else { throw error }
      return fault
    }
    return nil
  }

  @Test(
    "gives back what it was given, also to another server with the key",
    arguments: StoreKind.allCases)
  func goodRecords(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let (store, opening) = try await open(place.open())
    #expect(opening == .new)
    for version in Int64(0)..<3 {
      let bytes = [UInt8](repeating: UInt8(version), count: 100)
      #expect(
        try await store.replace("a.json", version: version, with: bytes, history: [[1]])
          == .replaced(version: version + 1))
    }
    #expect(try await store.replace("a.json", version: 1, with: [9]) == .conflict(version: 3))
    let (second, known) = try await open(place.open())
    #expect(known == .known && second.id == store.id)
    let record = StoredRecord(version: 3, bytes: [UInt8](repeating: 2, count: 100))
    #expect(try await second.record(named: "a.json") == record)
    #expect(try await second.record(named: "b.json") == nil)
    #expect(try await second.history(of: "a.json", before: nil, limit: 9).count == 3)
    // What decides nothing is stored as it is.
    _ = try await store.replace(".reports", version: 0, with: [1, 2])
    #expect(try await place.open().record(named: ".reports")?.bytes == [1, 2])
  }

  /// What somebody does who may write to the store and has no key.
  enum Tampering: String, CaseIterable, Sendable {
    case flippedByte, flippedTag, replayed, otherName, otherStore, withoutSeal, otherKey, namedKey

    /// What is stored instead.
    ///
    /// - Parameter sealed: seals a record as a server with the key would, if it was asked to.
    func bytes(
      _ sealed: (_ name: String, _ store: String?, _ versionsBefore: Int64) throws -> [UInt8]
    )
      throws -> [UInt8]
    {
      var bytes = try sealed("a.json", nil, 0)
      let line = bytes.firstIndex(of: UInt8(ascii: "\n")) ?? 0
      switch self {
      case .flippedByte: bytes[line + 3] ^= 1
      case .flippedTag:
        let place = line - 10
        bytes[place] = bytes[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      case .replayed: bytes = try sealed("a.json", nil, 1)
      case .otherName: bytes = try sealed("b.json", nil, 0)
      case .otherStore: bytes = try sealed("a.json", String(repeating: "0", count: 32), 0)
      case .withoutSeal: bytes = Array(bytes[(line + 1)...])
      case .otherKey:
        let words = String(decoding: bytes[..<line], as: UTF8.self).split(separator: " ")
        let head = words.prefix(4) + [pin(7).base64[...]] + words.suffix(1)
        bytes = [UInt8](head.joined(separator: " ").utf8) + bytes[line...]
      case .namedKey:
        // Another key, said to be in force, before the good tag.
        let words = String(decoding: bytes[..<line], as: UTF8.self).split(separator: " ")
        let head = words.prefix(4) + [pin(7).base64[...]] + words.suffix(1) + words.suffix(2)
        bytes = [UInt8](head.joined(separator: " ").utf8) + bytes[line...]
      }
      return bytes
    }

    var expected: SealFault.Reason {
      switch self {
      case .withoutSeal: .unsealed
      case .otherStore: .otherStore
      case .otherKey: .unknownKey(pin(7))
      default: .changed
      }
    }
  }

  @Test(
    "refuses what somebody without the key wrote, and believes what a server with it wrote afterwards",
    arguments: StoreKind.allCases)
  func tampered(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let base = try place.open()
    let (store, _) = try await open(base)
    _ = try await store.replace("a.json", version: 0, with: [1, 2, 3, 4, 5, 6])
    let (keys, id) = (try Self.keys(), try #require(store.id))
    var version: Int64 = 1
    for tampering in Tampering.allCases {
      let next = version + 1
      func sealed(_ name: String, _ other: String?, _ before: Int64) throws -> [UInt8] {
        let fields = SealedRecord.Fields(
          store: other ?? id, key: keys.own.id, name: name, version: next - before,
          content: [6, 5, 4, 3, 2, 1])
        return try SealedRecord(fields, keys: keys.all).encoded
      }
      let bytes = try tampering.bytes(sealed)
      #expect(
        try await base.replace("a.json", version: version, with: bytes) == .replaced(version: next))
      let expected = SealFault.broken(record: "a.json", tampering.expected)
      #expect(try await fault(store) == expected, "\(tampering)")
      #expect(try await fault(open(base).store) == expected, "\(tampering)")
      // The record alone: the store is believed for the rest, and what is written over it counts.
      #expect(try await fault(store, "b.json") == nil)
      version = next + 1
      #expect(
        try await store.replace("a.json", version: next, with: [7]) == .replaced(version: version))
      #expect(try await store.record(named: "a.json")?.bytes == [7])
    }
    withExtendedLifetime(place) {}
  }

  @Test("tells a record that is gone from one that never was")
  func vanished() async throws {
    let base = TroubledStore()
    let (store, _) = try await open(base)
    _ = try await store.replace("a.json", version: 0, with: [1])
    await base.lose(to: nil, named: "a.json")
    #expect(try await fault(store) == .vanished(record: "a.json"))
    #expect(try await fault(store, "b.json") == nil)
    // To a server that starts, too.
    #expect(try await fault(open(base).store) == .vanished(record: "a.json"))
  }

  @Test("believes an older record under its own version: a backup that was restored")
  func restored() async throws {
    let base = TroubledStore()
    let (store, _) = try await open(base)
    _ = try await store.replace("a.json", version: 0, with: [1])
    let old = try #require(await base.record(named: "a.json"))
    _ = try await store.replace("a.json", version: 1, with: [2])
    await base.lose(to: old, named: "a.json")
    #expect(try await store.record(named: "a.json") == StoredRecord(version: 1, bytes: [1]))
    // And under a newer one not: that was played back by somebody.
    await base.goBack(to: old, named: "a.json")
    #expect(try await fault(store) == .broken(record: "a.json", .changed))
  }

  @Test("seals a store that has no seal at all once, and believes it that once")
  func unsealed() async throws {
    let base = MemoryStore()
    _ = try await base.replace("a.json", version: 0, with: [1, 2])
    let (store, opening) = try await open(base)
    #expect(opening == .sealed(["a.json"]))
    #expect(try await store.record(named: "a.json") == StoredRecord(version: 2, bytes: [1, 2]))
    // From now on a record without a seal is somebody's.
    _ = try await base.replace("a.json", version: 2, with: [3])
    #expect(try await open(base).opening == .known)
    #expect(try await fault(store) == .broken(record: "a.json", .unsealed))
    _ = try await base.replace("b.json", version: 0, with: [3])
    #expect(try await fault(store, "b.json") == .broken(record: "b.json", .unsealed))
  }

  @Test("goes on sealing where a server that began it died")
  func sealingBrokeOff() async throws {
    let base = UnfinishedStore()
    for name in Self.names { _ = try await base.replace(name, version: 0, with: [1]) }
    await base.allow(2)
    await #expect(throws: StoreError.self) { try await open(base) }
    await base.allow(.max)
    let (store, opening) = try await open(base)
    #expect(opening == .known)
    for name in Self.names {
      #expect(try await store.record(named: name) == StoredRecord(version: 2, bytes: [1]))
    }
    // That is over now.
    _ = try await base.replace("a.json", version: 2, with: [3])
    #expect(try await fault(open(base).store) == .broken(record: "a.json", .unsealed))
  }

  @Test("does not believe a store whose own record was removed, nor one in which it was edited")
  func ownRecord() async throws {
    let base = TroubledStore()
    let (store, _) = try await open(base)
    _ = try await store.replace("a.json", version: 0, with: [1])
    let identity = try #require(await base.record(named: ".store"))
    await base.lose(to: nil, named: ".store")
    #expect(try await open(base).opening == .fault(.vanished(record: ".store")))
    var bytes = identity.bytes
    bytes[bytes.count - 5] ^= 1
    await base.lose(
      to: StoredRecord(version: identity.version, bytes: bytes), named: ".store")
    let (reader, opening) = try await open(base)
    #expect(opening == .fault(.broken(record: ".store", .changed)))
    #expect(try await fault(reader) == .broken(record: ".store", .changed))
    #expect(try await reader.lead() == nil)
    await #expect(throws: StoreError.seal(.broken(record: ".store", .changed))) {
      try await reader.replace("b.json", version: 0, with: [1])
    }
    await base.lose(to: identity, named: ".store")
    #expect(try await fault(reader) == nil)
    #expect(try await reader.lead() != nil)
  }

  @Test(
    "is one store to servers that start on it at the same moment", arguments: StoreKind.allCases)
  func startedTogether(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let keys = try Self.keys()
    let bases = try (0..<4).map { _ in try place.open() }
    let ids = try await withThrowingTaskGroup(of: String?.self) { group in
      for base in bases {
        group.addTask {
          let store = SealedStore(base, keys: keys)
          let opening = try await store.open(documents: Self.names)
          #expect(opening == .new || opening == .known)
          return store.id
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(Set(ids).count == 1 && ids.first != .some(nil))
    withExtendedLifetime(place) {}
  }

  @Test("holds one document for a record of it under a key that is not the store's")
  func keyOfAnotherTime() async throws {
    let base = TroubledStore()
    let (store, _) = try await open(base)
    _ = try await store.replace("a.json", version: 0, with: [1])
    let (keys, id) = (try Self.otherKeys(former: true), try #require(store.id))
    // As a server under the other key wrote it, when that one was in force for a while.
    let fields = SealedRecord.Fields(
      store: id, key: keys.own.id, name: "a.json", version: 1, content: [2])
    await base.lose(
      to: StoredRecord(version: 1, bytes: try SealedRecord(fields, keys: keys.all).encoded),
      named: "a.json")
    #expect(
      try await fault(store) == .broken(record: "a.json", .unknownKey(keys.own.id)))
    #expect(try await fault(store, "b.json") == nil)
    #expect(try await store.lead() != nil)
  }

  @Test(
    "ends at a version after which there is none with an error, for every record and store",
    arguments: StoreKind.allCases)
  func lastVersion(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let base = try place.open()
    let store = try await open(base).store
    await #expect(throws: StoreError.self) {
      try await store.replace("a.json", version: .max, with: [1])
    }
    // What is not sealed the databases count by themselves.
    let outcome = try? await store.replace(".reports", version: .max, with: [1])
    #expect(outcome == nil || outcome == .conflict(version: 0))
    let own = TroubledStore()
    _ = try await open(own)
    let identity = try #require(await own.record(named: ".store"))
    await own.lose(to: StoredRecord(version: .max, bytes: identity.bytes), named: ".store")
    #expect(try await open(own).opening == .fault(.broken(record: ".store", .changed)))
    withExtendedLifetime(place) {}
  }

  @Test("lists every record that is made, however many at once")
  func crowd() async throws {
    let base = MemoryStore()
    let (store, _) = try await open(base)
    await withTaskGroup(of: Void.self) { group in
      for index in 0..<60 {
        group.addTask { _ = try? await store.replace("\(index).json", version: 0, with: [1]) }
      }
    }
    let record = try #require(try await base.record(named: ".store"))
    let identity = StoreIdentity(
      decoding: try #require(SealedRecord(parsing: record.bytes)).content)
    #expect(identity?.records.count == 60)
  }
}

/// A store that has what the test says, and takes nothing.
struct FixedStore: WholeHistoryStore {
  let records: [String: StoredRecord]

  init(_ records: [String: StoredRecord]) { self.records = records }

  func record(named name: String) -> StoredRecord? { records[name] }

  func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) -> StoreReplacement { .conflict(version: records[name]?.version ?? 0) }

  func history(of name: String, before: Int64?, limit: Int) -> [StoredEntry] { [] }
  func changes() -> AsyncStream<String> { AsyncStream { $0.finish() } }
  func lead() -> (any StoreLeadership)? { nil }
  func close() {}
}

/// A store that takes so many more replacements, and fails then.
actor UnfinishedStore: WholeHistoryStore {
  private let base = MemoryStore()
  private var left = Int.max

  func allow(_ count: Int) { left = count }

  func record(named name: String) async throws(StoreError) -> StoredRecord? {
    try await base.record(named: name)
  }

  func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    guard left > 0 else { throw .unreachable(place: "the store", reason: "nobody is there") }
    left -= 1
    return try await base.replace(name, version: version, with: bytes, history: history)
  }

  func history(of name: String, before: Int64?, limit: Int) -> [StoredEntry] { [] }
  nonisolated func changes() -> AsyncStream<String> { AsyncStream { $0.finish() } }
  func lead() -> (any StoreLeadership)? { nil }
  func close() {}
}
