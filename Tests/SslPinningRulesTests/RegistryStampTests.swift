import SslPinningRules
import Testing

@Suite("How old a registry is")
struct RegistryStampTests {
  private static let stamp = RegistryStamp(version: nil, payloadDigest: "ab", confirmed: 1000)

  @Test(
    "after seven days without a confirmation verdicts say stale, and turn out as before",
    arguments: [
      (0, false), (7 * 86400, false), (7 * 86400 + 1, true), (700 * 86400, true), (-3600, false),
      // Nobody knows when it really was.
      (-3601, true), (-400 * 86400, true),
    ] as [(Int64, Bool)])
  func stale(age: Int64, isStale: Bool) throws {
    let now = Self.stamp.confirmed + age
    #expect(Self.stamp.isStale(at: now) == isStale)
    #expect(Self.stamp.age(at: now) == max(0, age))
    let policy = try PinningPolicy(
      entries: [.of(PolicyScenarios.host, leaf: [1])], registry: Self.stamp)
    let host = try HostName(PolicyScenarios.host)
    let chain = try #require(ValidatedChain(host: host, path: [.test(1), .test(9)]))
    let evidence = ChainEvidence(presented: [.test(1)], validation: .success(chain))
    let verdict = policy.evaluate(evidence, host: host, at: now)
    #expect(verdict.isStale == isStale)
    #expect(verdict.outcome == .matched)
    #expect(verdict.decision == .accept)
  }

  @Test("a time at the edge of what can be counted overflows nothing")
  func edges() {
    let first = RegistryStamp(version: nil, payloadDigest: "ab", confirmed: .min)
    #expect(first.isStale(at: .max))
    #expect(first.age(at: .max) == .max)
    #expect(RegistryStamp(version: nil, payloadDigest: "ab", confirmed: .max).age(at: .min) == 0)
  }
}
