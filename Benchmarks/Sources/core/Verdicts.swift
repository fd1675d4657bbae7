import SslPinning
import SslPinningPlatform
import SslPinningRules

/// Verdicts with the chain at hand: every host shows the one key that is listed for it.
struct Verdicts {
  private let policy: PinningPolicy
  private let hosts: [HostName]
  private let evidence: ChainEvidence

  init(hosts count: Int, certificate: [UInt8]) throws {
    hosts = try (0..<count).map { try HostName("www.host-\($0).example.com") }
    evidence = try ChainValidator(trust: .pinnedKeysOnly)
      .evidence(presented: [certificate], host: try HostName("example.com"))
    let pins = PinSet(evidence.presented.map { Pin($0, expirationDate: nil) })
    policy = try PinningPolicy(
      entries: try (0..<count).map {
        PolicyEntry(try HostPattern("*.host-\($0).example.com"), leaf: pins)
      },
      trust: .pinnedKeysOnly)
  }

  /// Nanoseconds of one. The next host is far away in the list, or a cache would answer for all of them.
  func nanoseconds(_ budget: Measurement.Budget) throws -> Double {
    var next = 0
    var accepted = true
    let seconds = Measurement.seconds(budget) {
      next = (next + 7919) % hosts.count
      let verdict = policy.evaluate(evidence, host: hosts[next], at: 1_795_000_000)
      if verdict.decision != .accept { accepted = false }
    }
    guard accepted else { throw Refused() }
    return seconds * 1e9
  }

  private struct Refused: Error {}
}
