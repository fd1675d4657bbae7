import Testing

@testable import RegistryCore

@Suite("What reports amount to")
struct ReportClassTests {
  /// What is known, as a line of a scenario says it.
  struct Scenario: Sendable, CustomTestStringConvertible {
    let told: String
    let kind: ReportClass
    let facts: ReportFacts

    init(_ told: String, _ kind: ReportClass, _ edit: (inout ReportFacts) -> Void) {
      var facts = ReportFacts()
      // Of what nothing is said: a certificate for the host that nobody vouches for, at a server of many endpoints.
      (facts.key, facts.namesHost, facts.endpoints) = (.nowhere, true, 500)
      (facts.first, facts.last, facts.probed) = (10_000, 20_000, 20_030)
      edit(&facts)
      (self.told, self.kind, self.facts) = (told, kind, facts)
    }

    var testDescription: String { told }
  }

  static let scenarios: [Scenario] = [
    Scenario("no chain and no pin", .unknown) { $0.key = nil },
    Scenario("a denied key, though an authority vouches for it", .deniedKey) {
      ($0.key, $0.isVerified, $0.wasListed) = (.denied, true, true)
    },
    Scenario("a key that a probe saw, and that waits", .ownKey) {
      ($0.key, $0.isVerified) = (.waiting, true)
    },
    Scenario("a key that was published after apps met it", .ownKey) {
      $0.key = .listed(since: 1000)
    },
    Scenario("a key that was listed for less than an hour when apps met it last", .ownKey) {
      ($0.key, $0.wasListed) = (.listed(since: 16_401), true)
    },
    Scenario("a key that was listed for an hour", .oldApp) {
      ($0.key, $0.wasListed) = (.listed(since: 16_400), true)
    },
    Scenario("a listed key whose chain an authority vouches for", .oldApp) {
      ($0.key, $0.wasListed, $0.isVerified) = (.listed(since: 0), true, true)
    },
    Scenario("another endpoint's key, for another name", .elsewhere) {
      ($0.key, $0.namesHost, $0.hostsOfLeaf) = (.elsewhere, false, 9)
    },
    Scenario("an authority's chain, and no probe saw the key", .interception) {
      $0.isVerified = true
    },
    Scenario("the same, under a known issuer", .interception) {
      ($0.isVerified, $0.isIssuerKnown) = (true, true)
    },
    Scenario("the same, before the next probe", .unknown) {
      ($0.isVerified, $0.probed) = (true, 10_000)
    },
    Scenario("the same, where a probe fails", .unknown) {
      ($0.isVerified, $0.probed) = (true, nil)
    },
    Scenario("a pin alone that nobody knows", .unknown) { $0.namesHost = nil },
    Scenario("one certificate for another name, at two hosts", .captivePortal) {
      ($0.namesHost, $0.hostsOfLeaf) = (false, 2)
    },
    Scenario("the same at one host of many", .unknown) { $0.namesHost = false },
    Scenario("the same where one endpoint is watched", .captivePortal) {
      ($0.namesHost, $0.endpoints) = (false, 1)
    },
    Scenario("a private authority for two hosts", .inspectingProxy) { $0.hostsOfIssuer = 2 },
    Scenario("a private authority for one host of many", .unknown) { $0.hostsOfLeaf = 9 },
    Scenario("a private authority where one endpoint is watched", .inspectingProxy) {
      $0.endpoints = 1
    },
    Scenario("an authority for two hosts whose chain the app found valid", .unknown) {
      ($0.hostsOfIssuer, $0.isValidToApp) = (2, true)
    },
    Scenario("an issuer for two hosts whose certificate is missing", .unknown) {
      ($0.hostsOfIssuer, $0.lacksIssuer) = (2, true)
    },
    Scenario("an authority's chain that the app found valid, too", .interception) {
      ($0.isVerified, $0.isValidToApp, $0.lacksIssuer) = (true, true, true)
    },
    Scenario("an issuer of a known name that does not vouch", .unknown) {
      ($0.hostsOfIssuer, $0.isIssuerKnown) = (9, true)
    },
  ]

  @Test("is told by the first rule that applies", arguments: scenarios)
  func verdict(_ scenario: Scenario) {
    let verdict = scenario.facts.verdict
    #expect(verdict.kind == scenario.kind, "\(verdict.why)")
    #expect(!verdict.why.isEmpty)
  }

  @Test("has a scenario for every class")
  func all() {
    #expect(Set(Self.scenarios.map(\.kind)) == Set(ReportClass.allCases))
  }
}
