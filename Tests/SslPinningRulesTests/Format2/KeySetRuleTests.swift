import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("Key sets and epochs")
struct KeySetRuleTests {
  static let start = RegistrySimulator.start
  static let day = RegistrySimulator.day

  @Test("a withdrawn online key is refused from the moment its successor is seen")
  func withdrawn() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    let client = try registry.client()
    var thief = registry
    try registry.beginEpoch(online: 2)
    // The new key set comes with a statement that is no good: it is believed all the same.
    var broken = registry
    broken.online = [5]
    let seen = try client.update(with: broken)
    #expect(seen.refusal == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 2))))
    #expect(seen.registry.keySetEpoch == 2)
    #expect(try seen.registry.accepts())
    thief.version = 100
    thief.pins = [("a.example", 66)]
    #expect(
      try seen.registry.update(with: thief).refusal
        == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 2))))
    #expect(try client.update(with: thief).refusal == nil)
    // And after a restart.
    let state = try StoredState(decoding: seen.registry.state.encoded)
    let restored = try TrustedRegistry(
      restoring: state, under: RegistrySimulator.trust(), at: Self.start)
    #expect(restored.keySetEpoch == 2)
    #expect(try restored.accepts())
    #expect(try restored.update(with: thief).refusal != nil)
    #expect(try restored.update(with: registry).refusal == nil)
  }

  @Test("a client that believes a statement never jumps over key sets: its own one would be lost")
  func noJump() throws {
    func restored(_ trusted: TrustedRegistry) throws -> TrustedRegistry {
      try TrustedRegistry(
        restoring: StoredState(decoding: trusted.state.encoded), under: RegistrySimulator.trust(),
        at: Self.start)
    }
    var registry = RegistrySimulator()
    registry.version = 5
    let client = try registry.client()
    var bare = registry
    bare.isStripped = true
    try registry.beginEpoch(online: 1)
    registry.version = 7
    let walked = try registry.client()
    try registry.beginEpoch(online: 2)
    // A mirror, which has no key, spoils the first set.
    registry.keySets[0] = .null
    registry.online = []
    let update = try client.update(with: registry)
    #expect(update.refusal == .invalidKeySet(epoch: 1, .member("keySet")))
    #expect(try restored(update.registry).stamp.version == .init(epoch: 0, version: 5))
    // The control: without a statement there is nothing to lose.
    let jumped = try bare.client().update(with: registry).registry
    #expect(jumped.keySetEpoch == 2)
    // Nor is the statement's key set lost to what another process jumped to.
    let merged = jumped.merged(with: walked, at: Self.start)
    #expect(try restored(merged).stamp.version == .init(epoch: 1, version: 7))
  }

  @Test("of a key set only what is signed is kept, and the signatures that are")
  func nothingBeside() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    guard case .object(var entry)? = registry.keySets.first else {
      Issue.record("no key set")
      return
    }
    let genuine = entry
    entry["x"] = .string("nobody signed this")
    guard case .array(let signatures)? = entry["signatures"] else {
      Issue.record("no signatures")
      return
    }
    let padding = JSONValue.string(String(repeating: "A", count: 100_000))
    let padded = signatures.map { signature -> JSONValue in
      guard case .object(var members) = signature else { return signature }
      members["x"] = padding
      return .object(members)
    }
    // By a key that is none of the set's, and by one of them that did not sign.
    let others = try [5, 1].map { key throws -> JSONValue in
      .object([
        "keyId": .string(try SimulatedKeys.roleKey(key).id.base64), "signature": padding,
        "x": padding,
      ])
    }
    entry["signatures"] = .array(padded + others)
    registry.keySets[0] = .object(entry)
    let state = try JSONValue(parsing: registry.client().state.encoded)
    #expect(state.objectValue?["keySets"] == .array([.object(genuine)]))
  }

  @Test("of a signature by an algorithm that only newer clients know, as much is kept as one has")
  func laterAlgorithm() throws {
    let unknown = JSONValue.object(["alg": .string("SLH-DSA-256f"), "spki": .string("MAA=")])
    let id = StrictBase64.encode(Digest.sha256([0x30, 0]))
    for (count, isKept) in [(49_856, true), (65_536, true), (65_537, false)] {
      var registry = RegistrySimulator()
      let root = JSONValue.object([
        "keys": .array([try AttackScenarioTests.keyJSON(0), unknown]), "threshold": .number(1),
      ])
      try registry.add(
        root: SimulatedKeys.role([0]), online: SimulatedKeys.role([1]), signedBy: [0],
        extra: [("root", root)])
      (registry.epoch, registry.online) = (1, [1])
      guard case .object(var entry)? = registry.keySets.first,
        case .array(let signatures)? = entry["signatures"]
      else {
        Issue.record("no signatures")
        return
      }
      let signature = StrictBase64.encode([UInt8](repeating: 0, count: count))
      let more = JSONValue.object(["keyId": .string(id), "signature": .string(signature)])
      entry["signatures"] = .array(signatures + [more])
      registry.keySets[0] = .object(entry)
      let state = try JSONValue(parsing: registry.client().state.encoded)
      let kept = state.objectValue?["keySets"]?.arrayValue?.first?.objectValue?["signatures"]
      #expect(kept == .array(signatures + (isKept ? [more] : [])), "\(count)")
    }
  }

  /// Set 1 replaces root key 0 by 4; set 2 is in force.
  private func rootReplaced() throws -> RegistrySimulator {
    var registry = RegistrySimulator()
    try registry.add(
      root: SimulatedKeys.role([4]), online: SimulatedKeys.role([1]), signedBy: [0, 4])
    try registry.add(
      root: SimulatedKeys.role([4]), online: SimulatedKeys.role([2]), signedBy: [4])
    (registry.epoch, registry.online) = (2, [2])
    return registry
  }

  @Test("sets before an app's own root are kept as nothing, whatever stands there")
  func beforeTheRoot() throws {
    var registry = try rootReplaced()
    registry.keySets[0] = .object([
      "keySet": .object(["x": .string(String(repeating: "A", count: 100_000))]),
      "signatures": .array([]),
    ])
    let trust = try RegistrySimulator.trust(root: SimulatedKeys.role([4]))
    let client = try registry.client(under: trust)
    let state = try JSONValue(parsing: client.state.encoded)
    #expect(state.objectValue?["keySets"] == .array([.object([:]), registry.keySets[1]]))
    let restored = try TrustedRegistry(
      restoring: client.state, under: trust, at: RegistrySimulator.start)
    #expect(restored.stamp.version == .init(epoch: 2, version: 1))
  }

  @Test("keys rotated three times while a client was away are walked in one go")
  func threeTimes() throws {
    var registry = RegistrySimulator()
    let client = try registry.client()
    try registry.add(
      root: SimulatedKeys.role([4]), online: SimulatedKeys.role([1]), signedBy: [0, 4])
    try registry.add(
      root: SimulatedKeys.role([5, 6], threshold: 2), online: SimulatedKeys.role([2]),
      signedBy: [4, 5, 6])
    try registry.add(
      root: SimulatedKeys.role([7]), online: SimulatedKeys.role([3]), signedBy: [5, 6, 7])
    (registry.epoch, registry.online) = (3, [3])
    let update = try client.update(with: registry)
    #expect(update.refusal == nil)
    #expect(update.registry.keySetEpoch == 3)
    // One link fewer, and nothing holds.
    registry.keySets.remove(at: 1)
    #expect(
      try client.update(with: registry).refusal == .invalidKeySet(epoch: 2, .epoch(3, expected: 2)))
  }

  @Test("an app that ships the root of a later set begins there, and old root keys get nowhere")
  func laterRoot() throws {
    var registry = try rootReplaced()
    let trust = try RegistrySimulator.trust(root: SimulatedKeys.role([4]))
    let client = try registry.client(under: trust)
    #expect(client.keySetEpoch == 2)
    let state = try StoredState(decoding: client.state.encoded)
    #expect(
      try TrustedRegistry(restoring: state, under: trust, at: Self.start).keySetEpoch == 2)
    registry.version = 2
    #expect(try client.update(with: registry, under: trust).refusal == nil)
    // The thief of key 0 makes a chain of his own.
    var forged = RegistrySimulator()
    try forged.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([9]), signedBy: [0])
    (forged.epoch, forged.online) = (1, [9])
    #expect(throws: RegistryError.self) { try forged.client(under: trust) }
    #expect(throws: Never.self) { try forged.client() }
    // Neither naming the root without its signature nor its keys under a lower threshold helps.
    forged.keySets = []
    try forged.add(
      root: SimulatedKeys.role([4]), online: SimulatedKeys.role([9]), signedBy: [0])
    #expect(throws: RegistryError.self) { try forged.client(under: trust) }
    let two = try RegistrySimulator.trust(root: SimulatedKeys.role([4, 5], threshold: 2))
    forged.keySets = []
    try forged.add(
      root: SimulatedKeys.role([4, 5]), online: SimulatedKeys.role([9]), signedBy: [4])
    #expect(throws: RegistryError.self) { try forged.client(under: two) }
  }

  @Test("a believed key set is not replaced by another of its number")
  func replaced() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    let client = try registry.client()
    var other = RegistrySimulator()
    try other.beginEpoch(online: 2)
    other.version = 2
    #expect(try client.update(with: other).refusal == .invalidKeySet(epoch: 1, .conflict))
    // A document may leave out what the client knows already.
    registry.version = 2
    registry.keySets = []
    #expect(try client.update(with: registry).refusal == nil)
  }

  @Test("no key of a set is read that no believed root has signed, at a first start neither")
  func unsignedKeys() throws {
    let crypto = CountingCrypto()
    let trust = RegistryTrust(
      registry: "example.json", shipped: try SimulatedKeys.role([0]), format1Key: nil,
      requiresStatement: true, crypto: crypto)
    var registry = RegistrySimulator()
    let client = try registry.client(under: trust)
    for (signer, read) in [(9, 0), (0, 13)] {
      registry.keySets = []
      try registry.add(
        root: SimulatedKeys.role([0]), online: SimulatedKeys.role(Array(0..<12)),
        signedBy: [signer])
      registry.version += 1
      _ = try client.update(with: registry, under: trust)
      #expect(crypto.read == read)
      _ = TrustedRegistry.first(try registry.document(), under: trust, at: Self.start)
      #expect(crypto.read == 2 * read)
    }
  }

  @Test("a statement belongs to the newest key set, even where older online keys are the same")
  func newestOnly() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    try registry.beginEpoch(online: 1)
    registry.epoch = 1
    #expect(throws: RegistryError.invalidStatement(.epoch(1, expected: 2))) {
      try registry.client()
    }
    registry.epoch = 2
    #expect(throws: Never.self) { try registry.client() }
  }

  @Test("an algorithm of the future verifies nothing and harms nothing")
  func unknownAlgorithm() throws {
    var registry = RegistrySimulator()
    let future = try RoleKey(
      algorithm: "ML-DSA-44", spki: [1, 2, 3], crypto: PlatformCrypto.shared)
    try registry.add(
      root: SimulatedKeys.role([0]),
      online: KeyRole(keys: [future, try SimulatedKeys.roleKey(1)], threshold: 1), signedBy: [0])
    (registry.epoch, registry.online) = (1, [1])
    #expect(throws: Never.self) { try registry.client() }
    // A known algorithm with a key of another type is a fault of the set.
    #expect(throws: DocumentFault.self) {
      try RoleKey(algorithm: "ES256", spki: [1, 2, 3], crypto: PlatformCrypto.shared)
    }
    #expect(throws: DocumentFault.self) {
      try RoleKey(
        algorithm: "EdDSA", spki: try SimulatedKeys.key(1).publicKeyDER,
        crypto: PlatformCrypto.shared)
    }
  }

  @Test("a vanished host stays through a new epoch whose online keys vouched for it, not otherwise")
  func vanishedAcrossEpochs() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    registry.pins = [("a.example", 1), ("**.example", 66)]
    let client = try registry.client()
    registry.pins = [("a.example", 1)]
    var same = registry
    try same.beginEpoch(online: 1)
    let kept = try client.update(with: same).registry
    #expect(try kept.accepts("b.example", leaf: 66))
    #expect(kept.registry.problems.count == 1)
    // The key that listed it was stolen, and is withdrawn: what it listed is gone with it.
    var other = registry
    try other.beginEpoch(online: 2)
    let gone = try client.update(with: other).registry
    #expect(try gone.verdict("b.example", path: [66]).outcome == .unlisted)
    #expect(!(try gone.accepts("a.example", leaf: 66)))
  }

  @Test("a vanished host keeps its pins for as long as statements go on, its CA pins included")
  func vanishedForLong() throws {
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 2)]
    registry.entryMembers = ",\"expire\":\(registry.issued + 5)"
    registry.hosts = [HostSettings(try HostPattern("b.example"), ca: [.test(91)])]
    var client = try registry.client()
    registry.pins.removeLast()
    registry.hosts = []
    for month in 1...12 {
      registry.version += 1
      registry.issued = Self.start + Int64(month) * 30 * Self.day
      registry.entryMembers = ""
      let update = try client.update(with: registry, at: registry.issued)
      #expect(update.refusal == nil)
      let state = try StoredState(decoding: update.registry.state.encoded)
      client = try TrustedRegistry(
        restoring: state, under: RegistrySimulator.trust(), at: registry.issued)
      #expect(
        try client.verdict("b.example", path: [2, 91], at: registry.issued).outcome == .matched)
      #expect(
        try client.verdict("b.example", path: [2, 90], at: registry.issued).outcome
          == .mismatch(.ca))
    }
    registry.version += 1
    registry.removed = ["b.example"]
    client = try client.update(with: registry, at: registry.issued).registry
    #expect(try client.verdict("b.example").outcome == .unlisted)
  }

  @Test(
    "a registry that drops host after host does not grow for ever, nor with what is stored or merged",
    arguments: [Self.day, 0])
  func bounded(step: Int64) throws {
    var registry = RegistrySimulator()
    registry.pins = (0..<6).map { ("h\($0).example", UInt8($0)) } + [("a.example", 9)]
    let trust = try RegistrySimulator.trust(limits: RegistryLimits(maximumOlderDocuments: 3))
    var client = try registry.client(under: trust)
    var whole = try registry.client()
    // Another process, which sees the first version and the last alone: what it finds gone then went long ago.
    let late = client
    for number in 1...6 {
      registry.pins.removeFirst()
      registry.version += 1
      let clock = Self.start + Int64(number) * step
      client = try client.update(with: registry, under: trust, at: clock).registry
      whole = try whole.update(with: registry, at: clock).registry
    }
    #expect(whole.registry.problems.count == 6)
    let clock = Self.start + 6 * step
    let restored = try TrustedRegistry(restoring: whole.state, under: trust, at: clock)
    let last = try late.update(with: registry, under: trust, at: clock + 1).registry
    for bounded in [
      client, restored, client.merged(with: whole, at: clock),
      client.merged(with: last, at: clock + 1),
    ] {
      #expect(bounded.registry.problems.count == 3)
      #expect(try bounded.accepts("h5.example", leaf: 5))
      #expect(try bounded.verdict("h0.example").outcome == .unlisted)
    }
  }
}

/// Counts the keys that were read.
private final class CountingCrypto: RegistryCrypto {
  private let count = Locked(0)

  var read: Int { count.withLock { $0 } }

  func sha256(_ bytes: [UInt8]) -> [UInt8] { PlatformCrypto.shared.sha256(bytes) }

  func verifier(_ algorithm: SignatureAlgorithm, spki: [UInt8]) -> (any SignatureVerifier)? {
    count.withLock { $0 += 1 }
    return PlatformCrypto.shared.verifier(algorithm, spki: spki)
  }
}
