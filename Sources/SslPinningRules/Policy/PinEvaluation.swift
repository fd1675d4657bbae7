import CanonicalJSON

/// The verdict on one connection: what happened, what to do, and everything that a person needs to find out
/// why. A refused request throws it.
public struct PinEvaluation: Hashable, Sendable {
  /// What to do.
  public enum Decision: Hashable, Sendable {
    /// Let the request through.
    case accept
    /// Send no byte of it.
    case refuse
  }

  /// What happened.
  public enum Outcome: Hashable, Sendable {
    /// The pins that the host's entry requires were found.
    case matched
    /// No entry covers the host.
    case unlisted
    /// The chain or the host name is not valid.
    case chainRejected(ChainFault)
    /// The host is listed, and a required pin is missing.
    case mismatch(PinRole)
    /// The host is listed, and all its pins have expired or none could be read.
    case noLivePin
    /// The host's entry requires this, which ``TrustMode/pinnedKeysOnly`` cannot check: without a validated
    /// path there is no CA.
    case uncheckable(PinRole)
    /// The host's entry requires these, which this version of the client does not know.
    case clientTooOld([String])
    /// The registry as a whole expired at this Unix time, in seconds.
    case registryExpired(at: Int64)
    /// This key is on the deny list.
    case denied(SPKIPin)
    /// The request would have gone out in clear text.
    case clearText(scheme: String)
    /// The host name cannot be read.
    case unreadableHost(HostNameError)
    /// The connection was never evaluated, for this reason. If the decision is to refuse, nothing was sent. Apple
    /// platforms report some of these afterwards; then the decision is to accept.
    case unjudged(String)
  }

  /// The place on the path where a pin must match.
  public enum PinRole: Hashable, Sendable {
    /// The server's own certificate.
    case leaf
    /// A certificate above it.
    case ca
    /// A whole certificate, anywhere on the path.
    case certificate
  }

  /// The host as the request named it.
  public let host: String
  /// What happened.
  public let outcome: Outcome
  /// What to do.
  public let decision: Decision
  /// The pattern of the entry that lists the host, the exact one if there are several; `nil` if none does.
  public let pattern: HostPattern?
  /// The pins that the server presented, leaf first.
  public let presented: [SPKIPin]
  /// The pins that would have been accepted for the leaf.
  public let expectedLeaf: [Pin]
  /// The pins that would have been accepted above the leaf.
  public let expectedCA: [Pin]
  /// The whole certificates of which one would have been accepted on the path.
  public let expectedCertificates: [CertificateFingerprint]
  /// The registry that decided; `nil` if the pins did not come from one.
  public let registry: RegistryStamp?
  /// Whether that registry was last confirmed more than 7 days before the verdict. Its pins still count.
  public let isStale: Bool

  /// Whether another valid path to the same leaf could pass, report-only or not: this one has a denied key
  /// above the leaf, or lacks a pin above it. A fault of the leaf, the chain, the registry or the host is the
  /// same on every path.
  package let mayHaveAnotherPath: Bool

  /// A verdict. Only a policy and the platform's transports make one.
  package init(
    host: String, outcome: Outcome, decision: Decision, pattern: HostPattern? = nil,
    presented: [SPKIPin] = [],
    expectedLeaf: [Pin] = [], expectedCA: [Pin] = [],
    expectedCertificates: [CertificateFingerprint] = [], registry: RegistryStamp? = nil,
    isStale: Bool = false,
    mayHaveAnotherPath: Bool = false
  ) {
    self.host = host
    self.outcome = outcome
    self.decision = decision
    self.pattern = pattern
    self.presented = presented
    self.expectedLeaf = expectedLeaf
    self.expectedCA = expectedCA
    self.expectedCertificates = expectedCertificates
    self.registry = registry
    self.isStale = isStale
    self.mayHaveAnotherPath = mayHaveAnotherPath
  }

