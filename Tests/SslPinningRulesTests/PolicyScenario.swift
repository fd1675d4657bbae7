import SslPinningRules
import Testing

/// One connection as a policy sees it, and the verdict that must come of it.
struct PolicyScenario: Sendable, CustomTestStringConvertible {
  /// The verdict, without what it carries along.
  enum Verdict: Equatable, Sendable {
    case accepts(PinEvaluation.Outcome)
    case refuses(PinEvaluation.Outcome)
  }

  /// What validation found.
  enum Chain: Sendable {
    /// A valid path of these pins for the scenario's host.
    case valid([UInt8])
    /// A valid path for another host.
    case validFor(String, [UInt8])
    case failed(ChainFault)
  }

  var name: String
  var entries: [PolicyEntry] = []
  /// Whether somebody else keeps the list; otherwise the entries are the app's own.
  var isListed = false
  var denied: [UInt8] = []
  var trust = TrustMode.system
  var unlistedHosts = UnlistedHosts.refuse
  var host = "www.example.com"
  var chain: Chain
  /// What the server sent, where that is not the path without its anchor.
  var presented: [UInt8]?
  var now: Int64 = 1_000_000
  var verdict: Verdict

  var testDescription: String { name }

  func evaluate() throws -> PinEvaluation {
    let host = try HostName(host)
    let denied = Set(denied.map(SPKIPin.test))
    let policy =
      isListed
      ? try PinningPolicy(
        listed: entries, denied: denied, trust: trust, unlistedHosts: unlistedHosts,
        registry: nil, expires: nil)
      : try PinningPolicy(
        entries: entries, denied: denied, trust: trust, unlistedHosts: unlistedHosts)
    let validation: Result<ValidatedChain, ChainFault>
    let sent: [UInt8]
    switch chain {
    case .valid(let path):
      validation = .success(
        try #require(ValidatedChain(host: host, path: path.map(SPKIPin.test))))
      sent = path
    case .validFor(let other, let path):
      validation = .success(
        try #require(ValidatedChain(host: HostName(other), path: path.map(SPKIPin.test))))
      sent = path
    case .failed(let fault):
      validation = .failure(fault)
      sent = []
    }
    let evidence = ChainEvidence(
      presented: (presented ?? sent).map(SPKIPin.test), validation: validation)
    return policy.evaluate(evidence, host: host, at: now)
  }
}

extension PolicyEntry {
  /// An entry from numbers: each a pin of that byte, which never expires.
  static func of(
    _ pattern: String, leaf: [UInt8] = [], ca: [UInt8] = [], expires: Int64? = nil,
    match: Match = .all, _ enforcement: Enforcement = .enforce
  ) -> PolicyEntry {
    do {
      return PolicyEntry(
        try HostPattern(pattern), leaf: PinSet(leaf.map { Pin(.test($0), expires: expires) }),
        ca: PinSet(ca.map { Pin(.test($0), expires: expires) }), match: match,
        enforcement: enforcement)
    } catch {
      Issue.record("\(pattern): \(error)")
      return PolicyEntry(.exact(.name(.placeholder)))
    }
  }
}

extension DNSName {
  fileprivate static let placeholder: DNSName = {
    guard let name = try? DNSName("invalid") else { fatalError("a name") }
    return name
  }()
}
