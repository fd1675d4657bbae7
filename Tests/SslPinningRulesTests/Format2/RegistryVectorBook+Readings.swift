import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import Testing

/// Sentences that a reader of the text alone could take in two ways: one case for each. Ed25519 and RS512 alone.
extension RegistryVectorBook {
  mutating func fillReadings() throws {
    try fillMinimumReadings()
    try fillCopies()
    try fillTimeReadings()
    try fillPartReadings()
    try fillRetiredReadings()
    try fillHandedReadings()
    begin("a pin that is denied does not count as one that is listed")
    var registry = try epochOne()
    registry.pins = [("a.example", 1), ("a.example", 2)]
    registry.denied = [1]
    try step(
      "denied-listed.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [2]], denied: [1])
  }

  private mutating func fillMinimumReadings() throws {
    let leaf: Leaf = ["a.example": [1]]
    begin(
      "within an epoch that is believed the numbers count, whatever time the minimum names",
      .init(minimum: .init(epoch: 1, issued: Self.start)))
    var registry = try epochOne()
    for (version, ahead) in [(1, 0), (2, -50), (3, -40)] as [(Int64, Int64)] {
      (registry.version, registry.issued) = (version, Self.start + ahead)
      try step(
        "minimum-met-\(version).json", try registry.document(), "accepted", number: [1, version],
        keySet: 1, leaf: leaf)
    }
  }

  private mutating func fillCopies() throws {
    let both: Leaf = ["a.example": [1], "b.example": [2]]
    var registry = try Self.simulator()
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([2, 4]), signedBy: [0])
    (registry.epoch, registry.online) = (1, [2, 4])
    registry.pins = [("a.example", 1), ("b.example", 2)]
    let whole = try registry.document()
    registry.online = [2]
    let stripped = try registry.document()
    try registry.beginEpoch(online: 4)
    registry.pins = [("a.example", 1)]
    let next = try registry.document()
    begin("of copies of one statement the first stays, with all that vouched for its hosts")
    for (file, bytes) in [("copy-whole.json", whole), ("copy-stripped.json", stripped)] {
      try step(file, bytes, "accepted", number: [1, 1], keySet: 1, leaf: both)
    }
    try step(
      "copy-next.json", next, "accepted", number: [2, 1], keySet: 2, leaf: both)
    begin("of copies of one statement the first stays, with as little as vouched for its hosts")
    for (file, bytes) in [("copy-stripped.json", stripped), ("copy-whole.json", whole)] {
      try step(file, bytes, "accepted", number: [1, 1], keySet: 1, leaf: both)
    }
    try step(
      "copy-next.json", next, "accepted", number: [2, 1], keySet: 2,
      leaf: ["a.example": [1], "b.example": nil])
  }

  private mutating func fillTimeReadings() throws {
    let leaf: Leaf = ["a.example": [1]]
    let end = Self.start + 10 * Self.day
    begin("a retired statement of a time to come ends no pin beside it")
    var registry = try epochOne()
    registry.entryMembers = ",\"expire\":\(end)"
    (registry.isRetired, registry.issued) = (true, Self.start + 4000 * Self.day)
    try step(
      "retired-ahead.json", try registry.document(), "accepted", number: nil, keySet: 1, leaf: leaf)
    try step(
      "retired-ahead.json", try registry.document(), "accepted", at: end + 93_601, number: nil,
      keySet: 1, leaf: ["a.example": []])

    begin(
      "while a retired statement is in force, pins of hosts that vanished end at their own time")
    registry = try epochOne()
    registry.entryMembers = ",\"expire\":\(end)"
    registry.pins = [("a.example", 1), ("b.example", 2)]
    let late = end + 93_601
    for clock in [Self.start, late] {
      try step(
        "retired-vanished-1.json", try registry.document(), "accepted", at: clock, number: [1, 1],
        keySet: 1, leaf: ["a.example": [1], "b.example": [2]])
    }
    (registry.version, registry.isRetired, registry.entryMembers) = (2, true, "")
    registry.pins = [("a.example", 1)]
    try step(
      "retired-vanished-2.json", try registry.document(), "accepted", at: late, number: nil,
      keySet: 1, leaf: ["a.example": [1], "b.example": []])

    begin("the 30 days of a host that vanished are over with a document, not with a restart")
    registry = try Self.simulator()
    registry.isStripped = true
    registry.pins = [("a.example", 1), ("b.example", 2)]
    let first = try registry.document()
    registry.pins = [("a.example", 1)]
    let second = try registry.document()
    let over = Self.start + 30 * Self.day + 1
    try step(
      "thirty-1.json", first, "accepted", number: nil, leaf: ["a.example": [1], "b.example": [2]])
    try step(
      "thirty-2.json", second, "accepted", number: nil, leaf: ["a.example": [1], "b.example": [2]])
    try step(
      "twice.json", try #require(documents["twice.json"]), "malformed", at: over, number: nil,
      leaf: ["a.example": [1], "b.example": [2]])
    try step(
      "thirty-2.json", second, "accepted", at: over, number: nil,
      leaf: ["a.example": [1], "b.example": nil])
  }

