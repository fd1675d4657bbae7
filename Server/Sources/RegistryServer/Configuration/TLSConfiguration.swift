import RegistryCore
import TLSTools

/// The signing key, and how endpoints are probed. Durations are milliseconds.
public struct TLSConfiguration: Sendable, Equatable {
  /// The directory with `prv.pem` and `pub.pem`.
  public var directory: String
  /// Within how long a changed key is published, and so how often each endpoint is probed, at
  /// least: 60 s.
  public var interval: Int64
  /// How long one probe may take from the name's resolution to the end of the handshake: 5 s.
  public var timeout: Int64
  /// How many probes must agree before a changed key is published: 3.
  public var confirmations: Int
  /// How soon a probe that saw a new key is repeated: 2 s.
  public var confirmationInterval: Int64
  /// A PEM file with the only anchors that endpoints are judged by; `nil` means the system's.
  public var anchors: String?
  /// How long an old key stays published after it was last seen: 7 days.
  ///
  /// Long enough that a deployment rolled back after a weekend finds its key still listed, short
  /// enough that a key which was replaced because it leaked does not stay for months.
  public var grace: Int64
  /// Who decides about a new key: the rules alone, or a person.
  public var approval: ApprovalMode
  /// From where else endpoints are probed; this server itself always probes.
  public var vantagePoints: [VantagePoint]
  /// How many of the vantage points, this server included, settle something; `nil` is half of them all,
  /// and two at least.
  public var quorum: Int?
  /// ``quorum``, or what it is by default.
  var effectiveQuorum: Int { quorum ?? DecisionContext.quorum(of: vantagePoints.count) }
  /// CAs, by their keys, under which a new key needs no person though no key was seen under them yet.
  public var issuers: NamedIssuers
  /// What many endpoints that change at once lead to.
  public var massChange: MassChangeMode
  /// Which of the addresses that a name leads to are probed.
  public var addresses: AddressSelection
  /// The kinds of key that are asked for beside the one that an endpoint chooses: ECDSA and RSA. Where it has none of a
  /// kind, that costs a connection and no signature.
  public var keyTypes: [CertificateKeyKind]
  /// A PEM file with the certificate that endpoints are shown which ask for one, and its chain.
  public var clientCertificate: String?
  /// The PEM file with that certificate's key.
  public var clientKey: String?

  /// Settings; the defaults are those of the configuration file.
  public init(
    directory: String = "tls", interval: Int64 = 60_000, timeout: Int64 = 5000,
    confirmations: Int = 3,
    confirmationInterval: Int64 = 2000, anchors: String? = nil, grace: Int64 = 7 * 86_400_000,
    approval: ApprovalMode = .automatic, vantagePoints: [VantagePoint] = [],
    quorum: Int? = nil, issuers: NamedIssuers = .none, massChange: MassChangeMode = .alert,
    addresses: AddressSelection = .all, keyTypes: [CertificateKeyKind] = [.ecdsa, .rsa]
  ) {
    self.keyTypes = keyTypes
    self.addresses = addresses
    self.quorum = quorum
    self.issuers = issuers
    self.massChange = massChange
    self.approval = approval
    self.vantagePoints = vantagePoints
    self.directory = directory
    self.interval = interval
    self.timeout = timeout
    self.confirmations = confirmations
    self.confirmationInterval = confirmationInterval
    self.anchors = anchors
    self.grace = grace
  }
}

extension TLSConfiguration {
  /// Milliseconds from the beginning of one probe to the next: the interval, less what confirming a
  /// change takes after the probe that meets it, and a second for the last of these probes. Endpoints whose probes take longer
  /// are probed sooner (``ProbeSchedule``).
  ///
  /// A client asks for a newer list at most once in 10 seconds for a host and its key. So the gap
  /// after an unannounced change is at most the interval and those 10 seconds.
  var pauseBetweenProbes: Int64 {
    max(
      1000,
      interval - Int64(max(1, confirmations) - 1) * confirmationInterval
        - ProbeSchedule.probing)
  }
}

/// Which of the addresses that an endpoint's name leads to are probed.
public enum AddressSelection: String, Sendable, CaseIterable {
  /// Every one: a server farm in the middle of a rotation shows two keys, and both are in use.
  case all
  /// The first that answers.
  case first
}

/// What it leads to that most endpoints, and at least three, show a new key at once.
public enum MassChangeMode: String, Sendable, Hashable, CaseIterable {
  /// One alert that lists them; the keys are published like others.
  case alert
  /// They are held for a person as well, unless a quorum of vantage points vouches for them. It costs what
  /// it says: certificates that one cron job renews with new keys lock users out until a person acts.
  case hold
}

extension ConfirmationRule {
  /// The rule that a configuration amounts to. The window spans three scans at least, so that a
  /// fleet in which few servers have the new key yet gets its chance.
  public init(_ tls: TLSConfiguration) {
    let window = max(
      600_000, 3 * tls.interval, 10 * Int64(tls.confirmations) * tls.confirmationInterval)
    self.init(probes: tls.confirmations, window: window / 1000, grace: tls.grace / 1000)
  }
}
