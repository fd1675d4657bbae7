import CanonicalJSON
import SslPinningRules
import Testing

/// Members that must not be ignored, limits of time, retirement, the shipped minimum, forks, and what
/// outlives a refusal. Ed25519 keys alone: the documents are the same whenever they are written.
extension RegistryVectorBook {
  mutating func fillRules() throws {
    try fillCritical()
    try fillLimits()
    try fillRetirement()
    try fillMinimum()
    try fillForks()
    try fillLearned()
    try fillEpochs()
  }

  /// Epoch 1 under root key 0, whose online key is key 2.
  func epochOne() throws -> RegistrySimulator {
    var registry = try Self.simulator()
    try registry.beginEpoch(online: 2)
    return registry
  }

  private static func critical(_ list: [JSONValue]) -> [(String, JSONValue)] {
    [("x", .bool(true)), ("critical", .array(list))]
  }

  private mutating func fillCritical() throws {
    var registry = try Self.simulator()
    let genuine = try registry.document()
    registry.version = 2
    registry.pins = [("a.example", 2)]
    registry.extraStatementMembers = Self.critical([.string("x")])
    let demanding = try registry.document()
    begin("a statement with a critical member that is not known is refused")
    try step("ed25519.json", genuine, "accepted", number: [0, 1], leaf: ["a.example": [1]])
    try step(
      "critical-statement.json", demanding, "client-too-old", number: [0, 1],
      leaf: ["a.example": [1]])
    for (file, list) in [
      ("critical-empty.json", []), ("critical-twice.json", [.string("x"), .string("x")]),
      ("critical-absent.json", [.string("y")]), ("critical-known.json", [.string("issued")]),
      ("critical-itself.json", [.string("critical")]),
    ] as [(String, [JSONValue])] {
      registry.extraStatementMembers = Self.critical(list)
      try step(
        file, try registry.document(), "statement-invalid", number: [0, 1],
        leaf: ["a.example": [1]])
    }
    registry.extraStatementMembers = [("critical", .string("x")), ("x", .bool(true))]
    try step(
      "critical-no-list.json", try registry.document(), "statement-invalid", number: [0, 1],
      leaf: ["a.example": [1]])
    begin("a first document is not exempt from critical members")
    try step("critical-statement.json", demanding, "client-too-old", number: nil, leaf: [:])

    begin("a critical member of an entry refuses all hosts that its pattern matches")
    registry = try Self.simulator()
    registry.pins = [("a.example", 1), ("b.other", 2), ("c.example", 3)]
    func entry(_ pattern: String) -> JSONValue {
      var entry: JSONObject = ["domainName": .string(pattern)]
      for (name, value) in Self.critical([.string("x")]) { entry[name] = value }
      return .object(entry)
    }
    registry.extraStatementMembers = [("hosts", .array([entry("a.example")]))]
    try step(
      "critical-host.json", try registry.document(), "accepted", number: [0, 1],
      leaf: ["a.example": [1], "b.other": [2], "c.example": [3]], refused: ["a.example"],
      usable: ["b.other", "c.example"])
    registry.version = 2
    registry.extraStatementMembers = [("hosts", .array([entry("**.example")]))]
    try step(
      "critical-host-wide.json", try registry.document(), "accepted", number: [0, 2],
      leaf: ["a.example": [1], "b.other": [2]], refused: ["a.example", "c.example"],
      usable: ["b.other"])

    begin("a critical member that is not known makes a key set invalid")
    registry = try epochOne()
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([4]), signedBy: [0],
      extra: Self.critical([.string("x")]))
    (registry.epoch, registry.online) = (2, [4])
    try step(
      "critical-key-set.json", try registry.document(), "key-set-invalid", number: nil, keySet: 1,
      leaf: [:])
    registry = try epochOne()
    try step(
      "rules-1.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [1]])
  }

