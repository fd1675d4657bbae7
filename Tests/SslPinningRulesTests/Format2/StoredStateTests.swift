import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import Testing

/// What tests share of the platform's cryptography.
enum PlatformCrypto {
  static let shared = PlatformRegistryCrypto()
}

@Suite("Stored states")
struct StoredStateTests {
  static let start = RegistrySimulator.start
  static let day = RegistrySimulator.day

  /// A client with a history: two epochs, a vanished host, a floor ahead of the clock.
  private func client() throws -> (TrustedRegistry, RegistrySimulator) {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    registry.pins = [("a.example", 1), ("b.example", 2)]
    registry.issued = Self.start + 3
    let client = try registry.client()
    registry.version = 2
    registry.issued = Self.start
    registry.pins = [("a.example", 1)]
    registry.denied = [7]
    return (try client.update(with: registry, at: Self.start + 1).registry, registry)
  }

  private func restore(
    _ state: JSONValue, at clock: Int64 = start + 2, under trust: RegistryTrust? = nil
  ) throws -> TrustedRegistry {
    try TrustedRegistry(
      restoring: StoredState(decoding: state.canonicalBytes),
      under: try trust ?? RegistrySimulator.trust(), at: clock)
  }

  @Test("what is restored is what was stored, to the byte")
  func roundTrip() throws {
    let (client, registry) = try client()
    let bytes = client.state.encoded
    #expect(try canonicalize(bytes) == bytes)
    let restored = try TrustedRegistry(
      restoring: StoredState(decoding: bytes), under: RegistrySimulator.trust(),
      at: Self.start + 2)
    #expect(restored.registry == client.registry)
    #expect(restored.stamp == client.stamp)
    #expect(restored.keySetEpoch == 1)
    #expect(restored.time(at: 0) == client.time(at: 0))
    #expect(restored.state.encoded == bytes)
    #expect(try restored.policy() == client.policy())
    #expect(try restored.accepts("b.example", leaf: 2))
    var older = registry
    older.version = 1
    #expect(try restored.update(with: older).refusal != nil)
    #expect(try restored.update(with: registry).refusal == nil)
  }

