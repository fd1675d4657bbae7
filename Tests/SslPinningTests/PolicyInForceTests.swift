import SslPinningPlatform
import SslPinningRules
import Testing

@testable import SslPinning

@Suite("The policy in force and its number")
struct PolicyInForceTests {
  private static let tolerance: Int64 = 26 * 3600

  private func policy(expiring end: Int64) throws -> PinningPolicy {
    var entry = PolicyEntry(try HostPattern("a.example"))
    entry.leaf.insert(Pin(SPKIPin(computed: Digest.sha256([1])), expires: end))
    return try PinningPolicy(entries: [entry])
  }

  @Test(
    "the number grows when a pin expires, also where the clock ran ahead before and was set back")
  func clockSetBack() throws {
    let end: Int64 = 1_000_000
    let over = end + Self.tolerance + 1
    var inForce = ActivePolicy(try policy(expiring: end), at: TrustTime(clock: 10))
    let first = inForce.advance(to: TrustTime(clock: 20))
    #expect(inForce.advance(to: TrustTime(clock: end)) == first)
    let ahead = inForce.advance(to: TrustTime(clock: over))
    #expect(ahead > first)
    // The pin counts again: connections are accepted under it once more.
    let back = inForce.advance(to: TrustTime(clock: 30))
    #expect(inForce.advance(to: TrustTime(clock: end)) == back)
    #expect(inForce.advance(to: TrustTime(clock: over)) > back)
  }
}
