import CanonicalJSON
import SslPinningRules
import Testing

@Suite("What a registry says")
struct RegistryTests {
  private func registry(_ entries: String...) throws -> Registry {
    let text = "{\"keys\":[\(entries.joined(separator: ","))]}"
    return try Registry(format1: try JSONView(parsing: [UInt8](text.utf8)))
  }

  private let good = SignedDocument.entry("good.example", 1)

  @Test("a thousand entries that cannot be used are told at most, and what is behind them is read")
  func manyProblems() throws {
    let text = "{\"keys\":[" + String(repeating: "0,", count: 5000) + good + "]}"
    let registry = try Registry(format1: try JSONView(parsing: [UInt8](text.utf8)))
    #expect(registry.problems == (0..<1000).map { .unreadableEntry(index: $0) })
    #expect(registry.keys.count == 1)
  }

  @Test(
    "an expiry is a time, or counts from the entry's date",
    arguments: [
      ("", nil, false), (",\"expire\":1779192131", 1_779_192_131, false),
      (",\"expire\":1779192131,\"date\":\"2025-12-14T21:02:11Z\"", 1_779_192_131, false),
      (",\"expire\":1000000000", 1_000_000_000, false),
      (",\"expire\":5488607,\"date\":\"2025-12-14T21:02:11Z\"", 1_771_234_738, false),
      (",\"date\":\"2025-12-14T22:02:11+01:00\",\"expire\":5488607", 1_771_234_738, false),
      (",\"expire\":0,\"date\":\"2025-12-14T21:02:11Z\"", 1_765_746_131, false),
      (",\"expire\":-60,\"date\":\"2025-12-14T21:02:11Z\"", 1_765_746_071, false),
      (",\"expire\":1779192131.9", 1_779_192_131, false),
      (",\"expire\":1.779192131e9", 1_779_192_131, false),
      (",\"expire\":4e18", 4_000_000_000_000_000_000, false),
      (",\"date\":\"2025-12-14T21:02:11Z\"", nil, false),
      (",\"expire\":999999999", nil, true), (",\"expire\":5488607", nil, true),
      (",\"expire\":5488607,\"date\":\"yesterday\"", nil, true),
      (",\"expire\":5488607,\"date\":1765746131", nil, true),
      (",\"expire\":\"1779192131\"", nil, true), (",\"expire\":null", nil, true),
      (",\"expire\":true", nil, true), (",\"expire\":1e300", nil, true),
      (",\"expire\":-1e300", nil, true), (",\"expire\":9223372036854775808", nil, true),
      (",\"expire\":-9223372036854775808,\"date\":\"1969-12-31T23:59:59Z\"", nil, true),
      (
        ",\"expire\":-9223372036854775808,\"date\":\"1970-01-01T00:00:00Z\"", .min, false
      ),
    ] as [(String, Int64?, Bool)])
  func expiry(members: String, expires: Int64?, isReported: Bool) throws {
    let registry = try registry(SignedDocument.entry("a.example", 1, members))
    #expect(registry.keys.map(\.expires) == [expires])
    #expect(
      registry.problems
        == (isReported ? [.unreadableExpiry(index: 0, try HostPattern("a.example"))] : []))
    #expect(registry.policyEntries.map(\.leaf.pins) == [[Pin(.test(1), expires: expires)]])
  }

  @Test(
    "a pin that cannot be read keeps its host listed and refused, and is reported",
    arguments: [
      "\"key\":\"AAAA\"", "\"key\":\"\"", "\"key\":\"not base64\"", "\"key\":17", "\"key\":null",
      "\"other\":1", "\"key\":\"sha256/\(SPKIPin.test(1).base64)\"",
      "\"key\":\"\(SPKIPin.test(1).base64)\\n\"",
    ])
  func unreadablePin(member: String) throws {
    let bad = "{\"domainName\":\"bad.example\",\(member)}"
    let registry = try registry(bad, good)
    #expect(registry.keys.count == 2)
    #expect(registry.problems.count == 1)
    #expect(registry.problems.allSatisfy { !$0.description.isEmpty })
    let policy = try PinningPolicy(
      entries: registry.policyEntries, unlistedHosts: .systemTrust)
    let host = try HostName("bad.example")
    let entry = try #require(policy.entry(for: host))
    #expect(entry.leaf.isEmpty && entry.ca.isEmpty)
    let chain = try #require(ValidatedChain(host: host, path: [.test(1)]))
    let verdict = policy.evaluate(
      ChainEvidence(presented: [.test(1)], validation: .success(chain)), host: host, at: 0)
    #expect(verdict.decision == .refuse)
    #expect(verdict.outcome == .noLivePin)
  }

  @Test("a pin that cannot be read takes nothing from another entry of its host")
  func unreadablePinBesideAnother() throws {
    let registry = try registry(
      "{\"domainName\":\"good.example\",\"key\":\"AAAA\"}", good)
    let policy = try PinningPolicy(entries: registry.policyEntries)
    let entry = try #require(policy.entry(for: HostName("good.example")))
    #expect(entry.leaf.pins == [Pin(.test(1))])
  }

  @Test(
    "a host that cannot be read is passed over and reported, and drops no other entry",
    arguments: [
      ("\"a b\"", true), ("\"\"", true), ("\"*\"", true), ("\"bücher.example\"", true),
      ("\"1.2.3\"", true), ("\"w*.example\"", true), ("17", false), ("null", false), ("[]", false),
    ])
  func unreadableHost(host: String, isText: Bool) throws {
    let pin = "\"key\":\"\(SPKIPin.test(2).base64)\""
    let registry = try registry("{\"domainName\":\(host),\(pin)}", good)
    #expect(registry.keys.map(\.pattern.description) == ["good.example"])
    #expect(registry.problems.count == 1)
    switch registry.problems.first {
    case .unreadableHost(0, _): #expect(isText)
    case .unreadableEntry(0): #expect(!isText)
    default: Issue.record("\(registry.problems)")
    }
  }

  @Test(
    "entries that are no objects are passed over", arguments: ["1", "\"a\"", "null", "[]", "{}"])
  func noObject(entry: String) throws {
    let registry = try registry(entry, good, entry)
    #expect(registry.keys.count == 1)
    #expect(registry.problems == [.unreadableEntry(index: 0), .unreadableEntry(index: 2)])
  }

  @Test("without one readable host with one readable pin it is no registry")
  func noUsableKey() throws {
    let badPin = "{\"domainName\":\"good.example\",\"key\":\"AAAA\"}"
    let badHost = "{\"domainName\":\"*\",\"key\":\"\(SPKIPin.test(2).base64)\"}"
    #expect(throws: RegistryError.noUsableKey) { try registry() }
    #expect(throws: RegistryError.noUsableKey) { try registry(badPin) }
    #expect(throws: RegistryError.noUsableKey) { try registry(badHost) }
    #expect(throws: RegistryError.noUsableKey) { try registry(badPin, badHost, "7") }
    #expect(try registry(badPin, badHost, good).keys.count == 2)
  }

  @Test(
    "without a list of keys it is no registry", arguments: ["{}", "{\"keys\":{}}", "{\"keys\":1}"])
  func noKeys(text: String) throws {
    let payload = try JSONView(parsing: [UInt8](text.utf8))
    #expect(throws: RegistryError.missingMember("payload.keys")) { try Registry(format1: payload) }
  }

  @Test("keeps the endpoint that the server watches, and passes over what it does not know")
  func others() throws {
    let registry = try registry(
      SignedDocument.entry("**.a.example", 1, ",\"fqdn\":\"www.a.example\",\"app_id\":[1,{}]"))
    #expect(registry.keys.map(\.fqdn) == ["www.a.example"])
    #expect(registry.keys.map(\.pattern) == [try HostPattern("**.a.example")])
    #expect(registry.problems.isEmpty)
  }
}
