import SslPinningRules
import Testing

@Suite("NSPinnedDomains")
struct NSPinnedDomainsTests {
  @Test("judges by Apple's rules", arguments: PinnedDomainsScenarios.all)
  func rules(scenario: PinnedDomainsScenario) throws {
    #expect(try scenario.evaluate() == scenario.verdict)
  }

  @Test("never accepts what the system refuses", arguments: PinnedDomainsScenarios.all)
  func neverLoosens(scenario: PinnedDomainsScenario) throws {
    let policy = try PinningPolicy(
      entries: NSPinnedDomains(domains: scenario.domains).entries,
      unlistedHosts: NSPinnedDomains.unlistedHosts)
    let evidence = ChainEvidence(
      presented: scenario.path.map(SPKIPin.test), validation: .failure(PolicyScenarios.untrusted))
    let host = try HostName(scenario.host)
    #expect(policy.evaluate(evidence, host: host, at: 0).decision == .refuse)
  }

  @Test("tells nothing where everything is as it should be")
  func noProblems() {
    let pinned = NSPinnedDomains(domains: [
      "example.com": .domain(leaf: [1], ca: [2], subdomains: .boolean(true)),
      "example.org": .domain(ca: [2], subdomains: .boolean(false)),
    ])
    #expect(pinned.problems == [])
    #expect(
      pinned.entries.map(\.pattern.description) == [
        "example.com", "*.example.com", "example.org",
      ])
  }

  @Test(
    "tells what does not do what it seems to, and where",
    arguments: [
      ("example.com.", .domain(leaf: [1]), "", .trailingDot),
      ("*.a.com", .domain(leaf: [1]), "", .unreadableDomain(.misplacedWildcard("*.a.com"))),
      ("a..com", .domain(leaf: [1]), "", .unreadableDomain(.badLabel("a..com"))),
      ("a.com", .string("x"), "", .entryNotADictionary(found: "a string")),
      ("a.com", .domain(), "", .noList),
      (
        "a.com", .domain(leaf: [1], subdomains: .integer(1)), ".NSIncludesSubdomains",
        .notABoolean(found: "a number")
      ),
      (
        "::1", .domain(leaf: [1], subdomains: .boolean(true)), ".NSIncludesSubdomains",
        .subdomainsOfAddress
      ),
      ("a.com", .domain(ca: []), ".NSPinnedCAIdentities", .emptyList),
      (
        "a.com", .dictionary(["NSPinnedLeafIdentities": .string("x")]), ".NSPinnedLeafIdentities",
        .listNotAnArray(found: "a string")
      ),
      (
        "a.com", .dictionary(["NSPinnedCAIdentities": .array([.string("x")])]),
        ".NSPinnedCAIdentities[0]", .noDigest
      ),
      (
        "a.com", .dictionary(["NSPinnedCAIdentities": .array([.identity(.string("AAAA"))])]),
        ".NSPinnedCAIdentities[0]", .unreadableDigest(.wrongLength(3))
      ),
      (
        "a.com",
        .dictionary([
          "NSPinnedLeafIdentities": .identities([1]), "NSIncludeSubdomains": .boolean(true),
        ]), ".NSIncludeSubdomains", .unknownKey
      ),
    ] as [(String, PropertyListValue, String, NSPinnedDomainsProblem.Fault)])
  func problems(
    domain: String, value: PropertyListValue, place: String, fault: NSPinnedDomainsProblem.Fault
  ) {
    let problems = NSPinnedDomains(domains: [domain: value]).problems
    #expect(problems.map(\.fault) == [fault])
    #expect(problems.map(\.path) == ["NSPinnedDomains[\"\(domain)\"]\(place)"])
  }

  @Test("finds the domains under NSAppTransportSecurity")
  func infoPlist() throws {
    let domains = PropertyListValue.dictionary(["a.com": .domain(leaf: [])])
    let root = PropertyListValue.dictionary([
      "CFBundleName": .string("App"),
      "NSAppTransportSecurity": .dictionary(["NSPinnedDomains": domains]),
    ])
    let pinned = try NSPinnedDomains(infoPlist: root)
    #expect(pinned.entries.count == 1)
    #expect(
      pinned.problems.map(\.path) == [
        "NSAppTransportSecurity.NSPinnedDomains[\"a.com\"].NSPinnedLeafIdentities"
      ])
  }

  @Test(
    "is an error where there is nothing to go by",
    arguments: [
      (.array([]), .notADictionary(path: "", found: "an array")),
      (.dictionary([:]), .missing(path: "NSAppTransportSecurity")),
      (
        .dictionary(["NSPinnedDomains": .dictionary([:])]),
        .missing(path: "NSAppTransportSecurity")
      ),
      (
        .dictionary(["NSAppTransportSecurity": .string("")]),
        .notADictionary(path: "NSAppTransportSecurity", found: "a string")
      ),
      (
        .dictionary(["NSAppTransportSecurity": .dictionary([:])]),
        .missing(path: "NSAppTransportSecurity.NSPinnedDomains")
      ),
      (
        .dictionary(["NSAppTransportSecurity": .dictionary(["NSPinnedDomains": .array([])])]),
        .notADictionary(path: "NSAppTransportSecurity.NSPinnedDomains", found: "an array")
      ),
    ] as [(PropertyListValue, NSPinnedDomainsError)])
  func nothingToGoBy(root: PropertyListValue, error: NSPinnedDomainsError) {
    #expect(throws: error) { try NSPinnedDomains(infoPlist: root) }
  }
}