  private mutating func fillLimits() throws {
    begin("a statement lives for 400 days at most, a retired one for longer")
    var registry = try Self.simulator()
    registry.lifetime = 400 * Self.day
    try step(
      "days-400.json", try registry.document(), "accepted", number: [0, 1],
      leaf: ["a.example": [1]])
    registry.version = 2
    registry.lifetime += 1
    try step(
      "days-400-and-a-second.json", try registry.document(), "statement-invalid", number: [0, 1],
      leaf: ["a.example": [1]])
    registry.isRetired = true
    try step(
      "days-retired.json", try registry.document(), "accepted", number: nil,
      leaf: ["a.example": [1]])
  }

  private mutating func fillRetirement() throws {
    begin("the root keys retire a registry, as many as a key set takes; online keys do not count")
    var registry = try Self.simulator()
    try registry.add(
      root: SimulatedKeys.role([0, 4], threshold: 2), online: SimulatedKeys.role([2]),
      signedBy: [0, 4])
    (registry.epoch, registry.online) = (1, [2])
    try step(
      "two-roots.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [1]])
    (registry.version, registry.isRetired) = (2, true)
    for (file, signers) in [
      ("retired-by-online.json", [2]), ("retired-by-one-root.json", [0, 2]),
    ] {
      registry.root = signers
      try step(
        file, try registry.document(), "statement-invalid", number: [1, 1], keySet: 1,
        leaf: ["a.example": [1]])
    }
    registry.root = [0, 4]
    try step(
      "retired-by-roots.json", try registry.document(), "accepted", number: nil, keySet: 1,
      leaf: ["a.example": [1]])

    begin("what a retired statement removes goes, with later documents too")
    registry = try Self.simulator()
    registry.pins = [("a.example", 1), ("b.example", 2), ("c.example", 3)]
    try step(
      "retired-removes-1.json", try registry.document(), "accepted", number: [0, 1],
      leaf: ["b.example": [2], "c.example": [3]])
    (registry.version, registry.isRetired) = (2, true)
    registry.removed = ["b.example", "c.example"]
    registry.pins.remove(at: 1)
    try step(
      "retired-removes-2.json", try registry.document(), "accepted", number: nil,
      leaf: ["a.example": [1], "b.example": nil, "c.example": [3]])
    registry.isStripped = true
    registry.pins.removeLast()
    try step(
      "retired-removes-format1.json", try registry.document(), "accepted", number: nil,
      leaf: ["a.example": [1], "b.example": nil, "c.example": nil])

    begin("what a retired statement demanded of a host that vanished since is still demanded")
    registry = try Self.simulator()
    (registry.version, registry.isRetired) = (2, true)
    registry.hosts = [HostSettings(try HostPattern("b.example"), ca: [.test(90)])]
    try step(
      "retired-demands.json", try registry.document(), "accepted", number: nil,
      leaf: ["a.example": [1], "b.example": []], ca: ["b.example": [90]])
    registry.isStripped = true
    registry.pins = [("a.example", 1), ("b.example", 2)]
    try step(
      "retired-demands-format1.json", try registry.document(), "accepted", number: nil,
      leaf: ["a.example": [1], "b.example": [2]], ca: ["b.example": [90]])
    registry.isStripped = false
    (registry.version, registry.hosts, registry.pins) = (3, [], [("a.example", 1)])
    try step(
      "retired-demands-no-more.json", try registry.document(), "accepted", number: nil,
      leaf: ["a.example": [1], "b.example": [2]], ca: ["b.example": [90]])
  }

  private mutating func fillMinimum() throws {
    begin(
      "an app ships a minimum: nothing older is believed, a newer epoch counts from its own time",
      .init(minimum: .init(epoch: 1, issued: Self.start)))
    var registry = try Self.simulator()
    registry.issued = Self.start + 100
    try step(
      "minimum-older-epoch.json", try registry.document(), "rolled-back", number: nil, leaf: [:])
    registry.isStripped = true
    try step(
      "minimum-stripped.json", try registry.document(), "statement-required", number: nil,
      leaf: [:])
    registry = try epochOne()
    registry.issued = Self.start - 1
    try step(
      "minimum-older.json", try registry.document(), "rolled-back", number: nil, keySet: 1,
      leaf: [:])
    registry = try epochOne()
    try step(
      "rules-1.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [1]])
    try registry.beginEpoch(online: 4)
    registry.issued = Self.start - 80 * Self.day
    try step(
      "minimum-newer-epoch.json", try registry.document(), "accepted", number: [2, 1], keySet: 2,
      leaf: ["a.example": [1]])
  }

  private mutating func fillForks() throws {
    begin("what follows another statement than the one in force is believed all the same")
    let genuine = try Self.simulator()
    var stolen = genuine
    stolen.denied = [99]
    try step(
      "fork-stolen.json", try stolen.document(), "accepted", number: [0, 1],
      leaf: ["a.example": [1]], denied: [99])
    let id = StatementID(
      of: try Statement(genuine.statement(), registry: genuine.name),
      crypto: PlatformCrypto.shared)
    var next = genuine
    next.version = 2
    next.extraStatementMembers = [("previous", id.member)]
    try step(
      "fork-next.json", try next.document(), "accepted", number: [0, 2],
      leaf: ["a.example": [1]], denied: [])
    next.version = 3
    next.extraStatementMembers = [("previous", .string("0.2"))]
    try step(
      "fork-malformed.json", try next.document(), "statement-invalid", number: [0, 2],
      leaf: ["a.example": [1]])
  }

  private mutating func fillLearned() throws {
    let old = try epochOne()
    var next = old
    try next.beginEpoch(online: 4)
    var late = next
    late.issued = Self.start - 100 * Self.day
    var changed = next
    changed.pins = [("a.example", 66)]
    let statement = try next.statement()
    let other = try changed.document(statement, try next.signatures(over: statement))
    for (name, file, bytes, outcome) in [
      ("an expired", "learned-expired.json", try late.document(), "statement-expired"),
      ("a changed", "learned-changed.json", other, "other-payload"),
    ] {
      begin("key sets of \(name) first document are believed: an older one is refused from then on")
      try step(file, bytes, outcome, number: nil, keySet: 2, leaf: [:])
      try step(
        "rules-1.json", try old.document(), "statement-invalid", number: nil, keySet: 2, leaf: [:])
      try step(
        "rules-2.json", try next.document(), "accepted", number: [2, 1], keySet: 2,
        leaf: ["a.example": [1]])
    }
  }

  private mutating func fillEpochs() throws {
    begin(
      "a set whose own root is the shipped ids under another algorithm is passed over",
      .init(rootKeys: ["4.pub.pem"]))
    var registry = try Self.simulator()
    let blind = try RoleKey(
      algorithm: "ML-DSA-44", spki: SimulatedKeys.roleKey(4).spki, crypto: PlatformCrypto.shared)
    try registry.add(
      root: KeyRole(keys: [blind], threshold: 1), online: SimulatedKeys.role([6]), signedBy: [4])
    (registry.epoch, registry.online) = (1, [6])
    try step(
      "blind-root.json", try registry.document(), "key-set-invalid", number: nil, leaf: [:])
    try registry.add(
      root: SimulatedKeys.role([4]), online: SimulatedKeys.role([2]), signedBy: [4])
    (registry.epoch, registry.online) = (2, [2])
    try step(
      "blind-root-passed.json", try registry.document(), "accepted", number: [2, 1], keySet: 2,
      leaf: ["a.example": [1]])

    begin("a host that vanishes with an epoch stays where the new online keys signed for it, too")
    registry = try epochOne()
    registry.pins = [("a.example", 1), ("b.example", 2)]
    try step(
      "same-online-1.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [1], "b.example": [2]])
    try registry.beginEpoch(online: 2)
    registry.pins = [("a.example", 1)]
    try step(
      "same-online-2.json", try registry.document(), "accepted", number: [2, 1], keySet: 2,
      leaf: ["a.example": [1], "b.example": [2]])
    try registry.beginEpoch(online: 4)
    try step(
      "same-online-3.json", try registry.document(), "accepted", number: [3, 1], keySet: 3,
      leaf: ["a.example": [1], "b.example": nil])
  }
}
