import SslPinningRules
import Testing

/// Domains as an Info.plist has them, one connection, and the verdict that must come of it.
struct PinnedDomainsScenario: Sendable, CustomTestStringConvertible {
  enum Verdict: Equatable, Sendable {
    /// The host is pinned, and the path satisfies its pins.
    case matches
    /// The host is not pinned: the system's judgement stands.
    case leftToTheSystem
    case refuses(PinEvaluation.Outcome)
  }

  var name: String
  var domains: [String: PropertyListValue]
  var host = "www.example.com"
  var path: [UInt8] = [1, 8, 9]
  var verdict: Verdict

  var testDescription: String { name }

  func evaluate() throws -> Verdict {
    let pinned = NSPinnedDomains(domains: domains)
    let scenario = PolicyScenario(
      name: name, entries: pinned.entries, unlistedHosts: NSPinnedDomains.unlistedHosts, host: host,
      chain: .valid(path), verdict: .accepts(.matched))
    let evaluation = try scenario.evaluate()
    switch (evaluation.outcome, evaluation.decision) {
    case (.matched, .accept): return .matches
    case (.unlisted, .accept): return .leftToTheSystem
    case (let outcome, .refuse): return .refuses(outcome)
    default:
      Issue.record("accepted in spite of \(evaluation.outcome)")
      return .matches
    }
  }
}

extension PropertyListValue {
  /// A domain's dictionary; each number is the pin of that byte, `nil` leaves the list out.
  static func domain(
    leaf: [UInt8]? = nil, ca: [UInt8]? = nil, subdomains: PropertyListValue? = nil
  ) -> PropertyListValue {
    var members: [String: PropertyListValue] = [:]
    members["NSPinnedLeafIdentities"] = leaf.map(identities)
    members["NSPinnedCAIdentities"] = ca.map(identities)
    members["NSIncludesSubdomains"] = subdomains
    return .dictionary(members)
  }

  static func identities(_ pins: [UInt8]) -> PropertyListValue {
    .array(pins.map { identity(.string(SPKIPin.test($0).base64)) })
  }

  static func identity(_ digest: PropertyListValue) -> PropertyListValue {
    .dictionary(["SPKI-SHA256-BASE64": digest])
  }
}
