import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("Chains of key sets")
struct KeySetListTests {
  static let keys = Result { try (0..<5).map { _ in try TrustSigningKey.generate(.ed25519) } }

  static func role(_ numbers: [Int], _ threshold: Int = 1) throws -> KeyRole {
    try KeyRole(keys: try numbers.map { try keys.get()[$0].roleKey }, threshold: threshold)
  }

  static func list() throws -> KeySetList {
    var list = KeySetList(registry: "a.json")
    try list.append(root: try role([0, 1], 2), online: try role([4]))
    return list
  }

  @Test("count distinct valid signatures of the root before and of their own")
  func shortages() throws {
    let keys = try Self.keys.get()
    var list = try Self.list()
    #expect(list.shortages.map(\.signatures) == [0])
    try list.sign(with: keys[0])
    try list.sign(with: keys[0])
    #expect(list.newest?.signatures.count == 1)
    #expect(list.shortages.map(\.signatures) == [1])
    #expect(throws: KeySetListError.self) {
      try list.append(root: try Self.role([2]), online: try Self.role([4]))
    }
    try list.sign(with: keys[1])
    #expect(list.shortages.isEmpty)

    try list.append(root: try Self.role([2]), online: try Self.role([4]))
    #expect(list.shortages.map(\.root) == [1, 2])
    #expect(throws: KeySetListError.notARootKey(keys[3].roleKey.id, epoch: 2)) {
      try list.sign(with: keys[3])
    }
    #expect(list.sets.count == 2)
    try list.sign(with: keys[2])
    #expect(list.shortages.map(\.root) == [1])
    try list.sign(with: keys[0])
    try list.sign(with: keys[1])
    #expect(list.shortages.isEmpty)
  }

  @Test("are read back as they were written, and only by their own registry and numbers")
  func reading() throws {
    var list = try Self.list()
    for number in [0, 1] { try list.sign(with: try Self.keys.get()[number]) }
    let read = try KeySetList(list.json)
    #expect(read.json == list.json && read.registry == "a.json" && read.shortages.isEmpty)
    let entry = try #require(list.json.arrayValue?.first)
    #expect(throws: KeySetListError.invalid(epoch: 2, .epoch(1, expected: 2))) {
      try KeySetList(.array([entry, entry]))
    }
    #expect(throws: KeySetListError.notKeySets) { try KeySetList(.array([])) }
    #expect(throws: KeySetListError.notKeySets) { try KeySetList(.null) }
    // An incomplete set is read where it is the newest, and nowhere else.
    let unsigned = try Self.list().json
    #expect(try KeySetList(unsigned).shortages.count == 1)
    let first = try #require(unsigned.arrayValue?.first)
    #expect(throws: KeySetListError.self) { try KeySetList(.array([first, entry])) }
  }

  @Test("keep members that nobody here knows, which the signatures cover")
  func unknownMembers() throws {
    var json = try #require(
      try Self.list().json.arrayValue?.first?.objectValue?["keySet"]?.objectValue)
    json["note"] = .string("kept")
    let entry = JSONValue.object(["keySet": .object(json), "signatures": .array([])])
    var list = try KeySetList(.array([entry]))
    try list.sign(with: try Self.keys.get()[0])
    #expect(list.newest?.keySet.json["note"] == .string("kept"))
    #expect(list.shortages.map(\.signatures) == [1])
  }
}
