import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import Testing

/// Statement parts, documents by other roads, mirrors, and `also` roles. Ed25519 keys alone.
extension RegistryVectorBook {
  mutating func fillRoads() throws {
    try fillParts()
    try fillHanded()
    try fillMirrors()
    try fillAlso()
  }

  /// A document without its payload.
  static func part(
    _ bytes: [UInt8], _ change: (inout JSONObject) -> Void = { _ in }
  ) throws -> [UInt8] {
    var part = try RegistryEnvelope(parsing: bytes).document
    (part["payload"], part["signature"]) = (nil, nil)
    change(&part)
    return JSONValue.object(part).canonicalBytes
  }

  private mutating func fillParts() throws {
    begin("a statement part is completed to a document by what is believed")
    var registry = try epochOne()
    let first = try registry.document()
    try step(
      "rules-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: ["a.example": [1]])
    for (version, file, change) in [
      (2, "part-no-new-sets.json", { $0["keySets"] = .array([]) }),
      (3, "part-no-sets.json", { $0["keySets"] = nil }), (4, "part-all-sets.json", { _ in }),
    ] as [(Int64, String, (inout JSONObject) -> Void)] {
      registry.version = version
      registry.denied = [UInt8(version)]
      try step(
        file, try Self.part(try registry.document(), change), "accepted", number: [1, version],
        keySet: 1, leaf: ["a.example": [1]], denied: registry.denied)
    }
    registry.denied = []
    try registry.beginEpoch(online: 4)
    let second = registry
    try step(
      "part-next-set.json",
      try Self.part(try registry.document()) { $0["keySets"] = .array([second.keySets[1]]) },
      "accepted", number: [2, 1], keySet: 2, leaf: ["a.example": [1]])
    var late = registry
    try late.beginEpoch(online: 6)
    try late.beginEpoch(online: 8)
    let sets = late.keySets
    let believed: Leaf = ["a.example": [1]]
    try step(
      "part-sets-too-late.json",
      try Self.part(try late.document()) { $0["keySets"] = .array([sets[3]]) },
      "key-set-invalid", number: [2, 1], keySet: 2, leaf: believed)
    registry.version = 2
    try step(
      "part-sets-no-list.json",
      try Self.part(try registry.document()) { $0["keySets"] = .string("2") },
      "key-set-invalid", number: [2, 1], keySet: 2, leaf: believed)
    let genuine = try registry.document()
    registry.denied = [66]
    let tampered = try registry.statement()
    registry.denied = []
    try step(
      "part-tampered.json", try Self.part(genuine) { $0["statement"] = .object(tampered) },
      "statement-invalid", number: [2, 1], keySet: 2, leaf: believed)
    registry.isRetired = true
    try step(
      "part-retired.json", try Self.part(try registry.document()), "incomplete", number: [2, 1],
      keySet: 2, leaf: believed)
    registry.isRetired = false
    registry.extraStatementMembers = [("payloadDigest", .string("?"))]
    try step(
      "part-no-digest.json", try Self.part(try registry.document()), "statement-invalid",
      number: [2, 1], keySet: 2, leaf: believed)
    registry.extraStatementMembers = []
    registry.pins = [("a.example", 2)]
    let other = [UInt8](registry.payload.utf8)
    registry.pins = [("a.example", 3)]
    let moved = try Self.part(try registry.document())
    try step(
      "part-other-payload.json", moved, "incomplete", number: [2, 1], keySet: 2, leaf: believed)
    documents["payload-2.json"] = other
    documents["payload-3.json"] = [UInt8](registry.payload.utf8)
    try step(
      "part-other-payload.json", moved, "other-payload", number: [2, 1], keySet: 2,
      leaf: believed, payload: "payload-2.json")
    try step(
      "part-other-payload.json", moved, "accepted", number: [2, 2], keySet: 2,
      leaf: ["a.example": [3]], payload: "payload-3.json")
    registry.version = 1
    try step(
      "part-older.json", try Self.part(try registry.document()), "rolled-back", number: [2, 2],
      keySet: 2, leaf: ["a.example": [3]])

    begin("a statement part is no first document")
    try step("part-other-payload.json", moved, "incomplete", number: nil, leaf: [:])
    try step(
      "part-other-payload.json", moved, "incomplete", number: nil, leaf: [:],
      payload: "payload-3.json")
    try step(
      "rules-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: ["a.example": [1]])
  }

  private mutating func fillHanded() throws {
    let genuine = try epochOne()
    let first = try genuine.document()
    let leaf: Leaf = ["a.example": [1]]
    let format1 = try #require(documents["format1.json"])
    begin("a document that was handed over is judged like any other, and has a statement")
    try step("rules-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    var registry = genuine
    (registry.version, registry.denied) = (2, [8])
    let second = try registry.document()
    for _ in 1...2 {
      try step(
        "handed-2.json", second, "accepted", number: [1, 2], keySet: 1, leaf: leaf, denied: [8],
        handed: true)
    }
    var other = registry
    (other.name, other.version) = ("other.json", 3)
    let statement = try registry.statement()
    registry.version = 3
    for (file, bytes, outcome) in [
      ("rules-1.json", first, "rolled-back"),
      ("format1.json", format1, "statement-required"),
      ("twice.json", try #require(documents["twice.json"]), "malformed"),
      ("handed-other-registry.json", try other.document(), "statement-invalid"),
      (
        "handed-tampered.json",
        try registry.document(registry.statement(), registry.signatures(over: statement)),
        "statement-invalid"
      ),
    ] {
      try step(
        file, bytes, outcome, number: [1, 2], keySet: 1, leaf: leaf, denied: [8], handed: true)
    }
    registry.denied = []
    try step(
      "handed-part.json", try Self.part(try registry.document()), "accepted", number: [1, 3],
      keySet: 1, leaf: leaf, denied: [], handed: true)

    begin("who believes nothing takes no document by hand, unless the app ships a minimum")
    try step("rules-1.json", first, "minimum-required", number: nil, leaf: [:], handed: true)
    try step("rules-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    try step(
      "handed-2.json", second, "accepted", number: [1, 2], keySet: 1, leaf: leaf, handed: true)
    begin("nor does who believes a list without a statement")
    try step("format1.json", format1, "accepted", number: nil, leaf: leaf)
    try step("format1.json", format1, "statement-required", number: nil, leaf: leaf, handed: true)
    try step("rules-1.json", first, "minimum-required", number: nil, leaf: leaf, handed: true)
    begin(
      "a first document by hand, under a minimum",
      .init(minimum: .init(epoch: 1, issued: Self.start)))
    try step("format1.json", format1, "statement-required", number: nil, leaf: [:], handed: true)
    let old = try #require(documents["minimum-older-epoch.json"])
    try step(
      "minimum-older-epoch.json", old, "rolled-back", number: nil, leaf: [:], handed: true)
    try step(
      "rules-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: leaf, handed: true)
  }

  private mutating func fillMirrors() throws {
    let list = [
      "https://mirror.example/registry/example.json", "https://mirror.example:65535/x",
      "https://192.0.2.1:1/x", "https://[2001:db8::1]/x", "https://[2001:db8::1]:8443/x/",
      "https://MIRROR.example./%2F;a=b,c", "https://m_1.example//", "https://m/x",
    ]
    let leaf: Leaf = ["a.example": [1]]
    begin("mirrors count while their statement is in force")
    var registry = try epochOne()
    registry.extraStatementMembers = [("mirrors", .array(list.map(JSONValue.string)))]
    try step(
      "mirrors.json", try registry.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf,
      mirrors: list)
    registry.version = 2
    registry.extraStatementMembers = [
      ("mirrors", .array((list + ["https://ninth.example/x"]).map(JSONValue.string)))
    ]
    try step(
      "mirrors-nine.json", try registry.document(), "statement-invalid", number: [1, 1],
      keySet: 1, leaf: leaf, mirrors: list)
    var next = registry
    next.extraStatementMembers = []
    try next.beginEpoch(online: 4)
    try step(
      "mirrors-next-epoch.json", try next.document(), "accepted", number: [2, 1], keySet: 2,
      leaf: leaf, mirrors: [])

    begin("a retired statement names no mirrors that count")
    registry.isRetired = true
    registry.extraStatementMembers = [("mirrors", .array([.string(list[0])]))]
    try step(
      "mirrors-retired.json", try registry.document(), "accepted", number: nil, keySet: 1,
      leaf: leaf, mirrors: [])
  }

  private static func role(
    _ keys: [Int], also others: [JSONValue], threshold: JSONNumber = 1
  ) throws -> JSONValue {
    .object([
      "keys": .array(try keys.map(AttackScenarioTests.keyJSON)), "threshold": .number(1),
      "also": .object(["keys": .array(others), "threshold": .number(threshold)]),
    ])
  }

  private mutating func fillAlso() throws {
    let leaf: Leaf = ["a.example": [1]]
    let unknown = JSONValue.object(["alg": .string("ML-DSA-65"), "spki": .string("MAA=")])
    let known = try [4, 6].map(AttackScenarioTests.keyJSON)
    let root = try SimulatedKeys.role([0])
    func registry(
      root other: JSONValue? = nil, online: JSONValue? = nil, signedBy: [Int] = [0]
    ) throws -> RegistrySimulator {
      var registry = try Self.simulator()
      try registry.add(
        root: root, online: SimulatedKeys.role([2]), signedBy: signedBy,
        extra: [("root", other), ("online", online)].compactMap { name, role in
          role.map { (name, $0) }
        })
      (registry.epoch, registry.online) = (1, [2])
      return registry
    }
    for (name, file, others) in [
      ("one", "also-unknown.json", [unknown]),
      ("one of two", "also-one-unknown.json", [known[0], unknown]),
    ] {
      begin("an `also` role with \(name) key of an unknown algorithm is read over, online and root")
      let role = try Self.role([2], also: others)
      var registry = try registry(root: try Self.role([0], also: others), online: role)
      try step(
        file, try registry.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf)
      try registry.beginEpoch(online: 8)
      try step(
        "next-\(file)", try registry.document(), "accepted", number: [2, 1], keySet: 2, leaf: leaf)
    }
    begin("an `also` role of known algorithms is asked for its threshold, too")
    var online = try registry(online: try Self.role([2], also: known, threshold: 2))
    for (signers, outcome) in [
      ([2], "statement-invalid"), ([4, 6], "statement-invalid"), ([2, 4], "statement-invalid"),
      ([2, 4, 6], "accepted"),
    ] {
      online.online = signers
      let file = "also-\(signers.map(String.init).joined(separator: "-")).json"
      try step(
        file, try online.document(), outcome, number: outcome == "accepted" ? [1, 1] : nil,
        keySet: 1, leaf: outcome == "accepted" ? leaf : [:])
    }

    begin("a root role with an `also` signs its own set, the next one and a retirement with it")
    let demanding = try Self.role([0], also: [known[0]])
    try step(
      "also-root-unmet.json", try registry(root: demanding).document(), "key-set-invalid",
      number: nil, leaf: [:])
    let good = try registry(root: demanding, signedBy: [0, 4])
    try step(
      "also-root.json", try good.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    for (file, signers, outcome) in [
      ("also-retired-unmet.json", [0], "statement-invalid"),
      ("also-retired.json", [0, 4], "accepted"),
    ] {
      var retired = good
      (retired.version, retired.isRetired, retired.root) = (2, true, signers)
      try step(
        file, try retired.document(), outcome, number: outcome == "accepted" ? nil : [1, 1],
        keySet: 1, leaf: leaf)
    }
    for (file, signers, outcome) in [
      ("also-next-unmet.json", [0], "key-set-invalid"), ("also-next.json", [0, 4], "accepted"),
    ] {
      var next = good
      try next.add(root: root, online: SimulatedKeys.role([8]), signedBy: signers)
      (next.epoch, next.online) = (2, [8])
      let isBelieved = outcome == "accepted"
      try step(
        file, try next.document(), outcome, number: isBelieved ? [2, 1] : nil,
        keySet: isBelieved ? 2 : 1, leaf: leaf)
    }

    begin(
      "an app that ships a root finds it in a set that asks for an `also`, if that one is met",
      .init(rootKeys: ["4.pub.pem"]))
    for (file, signers) in [("also-jump-unmet.json", [0, 4]), ("also-jump.json", [0, 4, 6])] {
      var jumped = try registry()
      try jumped.add(
        root: SimulatedKeys.role([4]), online: SimulatedKeys.role([8]), signedBy: signers,
        extra: [("root", try Self.role([4], also: [known[1]]))])
      (jumped.epoch, jumped.online) = (2, [8])
      let isBelieved = signers.count == 3
      try step(
        file, try jumped.document(), isBelieved ? "accepted" : "key-set-invalid",
        number: isBelieved ? [2, 1] : nil, keySet: isBelieved ? 2 : 0,
        leaf: isBelieved ? leaf : [:])
    }
  }
}
