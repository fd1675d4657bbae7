import SslPinningRules
import TLSTools

extension RegistryVectorBook {
  /// What a thief listed ends with the first statement of an epoch, and at the first of all.
  mutating func fillRecovery() throws {
    var genuine = try Self.simulator()
    try genuine.beginEpoch(online: 1)
    let first = try genuine.document()
    var next = genuine
    try next.beginEpoch(online: 2)
    let second = try next.document()
    let unlisted: Leaf = ["a.example": [1], "evil.example": nil]

    begin("what a stolen online key retired and pinned ends with the next epoch")
    try step(
      "recovery-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: unlisted)
    var thief = genuine
    (thief.version, thief.isRetired) = (2, true)
    thief.hosts = [HostSettings(try HostPattern("**.example"), ca: [.test(66)])]
    try step(
      "recovery-retired.json", try thief.document(), "accepted", number: nil, keySet: 1,
      leaf: ["a.example": [1], "evil.example": []],
      ca: ["a.example": [66], "evil.example": [66]])
    try step(
      "recovery-2.json", second, "accepted", number: [2, 1], keySet: 2, leaf: unlisted,
      ca: ["a.example": []])

    begin("the same with a date far ahead, and the pattern dropped again")
    try step(
      "recovery-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: unlisted)
    thief.issued += 4000 * Self.day
    try step(
      "recovery-retired-ahead.json", try thief.document(), "accepted", number: nil, keySet: 1,
      leaf: ["a.example": [1], "evil.example": []], ca: ["a.example": [66]])
    (thief.version, thief.hosts) = (3, [])
    try step(
      "recovery-retired-dropped.json", try thief.document(), "accepted", number: nil, keySet: 1,
      leaf: ["a.example": [1], "evil.example": []],
      ca: ["a.example": [], "evil.example": [66]])
    try step(
      "recovery-2.json", second, "accepted", number: [2, 1], keySet: 2, leaf: unlisted,
      ca: ["a.example": []])

    begin("what the key of format 1 listed beside a retired statement ends with the next epoch")
    try step(
      "recovery-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: unlisted)
    thief = genuine
    (thief.version, thief.isRetired) = (2, true)
    thief.pins = [("a.example", 1), ("**.example", 66)]
    try step(
      "recovery-retired-list.json", try thief.document(), "accepted", number: nil, keySet: 1,
      leaf: ["a.example": [1, 66], "evil.example": [66]])
    try step(
      "recovery-2.json", second, "accepted", number: [2, 1], keySet: 2, leaf: unlisted)

    begin("what a stripped list said ends with the first statement")
    thief.isStripped = true
    try step(
      "recovery-stripped.json", try thief.document(), "accepted", number: nil, keySet: 1,
      leaf: ["a.example": [1, 66], "evil.example": [66]])
    try step(
      "recovery-1.json", first, "accepted", number: [1, 1], keySet: 1, leaf: unlisted)

    begin("a pattern that vanished adds nothing to hosts that a listed one matches")
    var registry = genuine
    registry.pins = [("a.example", 1), ("**.example", 7)]
    registry.hosts = [HostSettings(try HostPattern("**.example"), ca: [.test(90)])]
    try step(
      "vanished-wide-1.json", try registry.document(), "accepted", number: [1, 1], keySet: 1,
      leaf: ["a.example": [1, 7], "b.example": [7]],
      ca: ["a.example": [90], "b.example": [90]])
    (registry.version, registry.pins, registry.hosts) = (2, [("a.example", 1)], [])
    try step(
      "vanished-wide-2.json", try registry.document(), "accepted", number: [1, 2], keySet: 1,
      leaf: ["a.example": [1], "b.example": [7]], ca: ["a.example": [], "b.example": [90]])
  }
}