  @Test("a format-1 registry is stored and restored alike, and a wrong key restores nothing")
  func format1() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    registry.pins = [("a.example", 1), ("b.example", 2)]
    var client = try registry.client()
    registry.pins = [("a.example", 3)]
    client = try client.update(with: registry).registry
    let state = try StoredState(decoding: client.state.encoded)
    let restored = try TrustedRegistry(
      restoring: state, under: RegistrySimulator.trust(), at: Self.start)
    #expect(restored.registry == client.registry)
    #expect(try restored.accepts("b.example", leaf: 2))
    // 30 days count on. They are over with the next confirmation: a start without one changes nothing.
    let later = Self.start + 31 * Self.day
    let late = try TrustedRegistry(
      restoring: state, under: RegistrySimulator.trust(), at: later)
    #expect(try late.verdict("b.example", at: later).outcome != .unlisted)
    #expect(
      try late.confirmed(at: later).verdict("b.example", at: later).outcome == .unlisted)
    #expect(throws: RegistryError.badSignature) {
      try TrustedRegistry(
        restoring: state, under: RegistrySimulator.trust(format1Key: .other), at: Self.start)
    }
    #expect(throws: RegistryError.statementRequired) {
      try TrustedRegistry(
        restoring: state, under: RegistrySimulator.trust(requiresStatement: true), at: Self.start)
    }
  }

  @Test("a minimum that an app begins to ship is asked of what comes in, not of what it has")
  func minimum() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    let state = try registry.client().state
    let trust = try RegistrySimulator.trust(minimum: RegistryMinimum(epoch: 0, issued: Self.start))
    let client = try TrustedRegistry(restoring: state, under: trust, at: Self.start)
    #expect(try client.accepts(leaf: 1))
    #expect(try client.update(with: registry, under: trust).refusal == .statementRequired)
    // What the app demands by name is asked of both.
    #expect(throws: RegistryError.statementRequired) {
      try TrustedRegistry(
        restoring: state, under: RegistrySimulator.trust(requiresStatement: true), at: Self.start)
    }
  }

  @Test("an expired state is restored as expired")
  func expired() throws {
    let (client, registry) = try client()
    let later = Self.start + 500 * Self.day
    let restored = try TrustedRegistry(
      restoring: StoredState(decoding: client.state.encoded), under: RegistrySimulator.trust(),
      at: later)
    #expect(restored.isExpired(at: later))
    #expect(!(try restored.accepts(at: later)))
    #expect(try restored.accepts(at: later, whenExpired: .keepPinning))
    var newer = registry
    newer.version = 3
    newer.issued = later
    #expect(try restored.update(with: newer, at: later).refusal == nil)
  }

  @Test("other root keys and another name restore nothing")
  func otherTrust() throws {
    let (client, _) = try client()
    let state = try JSONValue(parsing: client.state.encoded)
    #expect(throws: RegistryError.self) {
      try restore(state, under: RegistrySimulator.trust(root: SimulatedKeys.role([8])))
    }
    #expect(throws: RegistryError.self) {
      try restore(state, under: RegistrySimulator.trust("other.json"))
    }
  }

  @Test("whoever writes to the disk gains no pin, and locks nobody out by a time")
  func tampered() throws {
    let (client, registry) = try client()
    let json = try JSONValue(parsing: client.state.encoded)
    guard case .object(let state) = json else { return }
    func with(_ name: String, _ value: JSONValue?) -> JSONValue {
      var changed = state
      changed[name] = value
      return .object(changed)
    }
    // Times beyond what the statement allows.
    let great = JSONValue.number(try #require(JSONNumber(exactly: JSONNumber.greatestInteger)))
    for name in ["issuedFloor", "confirmed"] {
      let restored = try restore(with(name, great))
      #expect(try restored.accepts(at: Self.start + 2))
      var newer = registry
      newer.version = 3
      newer.issued = Self.start + 9
      #expect(try restored.update(with: newer, at: Self.start + 9).refusal == nil)
    }
    #expect(try restore(with("issuedFloor", great)).time(at: 0) == client.time(at: 0))
    // Forged documents, for the registry itself and for a vanished host.
    var forged = registry
    forged.online = [5]
    forged.pins = [("a.example", 66), ("c.example", 66)]
    let text = JSONValue.string(String(decoding: try forged.document(), as: UTF8.self))
    #expect(throws: RegistryError.self) { try restore(with("document", text)) }
    let vanished = JSONValue.array([
      .object([
        "document": text,
        "hosts": .array([
          .object(["domainName": .string("c.example"), "since": .number(0)])
        ]),
      ])
    ])
    #expect(try restore(with("vanished", vanished)).verdict("c.example").outcome == .unlisted)
    // A format-1 signature does not vouch for a document that has a statement.
    #expect(try restore(with("vanished", .array([]))).verdict("b.example").outcome == .unlisted)
    // A host that a true document does not list.
    guard let older = state["vanished"]?.arrayValue?.first?.objectValue,
      let document = older["document"]
    else {
      Issue.record("no vanished host")
      return
    }
    let other = JSONValue.array([
      .object([
        "document": document,
        "hosts": .array([
          .object(["domainName": .string("c.example"), "since": .number(0)]),
          .object(["domainName": .string("a.example"), "since": .number(0)]),
        ]),
      ])
    ])
    let restored = try restore(with("vanished", other))
    #expect(try restored.verdict("c.example").outcome == .unlisted)
    #expect(restored.registry.problems.isEmpty)
    // Key sets left out or changed.
    #expect(throws: RegistryError.self) { try restore(with("keySets", .array([.null]))) }
    #expect(throws: RegistryError.self) { try restore(with("keySets", .array([]))) }
  }

  @Test(
    "signatures that somebody strips from an older key set on the way are not stored over the good ones"
  )
  func strippedSignatures() throws {
    var registry = RegistrySimulator()
    // A root key of its own for each set: no later one can be jumped to from what the app ships.
    func begin(_ epoch: Int, signedBy roots: [Int]) throws {
      try registry.add(
        root: SimulatedKeys.role([5 + epoch]), online: SimulatedKeys.role([epoch]),
        signedBy: roots)
      (registry.epoch, registry.online) = (Int64(epoch), [epoch])
    }
    try begin(1, signedBy: [0, 6])
    let client = try registry.client()
    try begin(2, signedBy: [6, 7])
    guard case .object(var document) = try JSONValue(parsing: registry.document()),
      var sets = document["keySets"]?.arrayValue, case .object(var first)? = sets.first
    else {
      _ = Issue.record("no key sets")
      return
    }
    first["signatures"] = .array([])
    sets[0] = .object(first)
    document["keySets"] = .array(sets)
    let update = client.update(
      with: JSONValue.object(document).canonicalBytes, under: try RegistrySimulator.trust(),
      at: Self.start)
    #expect(update.registry.keySetEpoch == 2)
    let restored = try restore(try JSONValue(parsing: update.registry.state.encoded))
    #expect(restored.keySetEpoch == 2)
  }

  @Test("no edited number makes a state seem fresh, or lets go of a host that vanished today")
  func numbers() throws {
    let (client, _) = try client()
    guard case .object(var state) = try JSONValue(parsing: client.state.encoded) else { return }
    let now = Self.start + 10
    // Neither now nor ever confirmed: whoever restores it asks the network, and says that it is stale.
    for confirmed in [0, JSONNumber.greatestInteger] {
      state["confirmed"] = .number(try #require(JSONNumber(exactly: confirmed)))
      let restored = try restore(.object(state), at: now)
      #expect(restored.stamp.isStale(at: now))
      #expect(try restored.accepts(at: now))
    }
    // In format 1 a host that vanished goes after 30 days: by what is signed, where something is.
    var registry = RegistrySimulator()
    registry.isStripped = true
    registry.pins = [("a.example", 1), ("b.example", 2)]
    registry.entryMembers = ",\"date\":\"\(RFC3339.text(Self.start))\""
    var format1 = try registry.client()
    registry.pins = [("a.example", 1)]
    format1 = try format1.update(with: registry).registry
    let text = String(decoding: format1.state.encoded, as: UTF8.self)
    let edited = text.replacing("\"since\":\(Self.start)", with: "\"since\":1")
    #expect(edited != text)
    let restored = try restore(try JSONValue(parsing: [UInt8](edited.utf8)), at: now)
    #expect(try restored.confirmed(at: now).accepts("b.example", leaf: 2, at: now))
  }

  @Test("a document that only a withdrawn key signed brings no vanished host back from the disk")
  func withdrawn() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    registry.pins = [("a.example", 1), ("**.example", 66)]
    let stolen = try registry.document()
    func client(online key: Int) throws -> TrustedRegistry {
      var next = registry
      try next.beginEpoch(online: key)
      next.pins = [("a.example", 1)]
      guard case .object(var state) = try JSONValue(parsing: next.client().state.encoded) else {
        throw RegistryError.unreadableState
      }
      state["vanished"] = .array([
        .object([
          "document": .string(String(decoding: stolen, as: UTF8.self)),
          "hosts": .array([
            .object(["domainName": .string("**.example"), "since": .number(0)])
          ]),
        ])
      ])
      return try restore(.object(state))
    }
    #expect(try !client(online: 2).accepts("b.example", leaf: 66))
    // Control: a key that is still in office vouches for it.
    #expect(try client(online: 1).accepts("b.example", leaf: 66))
  }

  /// A state without the signatures of these keys, as a client stored it that met a copy without them.
  private func stripped(_ client: TrustedRegistry, of keys: [Int]) throws -> JSONValue {
    let ids = try keys.map { JSONValue.string(try SimulatedKeys.roleKey($0).id.base64) }
    func strip(_ json: JSONValue) throws -> JSONValue {
      switch json {
      case .array(let elements):
        return .array(
          try elements.filter { element in
            !(element.objectValue?["keyId"].map(ids.contains) ?? false)
          }.map(strip))
      case .object(let object):
        return .object(JSONObject(try object.members.map { ($0.key, try strip($0.value)) }))
      // A document.
      case .string(let text) where text.hasPrefix("{"):
        let document = try strip(try JSONValue(parsing: [UInt8](text.utf8)))
        return .string(String(decoding: document.canonicalBytes, as: UTF8.self))
      default: return json
      }
    }
    return try strip(try JSONValue(parsing: client.state.encoded))
  }

  private func role(_ key: Int, also other: Int) throws -> JSONValue {
    let keys = try [key, other].map { number in
      JSONValue.object([
        "keys": .array([try AttackScenarioTests.keyJSON(number)]), "threshold": .number(1),
      ])
    }
    var role = try #require(keys[0].objectValue)
    role["also"] = keys[1]
    return .object(role)
  }

  @Test(
    "a key set that was not believed with a list is not believed after a restart: `also` is not asked of what is stored",
    arguments: [
      (true, [0], 1), (true, [0, 4], 2), (false, [0], 1), (false, [0, 4], 2),
    ] as [(Bool, [Int], Int64)])
  func keySetsBesideAList(isRetired: Bool, signers: [Int], epoch: Int64) throws {
    var registry = RegistrySimulator()
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([2]), signedBy: [0, 4],
      extra: [("root", try role(0, also: 4))])
    (registry.epoch, registry.isRetired, registry.root) = (1, true, [0, 4])
    registry.isStripped = !isRetired
    let first = try registry.client()
    // Without a statement a list is believed whatever is wrong with the key sets beside it.
    registry.isStripped = true
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([8]), signedBy: signers)
    let update = try first.update(with: registry)
    #expect(update.refusal == nil && update.registry.keySetEpoch == epoch)
    let restored = try restore(try JSONValue(parsing: update.registry.state.encoded))
    #expect(restored.keySetEpoch == epoch)
    #expect(first.merged(withStored: restored, at: Self.start).keySetEpoch == epoch)
    (registry.isStripped, registry.isRetired) = (false, false)
    (registry.epoch, registry.version, registry.online) = (2, 1, [8])
    registry.pins = [("a.example", 66)]
    let next = try restored.update(with: registry)
    #expect(try next.registry.accepts(leaf: 66) == (epoch == 2))
    #expect((next.refusal == nil) == (epoch == 2))
  }

  @Test("an `also` whose algorithm the app learns by an update is asked of what comes in alone")
  func alsoLearnt() throws {
    var registry = RegistrySimulator()
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([2]), signedBy: [0, 4],
      extra: [("root", try role(0, also: 4)), ("online", try role(2, also: 6))])
    (registry.epoch, registry.online) = (1, [2, 6])
    registry.pins = [("a.example", 1), ("b.example", 2)]
    let first = try registry.client()
    (registry.version, registry.pins, registry.denied) = (2, [("a.example", 1)], [7])
    let client = try first.update(with: registry).registry
    // Whoever handed the documents out left those signatures away: the app of then could not tell.
    let restored = try restore(try stripped(client, of: [4, 6]))
    #expect(restored.stamp.version == .init(epoch: 1, version: 2))
    #expect(try restored.accepts() && restored.accepts("b.example", leaf: 2))
    #expect(try restored.verdict(path: [1, 7]).outcome == .denied(.test(7)))
    #expect(
      try LearnedKeySets(
        restoring: StoredState(decoding: stripped(client, of: [4, 6]).canonicalBytes),
        under: RegistrySimulator.trust()
      ).epoch == 1)
    // The role's own keys are asked as ever, of whoever writes to the disk.
    for key in [0, 2] {
      #expect(throws: RegistryError.self) { try restore(try stripped(client, of: [key])) }
    }
    // A thief of the role's own keys gets no further than before.
    var next = registry
    (next.version, next.online) = (3, [2])
    #expect(
      try restored.update(with: next).refusal
        == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 1))))
    #expect(throws: RegistryError.self) { try next.client() }
    next.online = [2, 6]
    #expect(try restored.update(with: next).refusal == nil)
    for (signers, epoch) in [([0], 1), ([0, 4], 2)] as [([Int], Int64)] {
      var other = registry
      try other.add(
        root: SimulatedKeys.role([0]), online: SimulatedKeys.role([8]), signedBy: signers)
      (other.epoch, other.version, other.online) = (2, 1, [8])
      #expect(try restored.update(with: other).registry.keySetEpoch == epoch)
    }
  }

  @Test(
    "a list without a statement brings no host back from the disk that its end had ended",
    arguments: [
      // The epochs of the retired statement beside it, and of the one in force; nil: there is none.
      (nil, nil, true), (nil, 1, false), (1, 1, true), (1, 2, false), (1, nil, false),
    ] as [(Int64?, Int64?, Bool)])
  func formerFormat1(beside retiredEpoch: Int64?, inForce epoch: Int64?, isKept: Bool) throws {
    func text(_ registry: RegistrySimulator) throws -> JSONValue {
      .string(String(decoding: try registry.document(), as: UTF8.self))
    }
    var list = RegistrySimulator()
    list.isStripped = true
    list.pins = [("a.example", 1), ("c.example", 66)]
    var entry: JSONObject = [
      "document": try text(list),
      "hosts": .array([
        .object([
          "domainName": .string("c.example"),
          "since": .number(try #require(JSONNumber(exactly: Self.start))),
        ])
      ]),
    ]
    var registry = RegistrySimulator()
    registry.isStripped = epoch == nil
    for number in 1...2 as ClosedRange<Int64> where number <= max(epoch ?? 0, retiredEpoch ?? 0) {
      try registry.beginEpoch(online: 1)
      guard number == retiredEpoch else { continue }
      var retired = registry
      (retired.isStripped, retired.isRetired) = (false, true)
      entry["retired"] = try text(retired)
      registry.version = 2
    }
    guard case .object(var state) = try JSONValue(parsing: registry.client().state.encoded) else {
      throw RegistryError.unreadableState
    }
    state["vanished"] = .array([.object(entry)])
    let restored = try restore(.object(state))
    #expect(try restored.accepts("c.example", leaf: 66) == isKept)
    #expect(try isKept || restored.verdict("c.example").outcome == .unlisted)
    #expect(try restored.accepts("a.example"))
  }

  @Test(
    "what is no state is told as such",
    arguments: ["", "{}", "[]", "{\"type\":\"registry-state\"}", "\u{FEFF}{}"])
  func unreadable(text: String) {
    #expect(throws: RegistryError.unreadableState) {
      try StoredState(decoding: [UInt8](text.utf8))
    }
  }

  @Test("no cut state crashes or restores anything but itself")
  func cut() throws {
    let (client, _) = try client()
    let bytes = client.state.encoded
    for end in stride(from: 0, to: bytes.count, by: 37) {
      #expect(throws: RegistryError.unreadableState) {
        try StoredState(decoding: Array(bytes[..<end]))
      }
    }
  }
}
