import Pinning
import Testing

@Suite("Verdicts")
struct PinningPolicyTests {
  @Test(
    "the chain comes first, and the validated path counts", arguments: PolicyScenarios.chainFirst)
  func chainFirst(scenario: PolicyScenario) throws { try check(scenario) }

  @Test("leaf and CA pins go with their places", arguments: PolicyScenarios.roles)
  func roles(scenario: PolicyScenario) throws { try check(scenario) }

  @Test(
    "all matching patterns contribute, the stricter setting counts",
    arguments: PolicyScenarios.union)
  func union(scenario: PolicyScenario) throws { try check(scenario) }

  @Test("a denied key refuses", arguments: PolicyScenarios.denied)
  func denied(scenario: PolicyScenario) throws { try check(scenario) }

  @Test("expired pins do not count", arguments: PolicyScenarios.expiry)
  func expiry(scenario: PolicyScenario) throws { try check(scenario) }

  @Test("unlisted hosts", arguments: PolicyScenarios.unlisted)
  func unlisted(scenario: PolicyScenario) throws { try check(scenario) }

  @Test("pinned keys only", arguments: PolicyScenarios.pinnedKeysOnly)
  func pinnedKeysOnly(scenario: PolicyScenario) throws { try check(scenario) }

  private func check(_ scenario: PolicyScenario) throws {
    let evaluation = try scenario.evaluate()
    let verdict: PolicyScenario.Verdict =
      evaluation.decision == .accept
      ? .accepts(evaluation.outcome) : .refuses(evaluation.outcome)
    #expect(verdict == scenario.verdict)
    #expect(evaluation.host == (try HostName(scenario.host).description))
    #expect(!evaluation.description.isEmpty)
  }

  @Test("carries what a person needs: host, presented and expected pins, registry")
  func details() throws {
    let stamp = RegistryStamp(version: nil, payloadDigest: "ab", confirmed: 5)
    let policy = try PinningPolicy(
      entries: [
        .of("www.example.com", leaf: [2], expires: 50), .of("*.example.com", leaf: [1], ca: [9]),
      ], registry: stamp)
    let host = try HostName("WWW.example.com.")
    let chain = try #require(ValidatedChain(host: host, path: [.test(3), .test(9)]))
    let evidence = ChainEvidence(presented: [.test(3), .test(8)], validation: .success(chain))
    let evaluation = policy.evaluate(evidence, host: host, at: 0)
    #expect(evaluation.host == "www.example.com")
    #expect(evaluation.outcome == .mismatch(.leaf))
    #expect(evaluation.presented == [.test(3), .test(8)])
    #expect(evaluation.expectedLeaf == [Pin(.test(1)), Pin(.test(2), expires: 50)])
    #expect(evaluation.expectedCA == [Pin(.test(9))])
    #expect(evaluation.registry == stamp)
    #expect(evaluation.mayBeStale)
    #expect(evaluation.rule == "leaf-pin")
  }

  @Test(
    "a newer registry could change a pin verdict and no other",
    arguments: PolicyScenarios.all)
  func mayBeStale(scenario: PolicyScenario) throws {
    let evaluation = try scenario.evaluate()
    switch scenario.verdict {
    case .refuses(.mismatch), .refuses(.noLivePin): #expect(evaluation.mayBeStale)
    default: #expect(!evaluation.mayBeStale)
    }
  }

  @Test("settings that contradict each other are errors")
  func contradictions() throws {
    let pattern = try HostPattern(PolicyScenarios.host)
    func policy(_ entry: PolicyEntry, _ trust: TrustMode, _ unlisted: UnlistedHosts) throws {
      _ = try PinningPolicy(entries: [entry], trust: trust, unlistedHosts: unlisted)
    }
    let withCA = PolicyEntry.of(PolicyScenarios.host, leaf: [1], ca: [2])
    let reporting = PolicyEntry.of(PolicyScenarios.host, leaf: [1], .reportOnly)
    #expect(throws: PolicyError.caPinsWithoutPath(pattern)) {
      try policy(withCA, .pinnedKeysOnly, .refuse)
    }
    #expect(throws: PolicyError.reportOnlyWithoutPath(pattern)) {
      try policy(reporting, .pinnedKeysOnly, .refuse)
    }
    #expect(throws: PolicyError.unlistedHostsWithoutPath) {
      try policy(PolicyScenarios.listed, .pinnedKeysOnly, .systemTrust)
    }
    for trust in [TrustMode.system, .anchors([]), .anchors([], andSystem: true)] {
      for entry in [withCA, reporting, PolicyScenarios.listed] {
        try policy(entry, trust, .systemTrust)
      }
    }
    try policy(PolicyScenarios.listed, .pinnedKeysOnly, .refuse)
  }
}
