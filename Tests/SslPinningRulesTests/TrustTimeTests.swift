import SslPinningRules
import Testing

@Suite("The two times that a client knows")
struct TrustTimeTests {
  private static let expiry: Int64 = 1000

  /// A policy with one pin and an end, both at ``expiry``.
  private func verdict(_ time: TrustTime, pinExpires: Int64? = nil, expires: Int64? = nil) throws
    -> PinEvaluation.Outcome
  {
    let host = try HostName("a.example")
    var entry = PolicyEntry(.exact(host))
    entry.leaf.insert(Pin(.test(1), expires: pinExpires))
    let chain = try #require(ValidatedChain(host: host, path: [.test(1), .test(9)]))
    return try PinningPolicy(entries: [entry], expires: expires)
      .evaluate(
        ChainEvidence(presented: [.test(1)], validation: .success(chain)), host: host, at: time
      )
      .outcome
  }

  @Test("are both tried for dates, each once, the clock first")
  func dates() {
    #expect(TrustTime(clock: 5).dates == [5])
    #expect(TrustTime(clock: 5, floor: 5).dates == [5])
    #expect(TrustTime(clock: 5, floor: 9).dates == [5, 9])
    #expect(TrustTime(clock: 9, floor: 5).dates == [9, 5])
    #expect(TrustTime(clock: 5, floor: 253_402_300_800).dates == [5], "no certificate can name it")
    #expect(TrustTime(clock: 5, floor: 9).later == 9)
    #expect(TrustTime(clock: 9, floor: 5).later == 9)
    #expect(TrustTime(clock: .min).later == .min)
  }

  @Test(
    "of a statement that is expired, the later still counts, and dates do not hold there; a retired one has none"
  )
  func notInForce() throws {
    #expect(TrustTime(clock: 9, floor: 5, isFloorInForce: false).dates == [9])
    #expect(TrustTime(clock: 5, floor: 9, isFloorInForce: false).later == 9)
    var registry = RegistrySimulator()
    let (issued, end) = (registry.issued, registry.issued + registry.lifetime)
    let client = try registry.client()
    #expect(client.time(at: end - 1).dates == [end - 1, issued])
    #expect(client.time(at: end).dates == [end])
    registry.isRetired = true
    registry.version += 1
    let retired = try client.update(with: registry).registry
    #expect(retired.time(at: issued + 1).dates == [issued + 1])
    #expect(retired.time(at: issued - 9).later == issued - 9)
    // Its registry is reached all the same: what comes from there is signed.
    #expect(retired.time(at: issued - 9).believesStatement)
    #expect(!TrustTime(clock: 9).believesStatement)
  }

  @Test("end a pin at the later of both, so that a clock set back revives none")
  func pins() throws {
    let late = Self.expiry + 27 * 3600
    #expect(try verdict(TrustTime(clock: 0), pinExpires: Self.expiry) == .matched)
    #expect(try verdict(TrustTime(clock: 0, floor: late), pinExpires: Self.expiry) == .noLivePin)
    #expect(try verdict(TrustTime(clock: late, floor: 0), pinExpires: Self.expiry) == .noLivePin)
  }

  @Test("end a registry at the clock alone, so that an `issued` far ahead ends none")
  func registry() throws {
    let far = Self.expiry + 400 * 86_400
    #expect(try verdict(TrustTime(clock: 0, floor: far), expires: Self.expiry) == .matched)
    #expect(
      try verdict(TrustTime(clock: far, floor: 0), expires: Self.expiry)
        == .registryExpired(at: Self.expiry))
  }
}
