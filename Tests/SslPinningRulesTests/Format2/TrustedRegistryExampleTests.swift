import SslPinningRules
import Testing

/// The example above `TrustedRegistry`, row by row.
@Suite("The example of what is believed")
struct TrustedRegistryExampleTests {
  @Test("holds as it is written")
  func rows() throws {
    var registry = RegistrySimulator()
    registry.version = 7
    var client = try registry.client()
    #expect(client.stamp.version == .init(epoch: 0, version: 7))

    func refusal(of registry: RegistrySimulator) throws -> RegistryError? {
      let update = try client.update(with: registry)
      client = update.registry
      return update.refusal
    }
    var older = registry
    older.version = 6
    #expect(
      try refusal(of: older)
        == .rolledBack(to: .init(epoch: 0, version: 6), from: .init(epoch: 0, version: 7)))
    var other = registry
    other.pins = [("a.example", 66)]
    #expect(try refusal(of: other) == .invalidStatement(.conflict))
    #expect(client.stamp.fork != nil)
    var stripped = registry
    stripped.isStripped = true
    #expect(try refusal(of: stripped) == .statementStripped)

    var next = registry
    try next.beginEpoch(online: 1)
    #expect(try refusal(of: next) == nil)
    #expect(client.stamp.version == .init(epoch: 1, version: 1))
    registry.version = 8
    #expect(
      try refusal(of: registry) == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 1))))

    var unsigned = next
    try unsigned.beginEpoch(online: 2)
    unsigned.online = [1]
    #expect(
      try refusal(of: unsigned) == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 2))))
    #expect(client.keySetEpoch == 2)
    next.version = 2
    #expect(try refusal(of: next) == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 2))))
    #expect(client.stamp.version == .init(epoch: 1, version: 1))
  }
}
