import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import Testing

extension RegistryVectorBook {
  mutating func fillTimes() throws {
    var registry = try Self.simulator()
    let end = registry.issued + registry.lifetime
    begin("a statement is refused from the second of its expiry on")
    try step(
      "ed25519.json", try registry.document(), "accepted", at: end - 1, number: [0, 1],
      leaf: ["a.example": [1]])
    registry.version = 2
    try step(
      "ed25519-2.json", try registry.document(), "statement-expired", at: end, number: [0, 1],
      leaf: ["a.example": [1]])
    begin("an active pin never expires before its statement, a dead one is not revived")
    registry = try Self.simulator()
    registry.entryMembers = ",\"expire\":\(registry.issued)"
    try step(
      "active-pin.json", try registry.document(), "accepted", at: end - 1, number: [0, 1],
      leaf: ["a.example": [1]])
    registry.version = 2
    registry.entryMembers = ",\"expire\":\(registry.issued - 27 * 3600)"
    try step(
      "dead-pin.json", try registry.document(), "accepted", number: [0, 2],
      leaf: ["a.example": []])
    begin("issued in the future: that time counts until a newer version lowers it")
    registry = try Self.simulator()
    registry.issued = Self.start + 200 * Self.day
    try step(
      "future.json", try registry.document(), "accepted", number: [0, 1], leaf: ["a.example": [1]])
    registry.version = 2
    registry.issued = Self.start
    try step(
      "future-2.json", try registry.document(), "accepted", number: [0, 2],
      leaf: ["a.example": [1]])
  }