  /// The same with at most so many of each kind of pins.
  package func keeping(_ count: Int) -> PinEvaluation {
    guard
      max(presented.count, expectedLeaf.count, expectedCA.count, expectedCertificates.count) > count
    else { return self }
    return PinEvaluation(
      host: host, outcome: outcome, decision: decision, pattern: pattern,
      presented: Array(presented.prefix(count)), expectedLeaf: Array(expectedLeaf.prefix(count)),
      expectedCA: Array(expectedCA.prefix(count)),
      expectedCertificates: Array(expectedCertificates.prefix(count)), registry: registry,
      isStale: isStale, mayHaveAnotherPath: mayHaveAnotherPath)
  }

  /// Whether a newer registry could change the verdict: the host's pins or the registry itself are stale, the
  /// host is not listed yet, or the registry's time could make a certificate valid that a slow clock
  /// considers not valid yet.
  package var couldChangeAfterRefresh: Bool {
    guard decision == .refuse else { return false }
    return switch outcome {
    case .mismatch, .noLivePin, .uncheckable, .clientTooOld, .registryExpired, .unlisted: true
    case .chainRejected(let fault): fault.isEarly
    default: false
    }
  }
}

extension PinEvaluation: Error {}

extension PinEvaluation: CustomStringConvertible {
  /// One line: the host, what happened, and the most useful hint.
  public var description: String {
    let text =
      switch outcome {
      case .matched: "pins match"
      case .unlisted: "the host is on no pin list"
      case .chainRejected(let fault): "chain not valid: \(fault)"
      case .mismatch(.leaf): "the server's key is not pinned"
      case .mismatch(.ca): "no CA on the validated path is pinned"
      case .mismatch(.certificate): "no certificate on the validated path is a pinned one"
      case .noLivePin: "the host is listed, and none of its pins can be used"
      case .uncheckable(let role): "its entry demands \(role), which pinnedKeysOnly cannot check"
      case .clientTooOld(let names):
        "its entry demands what this version does not know: "
          + ForeignText.list(names)
      case .registryExpired(let time): "the registry expired on \(RFC3339.text(time))"
      case .denied(let pin): "key \(pin) is denied"
      case .clearText(let scheme): "\(scheme) is clear text"
      case .unreadableHost(let error): "\(error)"
      case .unjudged(let reason): "connection not judged: \(reason)"
      }
    let verb = decision == .accept ? "accepted" : "refused"
    // A redirect can name any host: no text of its may pass for a hint, or for a line of its own.
    let isPlain = host.utf8.allSatisfy { 0x21...0x7e ~= $0 && $0 != UInt8(ascii: ";") }
    let name = isPlain ? host : ForeignText(host).description
    return "\(verb) \(name): \(text)\(hint.map { "; hint: \($0)" } ?? "")"
  }

  /// What to do about it, if anything helps.
  public var hint: String? {
    guard decision == .refuse else { return nil }
    return switch outcome {
    case .chainRejected(let fault) where fault.isEarly: "is the device's clock behind?"
    // Never suggest a mode or a session that checks less: a man in the middle causes the same
    // message.
    case .chainRejected(let fault) where fault.lacksAnchor:
      "if the server is under a CA of your own, pass that CA's certificate with .anchors"
    case .unlisted: "add the host to the list"
    case .registryExpired:
      "is the device's clock ahead? is the registry reachable, and does its server still sign?"
    case .uncheckable: "list leaf pins alone for this host"
    case .clientTooOld: "update the app"
    case .clearText: "use https"
    default: nil
    }
  }

  /// The rule that decided, as one word for logs and reports.
  public var rule: String {
    switch outcome {
    case .matched: "matched"
    case .unlisted: "unlisted-host"
    case .chainRejected(.wrongHost): "host-name"
    case .chainRejected: "chain"
    case .mismatch(.leaf): "leaf-pin"
    case .mismatch(.ca): "ca-pin"
    case .mismatch(.certificate): "certificate-pin"
    case .noLivePin: "expired-pins"
    case .uncheckable: "trust-mode"
    case .clientTooOld: "client-too-old"
    case .registryExpired: "expired-registry"
    case .denied: "denied-key"
    case .clearText: "clear-text"
    case .unreadableHost: "unreadable-host"
    case .unjudged: "unjudged"
    }
  }
}

extension PinEvaluation.PinRole: CustomStringConvertible {
  public var description: String {
    switch self {
    case .leaf: "leaf pins"
    case .ca: "CA pins"
    case .certificate: "whole certificates"
    }
  }
}
