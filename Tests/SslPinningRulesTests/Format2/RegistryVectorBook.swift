import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

/// The cases of `Vectors/registry`, put together step by step.
struct RegistryVectorBook {
  typealias Leaf = [String: [UInt8]?]
  static let start = RegistrySimulator.start
  static let day = RegistrySimulator.day

  var cases: [RegistryVector] = []
  var documents: [String: [UInt8]] = [:]

  /// Begins a case; `step` goes on with it.
  mutating func begin(_ name: String, _ trust: RegistryVector.Trust = .init()) {
    cases.append(RegistryVector(name: name, trust: trust, steps: []))
  }

  mutating func step(
    _ file: String, _ bytes: [UInt8], _ outcome: String, at clock: Int64 = start,
    number: [Int64]?, keySet: Int64 = 0, leaf: Leaf, ca: [String: [UInt8]]? = nil,
    denied: [UInt8]? = nil, refused: [String]? = nil, usable: [String]? = nil,
    payload: String? = nil, handed: Bool? = nil, mirrors: [String]? = nil
  ) throws {
    documents[file] = bytes
    func text(_ pins: [UInt8]) -> [String] { pins.map { SPKIPin.test($0).base64 } }
    let step = RegistryVector.Step(
      document: file, payload: payload, handed: handed, clock: clock, outcome: outcome,
      number: number, keySet: keySet,
      leaf: leaf.mapValues { $0.map(text) }, ca: ca?.mapValues(text), denied: denied.map(text),
      mirrors: mirrors, refused: refused, usable: usable)
    try #require(!cases.isEmpty)
    cases[cases.count - 1].steps.append(step)
  }

  mutating func fill() throws {
    try fillFormat1()
    try fillStatements()
    try fillTimes()
    try fillKeySets()
    try fillHosts()
    try fillRecovery()
    try fillRules()
    try fillRoads()
    try fillWalks()
    try fillReadings()
  }

  static func simulator() throws -> RegistrySimulator {
    var registry = RegistrySimulator()
    registry.format1Key = try SigningKey(file: SimulatedKeys.file("rsa.pem"))
    return registry
  }

  mutating func fillFormat1() throws {
    var registry = try Self.simulator()
    registry.isStripped = true
    let plain = try registry.document()
    begin("a document of format 1 alone")
    try step(
      "format1.json", plain, "accepted", number: nil, leaf: ["a.example": [1], "b.example": nil])
    registry.pins = [("b.example", 2)]
    let vanished = try registry.document()
    try step(
      "format1-vanished.json", vanished, "accepted", at: Self.start + Self.day, number: nil,
      leaf: ["a.example": [1], "b.example": [2]])
    try step(
      "format1-vanished.json", vanished, "accepted", at: Self.start + 31 * Self.day + 1,
      number: nil,
      leaf: ["a.example": nil, "b.example": [2]])
    let changed = String(decoding: plain, as: UTF8.self).replacing("a.example", with: "c.example")
    try step(
      "format1-changed.json", [UInt8](changed.utf8), "bad-signature",
      at: Self.start + 31 * Self.day + 1, number: nil, leaf: ["b.example": [2], "c.example": nil])
    begin("a statement is required", .init(requireStatement: true))
    try step("format1.json", plain, "statement-required", number: nil, leaf: [:])
    begin("the app ships no key of format 1", .init(signingKey: nil))
    try step("format1.json", plain, "no-format-1-key", number: nil, leaf: [:])
    begin("a member stands twice")
    let twice = String(decoding: plain, as: UTF8.self)
      .replacing("{\"payload\":", with: "{\"payload\":{\"keys\":[]},\"payload\":")
    try step("twice.json", [UInt8](twice.utf8), "malformed", number: nil, leaf: [:])
    begin("a list without a usable key")
    registry.pins = []
    try step("empty.json", try registry.document(), "no-usable-key", number: nil, leaf: [:])
  }

