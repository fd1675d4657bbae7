import RegistryCore
import RegistryServer
import SslPinningRules
import Testing

@Suite("The last key of an endpoint")
struct LastKeyTests {
  /// Probes so far apart that no changed key is ever seen often enough within its window.
  private static let rule = ConfirmationRule(probes: 3, window: 600, grace: 7200)

  @Test(
    "stays however long it is missed, because nothing has taken its place",
    arguments: [[pin(1)], [pin(1), pin(2)]])
  func stays(published: [SPKIPin]) {
    var endpointKeys = EndpointKeys(
      keys: published.map { KnownKey(pin: $0, firstSeen: 0, lastSeen: 0) })
    for number in 1...20 {
      _ = endpointKeys.enter(.accepted(pin(9)), at: Int64(number) * 3000, rule: Self.rule)
      #expect(endpointKeys.keys.map(\.pin) == published)
    }
    // Once the endpoint shows it in quick succession, the new key is published and the old ones go.
    for second in 0..<3 {
      _ = endpointKeys.enter(.accepted(pin(9)), at: 60_001 + Int64(second), rule: Self.rule)
    }
    #expect(endpointKeys.keys.map(\.pin) == [pin(9)])
  }
}
