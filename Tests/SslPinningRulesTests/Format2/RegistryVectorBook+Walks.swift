import CanonicalJSON
import SslPinningRules
import Testing

/// Where a walk along key sets begins and what it passes over, registries that are retired twice, and
/// clocks that are wrong. Ed25519 and RS512 alone.
extension RegistryVectorBook {
  mutating func fillWalks() throws {
    try fillJumps()
    try fillBelievedSets()
    try fillSecondRetirement()
    try fillClocks()
    try fillTables()
  }

  private mutating func fillJumps() throws {
    let leaf: Leaf = ["a.example": [1]]
    func jumping(over first: JSONValue) throws -> RegistrySimulator {
      var registry = try Self.simulator()
      registry.keySets = [first]
      try registry.add(
        root: SimulatedKeys.role([4]), online: SimulatedKeys.role([2]), signedBy: [4])
      (registry.epoch, registry.online) = (2, [2])
      return registry
    }
    begin(
      "a jump passes over entries at fault in front, and stops at those behind",
      .init(rootKeys: ["4.pub.pem"]))
    let good = try jumping(over: .null)
    var behind = good
    try behind.add(
      root: SimulatedKeys.role([6]), online: SimulatedKeys.role([6]), signedBy: [6])
    (behind.epoch, behind.online) = (3, [6])
    try step(
      "jump-behind.json", try behind.document(), "key-set-invalid", number: nil, keySet: 2,
      leaf: [:])
    try step(
      "jump-front.json", try good.document(), "accepted", number: [2, 1], keySet: 2, leaf: leaf)

    begin("a jump passes over a set of another registry", .init(rootKeys: ["4.pub.pem"]))
    var other = try Self.simulator()
    other.name = "other.json"
    try other.add(
      root: SimulatedKeys.role([4]), online: SimulatedKeys.role([6]), signedBy: [4])
    var alone = try Self.simulator()
    (alone.keySets, alone.epoch, alone.online) = (other.keySets, 1, [6])
    try step(
      "jump-other-registry-alone.json", try alone.document(), "key-set-invalid", number: nil,
      leaf: [:])
    try step(
      "jump-other-registry.json", try jumping(over: other.keySets[0]).document(), "accepted",
      number: [2, 1], keySet: 2, leaf: leaf)

    begin("a set at the wrong place in the list is none", .init(rootKeys: ["4.pub.pem"]))
    var displaced = good
    displaced.keySets.insert(.null, at: 0)
    try step(
      "jump-displaced.json", try displaced.document(), "key-set-invalid", number: nil, leaf: [:])

    begin("who believes a key set does not jump")
    var walked = try Self.simulator()
    try walked.beginEpoch(online: 2)
    try step(
      "rules-1.json", try walked.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    var jumper = try Self.simulator()
    jumper.keySets = [.null]
    try jumper.beginEpoch(online: 8)
    try step(
      "jump-no-more.json", try jumper.document(), "key-set-invalid", number: [1, 1], keySet: 1,
      leaf: leaf)
  }

  private mutating func fillBelievedSets() throws {
    let leaf: Leaf = ["a.example": [1]]
    begin("a list of key sets that is shorter than what is believed takes nothing back")
    let first = try epochOne()
    var registry = first
    try registry.beginEpoch(online: 4)
    let sets = registry.keySets
    try step(
      "rules-2.json", try registry.document(), "accepted", number: [2, 1], keySet: 2, leaf: leaf)
    for (version, file, list) in [
      (2, "sets-one.json", [sets[0]]), (3, "sets-none.json", []),
    ] as [(Int64, String, [JSONValue])] {
      (registry.version, registry.keySets) = (version, list)
      try step(
        file, try registry.document(), "accepted", number: [2, version], keySet: 2, leaf: leaf)
    }
    var withdrawn = first
    withdrawn.version = 9
    try step(
      "sets-withdrawn.json", try withdrawn.document(), "statement-invalid", number: [2, 3],
      keySet: 2, leaf: leaf)

    begin("the signatures of a key set that is believed are not looked at again")
    registry = first
    try step(
      "rules-1.json", try registry.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    let set = try #require(first.keySets[0].objectValue?["keySet"])
    for (version, file, signatures) in [
      (2, "sets-no-signature.json", .array([])), (3, "sets-malformed-signature.json", .string("x")),
    ] as [(Int64, String, JSONValue)] {
      registry.version = version
      registry.keySets = [.object(["keySet": set, "signatures": signatures])]
      try step(
        file, try registry.document(), "accepted", number: [1, version], keySet: 1, leaf: leaf)
    }
    begin("those of one that is not believed yet are")
    try step(
      "sets-malformed-signature.json", try registry.document(), "key-set-invalid", number: nil,
      leaf: [:])

    begin("another set of an epoch that is believed is a fault")
    try step(
      "rules-1.json", try first.document(), "accepted", number: [1, 1], keySet: 1, leaf: leaf)
    var other = try Self.simulator()
    try other.beginEpoch(online: 6)
    try other.beginEpoch(online: 8)
    try step(
      "sets-other.json", try other.document(), "key-set-invalid", number: [1, 1], keySet: 1,
      leaf: leaf)
  }

  private mutating func fillSecondRetirement() throws {
    begin("a later statement ends a retirement, and another one begins it again")
    var registry = try epochOne()
    registry.pins = [("a.example", 1), ("b.example", 2)]
    registry.isRetired = true
    try step(
      "again-1.json", try registry.document(), "accepted", number: nil, keySet: 1,
      leaf: ["a.example": [1], "b.example": [2]])
    (registry.version, registry.isRetired) = (2, false)
    try step(
      "again-2.json", try registry.document(), "accepted", number: [1, 2], keySet: 1,
      leaf: ["a.example": [1], "b.example": [2]])
    var plain = registry
    plain.isStripped = true
    plain.pins = [("a.example", 3)]
    let stripped = try plain.document()
    try step(
      "again-stripped.json", stripped, "statement-stripped", number: [1, 2], keySet: 1,
      leaf: ["a.example": [1], "b.example": [2]])
    (registry.version, registry.isRetired) = (3, true)
    (registry.pins, registry.removed) = ([("a.example", 1)], ["b.example"])
    registry.hosts = [HostSettings(try HostPattern("a.example"), ca: [.test(90)])]
    let again = try registry.document()
    let leaf: Leaf = ["a.example": [1], "b.example": nil]
    try step(
      "again-3.json", again, "accepted", number: nil, keySet: 1, leaf: leaf,
      ca: ["a.example": [90]])
    try step(
      "again-3.json", again, "accepted", at: Self.start + 500 * Self.day, number: nil, keySet: 1,
      leaf: leaf, ca: ["a.example": [90]])
    try step(
      "again-stripped.json", stripped, "accepted", at: Self.start + 500 * Self.day, number: nil,
      keySet: 1, leaf: ["a.example": [3], "b.example": nil], ca: ["a.example": [90]])
    begin("an expired retirement is no first one")
    try step(
      "again-3.json", again, "statement-expired", at: Self.start + 500 * Self.day, number: nil,
      keySet: 1, leaf: [:])
  }

  private mutating func fillClocks() throws {
    let (start, day) = (Self.start, Self.day)
    let plain = try #require(documents["format1.json"])
    let without = try #require(documents["format1-vanished.json"])
    let (listed, gone): (Leaf, Leaf) = (
      ["a.example": [1], "b.example": [2]], ["a.example": nil, "b.example": [2]]
    )
    begin("a pin counts up to and at 26 hours after its expiry")
    var registry = try Self.simulator()
    (registry.isStripped, registry.entryMembers) = (true, ",\"expire\":\(start)")
    for (seconds, pins) in [(0, [1]), (93_599, [1]), (93_600, [1]), (93_601, [])]
      as [(Int64, [UInt8])]
    {
      try step(
        "expires.json", try registry.document(), "accepted", at: start + seconds, number: nil,
        leaf: ["a.example": pins])
    }
    // When the document without the host comes, and when the clock says what after that.
    for (name, clocks) in [
      ("30 days and not a second longer", [1, 31]), ("from when a client comes back", [40, 70]),
      ("from a clock that was set back", [10, 0, 30]),
    ] as [(String, [Int64])] {
      begin("a host that vanished without a statement stays: \(name)")
      try step("format1.json", plain, "accepted", number: nil, leaf: ["a.example": [1]])
      for days in clocks {
        try step(
          "format1-vanished.json", without, "accepted", at: start + days * day, number: nil,
          leaf: listed)
      }
      try step(
        "format1-vanished.json", without, "accepted", at: start + (clocks.last ?? 0) * day + 1,
        number: nil, leaf: gone)
    }
    begin("the 30 days are the clock's, not those of a retired statement issued far ahead")
    registry = try Self.simulator()
    (registry.issued, registry.isRetired) = (start + 4000 * day, true)
    try step(
      "far-retired.json", try registry.document(), "accepted", number: nil,
      leaf: ["a.example": [1]])
    for (seconds, leaf) in [
      (day, listed), (31 * day, listed), (31 * day + 1, gone),
    ] {
      try step(
        "format1-vanished.json", without, "accepted", at: start + seconds, number: nil, leaf: leaf)
    }
    begin("a pin expires by the later of the clock and the time floor")
    registry = try Self.simulator()
    registry.issued = start + 200 * day
    registry.entryMembers = ",\"expire\":\(start + 100 * day)"
    try step(
      "far-pin.json", try registry.document(), "accepted", number: [0, 1],
      leaf: ["a.example": []])
    (registry.version, registry.issued) = (2, start)
    try step(
      "far-pin-2.json", try registry.document(), "accepted", number: [0, 2],
      leaf: ["a.example": [1]])
  }

  /// The documents that `members.tsv` and `verdicts.json` begin with.
  private mutating func fillTables() throws {
    var registry = try epochOne()
    registry.pins = [("a.example", 1)]
    registry.hosts = [HostSettings(try HostPattern("a.example"), ca: [.test(90)], match: .any)]
    (registry.denied, registry.removed) = ([7], ["b.example"])
    documents["members.json"] = try registry.document()

    registry = try Self.simulator()
    registry.hosts = [HostSettings(try HostPattern("a.example"), enforces: true)]
    documents["enforces.json"] = try registry.document()
    (registry.version, registry.hosts) = (2, [])
    documents["enforces-no-more.json"] = try registry.document()
    try registry.beginEpoch(online: 2)
    documents["enforces-next-epoch.json"] = try registry.document()

    registry = try Self.simulator()
    func entry(_ host: String, _ pin: UInt8, _ members: String = "") -> String {
      SignedDocument.entry(host, pin, members)
    }
    let expired = ",\"expire\":\(Self.start - 27 * 3600)"
    var entries = [
      entry("live.example", 1), entry("expired.example", 1, expired),
      entry("two.example", 1), entry("two.example", 2, expired), entry("two.example", 3),
      entry("*.wild.example", 3), entry("**.wild.example", 4), entry("a.wild.example", 5),
      entry("*.mixed.example", 1), entry("b.any.example", 1), entry("a.report.example", 1),
      entry("enforced.example", 1), entry("critical.example", 1), entry("192.0.2.1", 1),
      entry("2001:db8::1", 2), entry("denied.example", 66),
      "{\"domainName\":\"unreadable.example\",\"key\":\"?\"}",
    ]
    var hosts: [JSONValue] = []
    func host(_ text: String, _ members: JSONObject) {
      var members = members
      members["domainName"] = .string(text)
      hosts.append(.object(members))
    }
    let ca = JSONValue.array([.string(SPKIPin.test(90).base64)])
    for word in ["all", "any"] {
      entries += [
        entry("\(word)-live.example", 1), entry("\(word)-expired.example", 1, expired),
        entry("\(word)-denied.example", 66),
        "{\"domainName\":\"\(word)-unreadable.example\",\"key\":\"?\"}",
      ]
      for kind in ["live", "expired", "denied", "unreadable", "absent"] {
        host("\(word)-\(kind).example", ["ca": ca, "match": .string(word)])
      }
    }
    host("*.mixed.example", ["ca": ca, "match": .string("any")])
    host("**.mixed.example", ["ca": .array([.string(SPKIPin.test(91).base64)])])
    host("*.any.example", ["ca": ca, "match": .string("any")])
    host("**.report.example", ["enforce": .bool(true)])
    host("enforced.example", ["enforce": .bool(true)])
    host("none.example", [:])
    host("critical.example", ["x": .bool(true), "critical": .array([.string("x")])])
    registry.payloadText = "{\"keys\":[" + entries.joined(separator: ",") + "]}"
    registry.denied = [66, 67]
    registry.extraStatementMembers = [("hosts", .array(hosts))]
    documents["verdicts.json"] = try registry.document()
  }
}
