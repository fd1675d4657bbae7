import SslPinningRules
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

  @Test("what pinned keys only cannot check", arguments: PolicyScenarios.uncheckable)
  func uncheckableEntries(scenario: PolicyScenario) throws { try check(scenario) }

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
    #expect(evaluation.couldChangeAfterRefresh)
    #expect(evaluation.rule == "leaf-pin")
  }

  @Test(
    "a newer registry could change a pin verdict and no other",
    arguments: PolicyScenarios.all)
  func couldChangeAfterRefresh(scenario: PolicyScenario) throws {
    let evaluation = try scenario.evaluate()
    switch scenario.verdict {
    case .refuses(.mismatch), .refuses(.noLivePin), .refuses(.uncheckable), .refuses(.unlisted):
      #expect(evaluation.couldChangeAfterRefresh)
    default: #expect(!evaluation.couldChangeAfterRefresh)
    }
  }

  /// A path of pins 1 (leaf), 2 and 3 (anchor) under an entry.
  private static let pathVerdicts:
    [(name: String, entry: PolicyEntry, denied: [UInt8], mayHaveAnother: Bool)] = [
      ("a missing CA pin", .of(host, leaf: [1], ca: [9]), [], true),
      ("a missing leaf pin", .of(host, leaf: [9], ca: [2]), [], false),
      ("both missing, and one is enough", .of(host, leaf: [9], ca: [8], match: .any), [], true),
      ("a leaf pin missing, and no other list", .of(host, leaf: [9], match: .any), [], false),
      ("a CA pin missing beside an expired one", .of(host, ca: [9], expires: -200_000), [], false),
      ("a denied leaf", .of(host, leaf: [1]), [1], false),
      ("a denied leaf and a denied anchor", .of(host, leaf: [1]), [1, 3], false),
      ("a denied anchor", .of(host, leaf: [1]), [3], true),
      ("a denied CA and a missing leaf pin", .of(host, leaf: [9]), [2], true),
      ("a CA pin missing, reported only", .of(host, ca: [9], .reportOnly), [], true),
      ("a denied anchor, report-only", .of(host, ca: [9], .reportOnly), [3], true),
      ("all as demanded", .of(host, leaf: [1], ca: [3]), [], false),
      ("another host's entry", .of("other.example", ca: [9]), [], false),
    ]

  private static let host = PolicyScenarios.host

  @Test("another path could turn what is wrong above the leaf, and nothing else")
  func mayHaveAnotherPath() throws {
    for (name, entry, denied, mayHaveAnother) in Self.pathVerdicts {
      let policy = try PinningPolicy(entries: [entry], denied: Set(denied.map(SPKIPin.test)))
      let host = try HostName(Self.host)
      let chain = try #require(
        ValidatedChain(host: host, path: [.test(1), .test(2), .test(3)]))
      let evidence = ChainEvidence(presented: [.test(1)], validation: .success(chain))
      let evaluation = policy.evaluate(evidence, host: host, at: 0)
      #expect(evaluation.mayHaveAnotherPath == mayHaveAnother, "\(name)")
      // Without a valid path, or for another name, there is nothing to search from.
      let untrusted = ChainEvidence(
        presented: [.test(1)], validation: .failure(.untrusted(code: 1, reason: "test")))
      #expect(!policy.evaluate(untrusted, host: host, at: 0).mayHaveAnotherPath, "\(name)")
      let other = try HostName("elsewhere.example")
      #expect(!policy.evaluate(evidence, host: other, at: 0).mayHaveAnotherPath, "\(name)")
    }
    let keysOnly = try PinningPolicy(
      entries: [.of(Self.host, leaf: [1])], denied: [.test(2)], trust: .pinnedKeysOnly)
    let evidence = ChainEvidence(
      presented: [.test(1), .test(2)], validation: .failure(.unreadable("test")))
    let verdict = keysOnly.evaluate(evidence, host: try HostName(Self.host), at: 0)
    #expect(verdict.rule == "denied-key")
    #expect(!verdict.mayHaveAnotherPath)
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

  @Test(
    "a refused chain hints at one's own anchors where nobody vouches for it, and else at nothing",
    arguments: [
      // OpenSSL's codes, and Security's.
      (ChainFault.untrusted(code: 2, reason: "unable to get issuer certificate"), true),
      (.untrusted(code: 18, reason: "self-signed certificate"), true),
      (.untrusted(code: 19, reason: "self-signed certificate in chain"), true),
      (.untrusted(code: 20, reason: "unable to get local issuer certificate"), true),
      (.untrusted(code: 21, reason: "unable to verify the first certificate"), true),
      (.untrusted(code: -67843, reason: "is not trusted"), true),
      (.untrusted(code: 9, reason: "certificate is not yet valid"), false),
      (.untrusted(code: 10, reason: "certificate has expired"), false),
      (.untrusted(code: 23, reason: "certificate revoked"), false),
      (.untrusted(code: 26, reason: "unsuitable certificate purpose"), false),
      (.untrusted(code: 66, reason: "EE certificate key too weak"), false),
      (.untrusted(code: -67818, reason: "has expired"), false),
      (.untrusted(code: 0, reason: "the system gives no reason"), false),
      (.wrongHost, false), (.unreadable("no certificate"), false),
    ])
  func chainHints(fault: ChainFault, hasHint: Bool) throws {
    for trust in [TrustMode.system, .anchors([]), .anchors([], andSystem: true)] {
      let policy = try PinningPolicy(entries: [PolicyScenarios.listed], trust: trust)
      let verdict = policy.evaluate(
        ChainEvidence(presented: [], validation: .failure(fault)),
        host: try HostName(PolicyScenarios.host), at: 0)
      #expect((verdict.hint?.contains(".anchors") ?? false) == hasHint, "\(verdict)")
      #expect((verdict.hint != nil) == hasHint)
      #expect(!"\(verdict)".contains("pinnedKeysOnly") && !"\(verdict)".contains("systemTrust"))
    }
  }

  @Test("a list tells which of its entries the trust mode cannot honour, and is no error")
  func uncheckable() throws {
    var whole = PolicyEntry.of("c.example", leaf: [1])
    whole.certificates = [
      try #require(CertificateFingerprint(digest: [UInt8](repeating: 1, count: 32)))
    ]
    let entries = [
      whole, .of("a.example", leaf: [1]), .of("*.b.example", leaf: [1], ca: [9]),
      .of("d.example", leaf: [1], ca: [9], match: .any),
    ]
    func problems(_ trust: TrustMode) throws -> [RegistryProblem] {
      try PinningPolicy(
        listed: entries, denied: [], trust: trust, unlistedHosts: .refuse, registry: nil,
        expires: nil
      ).problems
    }
    #expect(
      try problems(.pinnedKeysOnly) == [
        .uncheckable(try HostPattern("*.b.example"), .ca),
        .uncheckable(try HostPattern("c.example"), .certificate),
      ])
    #expect(try problems(.system).isEmpty)
    #expect(throws: PolicyError.unlistedHostsWithoutPath) {
      try PinningPolicy(
        listed: [], denied: [], trust: .pinnedKeysOnly, unlistedHosts: .systemTrust,
        registry: nil, expires: nil)
    }
  }

  @Test(
    "of the entries that cannot be honoured a thousand are told, sorted, and all refuse their hosts",
    arguments: [999, 1000, 1001, 3000])
  func manyProblems(count: Int) throws {
    let entries = (0..<count).map { PolicyEntry.of("h\($0).example", leaf: [1], ca: [9]) }
    for vanished in [0, count / 2] {
      let policy = try PinningPolicy(
        listed: Array(entries.dropFirst(vanished)), vanished: Array(entries.prefix(vanished)),
        denied: [], trust: .pinnedKeysOnly, unlistedHosts: .refuse, registry: nil, expires: nil)
      let texts = policy.problems.map(\.description)
      #expect(texts.count == min(count, 1000))
      #expect(texts == Set(texts).sorted())
      let time = TrustTime(clock: 0)
      #expect(
        try (0..<count).allSatisfy {
          policy.refusalOfAll(try HostName("h\($0).example"), at: time) == .uncheckable(.ca)
        })
    }
  }
}