  mutating func fillKeySets() throws {
    begin("an online key of its own, then a root of two keys")
    var registry = try Self.simulator()
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([1]), signedBy: [0])
    (registry.epoch, registry.online) = (1, [1])
    try step(
      "first.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [1]])
    try registry.add(
      root: SimulatedKeys.role([2, 3, 4], threshold: 2), online: SimulatedKeys.role([5]),
      signedBy: [0, 2, 4])
    (registry.epoch, registry.online) = (2, [5])
    let second = registry
    try step(
      "second.json", try registry.document(), "accepted", number: [2, 1], keySet: 2,
      leaf: ["a.example": [1]])
    for (file, signers) in [
      ("one-of-two.json", [2, 6]), ("old-root-only.json", [2, 3]), ("new-root-only.json", [6, 0]),
    ] {
      var bad = second
      try bad.add(
        root: SimulatedKeys.role([6]), online: SimulatedKeys.role([7]), signedBy: signers)
      (bad.epoch, bad.online) = (3, [7])
      try step(
        file, try bad.document(), "key-set-invalid", number: [2, 1], keySet: 2,
        leaf: ["a.example": [1]])
    }
    try registry.add(
      root: SimulatedKeys.role([6]), online: SimulatedKeys.role([7]), signedBy: [2, 3, 6])
    (registry.epoch, registry.online) = (3, [5])
    try step(
      "third-old-online.json", try registry.document(), "statement-invalid", number: [2, 1],
      keySet: 3, leaf: ["a.example": [1]])
    var thief = second
    thief.version = 9
    try step(
      "second-withdrawn.json", try thief.document(), "statement-invalid", number: [2, 1],
      keySet: 3, leaf: ["a.example": [1]])
    registry.online = [7]
    let third = try registry.document()
    try step(
      "third.json", third, "accepted", number: [3, 1], keySet: 3, leaf: ["a.example": [1]])
    begin("a client that was away for three rotations")
    try step(
      "third.json", third, "accepted", number: [3, 1], keySet: 3, leaf: ["a.example": [1]])
    begin(
      "an app that ships the root of set 2",
      .init(rootKeys: ["2.pub.pem", "3.pub.pem", "4.pub.pem"], threshold: 2))
    try step(
      "third.json", third, "accepted", number: [3, 1], keySet: 3, leaf: ["a.example": [1]])
    begin(
      "a later root is shipped with a lower threshold than the set has",
      .init(rootKeys: ["2.pub.pem", "3.pub.pem", "4.pub.pem"]))
    try step("third.json", third, "key-set-invalid", number: nil, leaf: [:])

    begin("a burnt counter is healed by a new epoch")
    registry = try Self.simulator()
    try registry.beginEpoch(online: 1)
    registry.version = JSONNumber.greatestInteger
    registry.issued = Self.start + 4000 * Self.day
    try step(
      "burnt.json", try registry.document(), "accepted",
      number: [1, JSONNumber.greatestInteger], keySet: 1, leaf: ["a.example": [1]])
    registry.issued = Self.start
    try registry.beginEpoch(online: 3)
    try step(
      "healed.json", try registry.document(), "accepted", number: [2, 1], keySet: 2,
      leaf: ["a.example": [1]])

    begin("an expired key set accepts nothing, and does not stop its successor")
    registry = try Self.simulator()
    try registry.beginEpoch(online: 1, expires: Self.start + 5)
    try step(
      "key-set-expires.json", try registry.document(), "accepted", at: Self.start + 4,
      number: [1, 1], keySet: 1, leaf: ["a.example": [1]])
    registry.version = 2
    try step(
      "key-set-expires-2.json", try registry.document(), "key-set-expired", at: Self.start + 5,
      number: [1, 1], keySet: 1, leaf: ["a.example": [1]])
    try registry.beginEpoch(online: 3)
    try step(
      "key-set-successor.json", try registry.document(), "accepted", at: Self.start + 5,
      number: [2, 1], keySet: 2, leaf: ["a.example": [1]])

    begin("an algorithm that is not known verifies nothing and harms nothing")
    registry = try Self.simulator()
    let future = try RoleKey(
      algorithm: "ML-DSA-44", spki: [0x30, 0], crypto: PlatformCrypto.shared)
    try registry.add(
      root: SimulatedKeys.role([0]),
      online: KeyRole(keys: [future, try SimulatedKeys.roleKey(1)], threshold: 1), signedBy: [0])
    (registry.epoch, registry.online) = (1, [1])
    try step(
      "unknown-algorithm.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [1]])
    begin("a set with one key twice, and one with a threshold that cannot be reached")
    registry = try Self.simulator()
    for (file, keys, threshold) in [
      ("key-twice.json", [1, 1], JSONNumber(1)), ("unreachable.json", [1, 3], 3),
      ("no-threshold.json", [1, 3], 0),
    ] as [(String, [Int], JSONNumber)] {
      let role = JSONValue.object([
        "keys": .array(try keys.map(AttackScenarioTests.keyJSON)), "threshold": .number(threshold),
      ])
      registry.keySets = [try AttackScenarioTests.keySet(online: role)]
      (registry.epoch, registry.online) = (1, [1, 3])
      try step(file, try registry.document(), "key-set-invalid", number: nil, leaf: [:])
    }
  }

  mutating func fillHosts() throws {
    begin("a host that vanishes keeps its pins until the statement removes it")
    var registry = try Self.simulator()
    registry.pins = [("a.example", 1), ("b.example", 2)]
    try step(
      "two-hosts.json", try registry.document(), "accepted", number: [0, 1],
      leaf: ["a.example": [1], "b.example": [2]])
    registry.version = 2
    registry.issued = Self.start + 89 * Self.day
    registry.pins.removeLast()
    try step(
      "one-host.json", try registry.document(), "accepted", at: registry.issued, number: [0, 2],
      leaf: ["a.example": [1], "b.example": [2]])
    registry.version = 3
    registry.removed = ["b.example"]
    try step(
      "removed.json", try registry.document(), "accepted", at: registry.issued, number: [0, 3],
      leaf: ["a.example": [1], "b.example": nil])
    begin("what only a withdrawn online key listed goes with it")
    registry = try Self.simulator()
    try registry.beginEpoch(online: 1)
    registry.pins = [("a.example", 1), ("**.example", 66)]
    try step(
      "stolen.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [1, 66], "b.example": [66]])
    try registry.beginEpoch(online: 3)
    registry.pins = [("a.example", 1)]
    try step(
      "recovered.json", try registry.document(), "accepted", number: [2, 1], keySet: 2,
      leaf: ["a.example": [1], "b.example": nil])
    begin("CA pins come from the statement")
    registry = try Self.simulator()
    registry.hosts = [HostSettings(try HostPattern("a.example"), ca: [.test(90), .test(91)])]
    try step(
      "ca.json", try registry.document(), "accepted", number: [0, 1], leaf: ["a.example": [1]],
      ca: ["a.example": [90, 91]])
  }
}