  private mutating func fillPartReadings() throws {
    let leaf: Leaf = ["a.example": [1]]
    begin("a part is completed by a list of format 1, and handed over needs a minimum even so")
    let registry = try epochOne()
    let part = try Self.part(try registry.document())
    try step(
      "format1.json", try #require(documents["format1.json"]), "accepted", number: nil, leaf: leaf)
    try step("part-first.json", part, "minimum-required", number: nil, leaf: leaf, handed: true)
    try step("part-first.json", part, "accepted", number: [1, 1], keySet: 1, leaf: leaf)

    begin("the payload that is believed comes before one that stands elsewhere")
    try step(
      "rules-1.json", try registry.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    var next = registry
    (next.version, next.denied) = (2, [9])
    try step(
      "part-held.json", try Self.part(try next.document()), "accepted", number: [1, 2], keySet: 1,
      leaf: leaf, denied: [9], payload: "payload-2.json")

    begin(
      "after a jump, a part is completed with the entries in front", .init(rootKeys: ["4.pub.pem"]))
    var jumping = try Self.simulator()
    jumping.keySets = [.null]
    try jumping.add(root: SimulatedKeys.role([4]), online: SimulatedKeys.role([2]), signedBy: [4])
    (jumping.epoch, jumping.online) = (2, [2])
    try step(
      "jump-front.json", try jumping.document(), "accepted", number: [2, 1], keySet: 2, leaf: leaf)
    try jumping.add(root: SimulatedKeys.role([4]), online: SimulatedKeys.role([6]), signedBy: [4])
    (jumping.epoch, jumping.online) = (3, [6])
    let sets = jumping.keySets
    try step(
      "jump-part.json",
      try Self.part(try jumping.document()) { $0["keySets"] = .array(Array(sets[1...])) },
      "accepted", number: [3, 1], keySet: 3, leaf: leaf)
  }

  private mutating func fillRetiredReadings() throws {
    let both: Leaf = ["a.example": [1], "b.example": [2]]
    begin("a retired statement may be the first of an epoch, and keeps no more than another one")
    var first = try epochOne()
    first.pins = [("a.example", 1), ("b.example", 2)]
    let listed = try first.document()
    try step("both-1.json", listed, "accepted", number: [1, 1], keySet: 1, leaf: both)
    var next = first
    try next.beginEpoch(online: 4)
    (next.pins, next.isRetired) = ([("a.example", 1)], true)
    try step(
      "retired-next-epoch.json", try next.document(), "accepted", number: nil, keySet: 2,
      leaf: ["a.example": [1], "b.example": nil])

    let over = Self.start + 30 * Self.day + 1
    let gone: Leaf = ["a.example": [1], "b.example": nil]
    begin("the 30 days run where the newest document has a retired statement")
    try step("both-1.json", listed, "accepted", number: [1, 1], keySet: 1, leaf: both)
    var retired = first
    (retired.version, retired.isRetired, retired.pins) = (2, true, [("a.example", 1)])
    let without = try retired.document()
    for (clock, leaf) in [(Self.start, both), (over - 1, both), (over, gone)] {
      try step(
        "thirty-retired.json", without, "accepted", at: clock, number: nil, keySet: 1, leaf: leaf)
    }

    begin("the 30 days run where the document that listed the host last had a retired statement")
    retired.pins = first.pins
    try step("both-1.json", listed, "accepted", number: [1, 1], keySet: 1, leaf: both)
    try step(
      "both-retired.json", try retired.document(), "accepted", number: nil, keySet: 1, leaf: both)
    var ended = first
    (ended.version, ended.pins) = (3, [("a.example", 1)])
    let last = try ended.document()
    for (clock, leaf) in [(Self.start, both), (over - 1, both), (over, gone)] {
      try step(
        "thirty-last.json", last, "accepted", at: clock, number: [1, 3], keySet: 1, leaf: leaf)
    }

    begin("CA pins of a retired statement are readable pins, and `keys` is a list")
    var bare = try epochOne()
    bare.payloadText = "{\"keys\":[]}"
    try step(
      "no-keys.json", try bare.document(), "no-usable-key", number: nil, keySet: 1, leaf: [:])
    bare.isRetired = true
    try step(
      "no-keys-retired.json", try bare.document(), "no-usable-key", number: nil, keySet: 1,
      leaf: [:])
    bare.hosts = [HostSettings(try HostPattern("a.example"), ca: [.test(7)])]
    bare.isRetired = false
    try step(
      "ca-only.json", try bare.document(), "accepted", number: [1, 1], keySet: 1, leaf: [:],
      ca: ["a.example": [7]])
    bare.version = 2
    bare.isRetired = true
    try step(
      "ca-only-retired.json", try bare.document(), "accepted", number: nil, keySet: 1, leaf: [:],
      ca: ["a.example": [7]])
    begin("`keys` is a list")
    for (number, keys) in ["{}", "null", "\"a.example\"", "1"].enumerated() {
      bare.payloadText = "{\"keys\":\(keys)}"
      for isRetired in [false, true] {
        bare.isRetired = isRetired
        try step(
          "keys-\(number)\(isRetired ? "-retired" : "").json", try bare.document(), "malformed",
          number: nil, keySet: 1, leaf: [:])
      }
    }
    bare.payloadText = "{}"
    try step(
      "keys-missing.json", try bare.document(), "malformed", number: nil, keySet: 1, leaf: [:])
  }

  private mutating func fillHandedReadings() throws {
    let registry = try epochOne()
    let leaf: Leaf = ["a.example": [1]]
    begin(
      "what is handed over is read and completed first, and then needs a statement and a minimum")
    let list = try JSONValue(parsing: try registry.document()).objectValue
    var damaged = try #require(list)
    damaged["payload"] = .array([])
    let bad = JSONValue.object(damaged).canonicalBytes
    for (file, bytes, outcome) in [
      ("handed-empty.json", [UInt8]("{}".utf8), "malformed"),
      ("handed-no-object.json", [UInt8]("[]".utf8), "malformed"),
      ("handed-payload-list.json", bad, "malformed"),
      ("part-first.json", try Self.part(try registry.document()), "incomplete"),
    ] {
      try step(file, bytes, outcome, number: nil, leaf: [:], handed: true)
    }
    try step(
      "rules-1.json", try registry.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    var retired = registry
    (retired.version, retired.isRetired) = (2, true)
    try retired.beginEpoch(online: 4)
    begin("a retired list that is handed over changes nothing, its key sets too")
    try step(
      "rules-1.json", try registry.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    try step(
      "handed-retired.json", try retired.document(), "statement-required", number: [1, 1],
      keySet: 1, leaf: leaf, handed: true)
  }
}