  mutating func fillStatements() throws {
    var registry = try Self.simulator()
    registry.epoch = 0
    let message = { (json: JSONObject) in DocumentSignature.Domain.statement.bytes(over: json) }
    let rsa = try TrustSigningKey(file: SimulatedKeys.file("rsa.pem"))
    let id = rsa.roleKey.id
    func signed(_ registry: RegistrySimulator) throws -> [UInt8] {
      let statement = try registry.statement()
      return try registry.document(
        statement, [DocumentSignature(by: id, try rsa.sign(message(statement)))])
    }
    begin(
      "one RSA key for everything: statements of epoch 0 count up and never back",
      .init(rootKeys: ["rsa.pub.pem"]))
    registry.version = 2
    try step(
      "rsa-2.json", try signed(registry), "accepted", number: [0, 2], leaf: ["a.example": [1]])
    var conflict = registry
    conflict.pins = [("a.example", 66)]
    try step(
      "rsa-2-other.json", try signed(conflict), "statement-invalid", number: [0, 2],
      leaf: ["a.example": [1]])
    registry.version = 1
    try step(
      "rsa-1.json", try signed(registry), "rolled-back", number: [0, 2], leaf: ["a.example": [1]])
    registry.isStripped = true
    try step(
      "rsa-stripped.json", try registry.document(), "statement-stripped", number: [0, 2],
      leaf: ["a.example": [1]])
    registry.isStripped = false
    registry.version = 3
    let statement = try registry.statement()
    registry.pins = [("a.example", 66)]
    try step(
      "rsa-3-other-payload.json",
      try registry.document(
        statement, [DocumentSignature(by: id, try rsa.sign(message(statement)))]),
      "other-payload", number: [0, 2], leaf: ["a.example": [1]])
    registry.pins = [("a.example", 3)]
    registry.denied = [7]
    try step(
      "rsa-3.json", try signed(registry), "accepted", number: [0, 3], leaf: ["a.example": [3]],
      denied: [7])

    begin("statements that are not for this client")
    registry = try Self.simulator()
    try step(
      "ed25519.json", try registry.document(), "accepted", number: [0, 1], leaf: ["a.example": [1]])
    for (file, change) in [
      ("other-registry.json", { (r: inout RegistrySimulator) in r.name = "other.json" }),
      ("other-type.json", { $0.extraStatementMembers = [("type", .string("keyset"))] }),
      ("half-readable.json", { $0.extraStatementMembers = [("denied", .array([.string("?")]))] }),
      (
        "too-great.json",
        {
          $0.extraStatementMembers = [("version", .number(JSONNumber(Double(1 << 53)) ?? 0))]
        }
      ),
      ("unsigned.json", { $0.online = [] }), ("other-key.json", { $0.online = [2] }),
      ("signs-twice.json", { $0.online = [0, 0] }),
    ] as [(String, (inout RegistrySimulator) -> Void)] {
      var bad = registry
      bad.version = 2
      change(&bad)
      try step(
        file, try bad.document(), "statement-invalid", number: [0, 1], leaf: ["a.example": [1]])
    }
    registry.version = 2
    registry.online = [5, 0]
    registry.extraStatementMembers = [("x", .object(["é": .array([.null])]))]
    try step(
      "unknown-members.json", try registry.document(), "accepted", number: [0, 2],
      leaf: ["a.example": [1]])

    begin("the format-1 signature beside a statement is not looked at")
    registry.format1Key = nil
    try step(
      "wrong-format1-signature.json", try registry.document(), "accepted", number: [0, 2],
      leaf: ["a.example": [1]])

    begin("a retired statement opens the way back to format 1")
    registry = try Self.simulator()
    try step(
      "ed25519.json", try registry.document(), "accepted", number: [0, 1], leaf: ["a.example": [1]])
    registry.version = 2
    registry.isRetired = true
    try step(
      "retired.json", try registry.document(), "accepted", number: nil, leaf: ["a.example": [1]])
    registry.isStripped = true
    registry.pins = [("a.example", 4)]
    try step(
      "retired-format1.json", try registry.document(), "accepted", at: Self.start + 500 * Self.day,
      number: nil, leaf: ["a.example": [4]])
  }
}
