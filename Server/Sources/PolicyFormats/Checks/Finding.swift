import SslPinningRules

/// Trouble that a check found, before users do.
public struct Finding: Hashable, Sendable {
  /// What is wrong.
  public let rule: CheckRule
  /// The host, pattern or endpoint; empty if it is about a whole list.
  public let host: String
  /// The list, as it was named; empty if it is about servers alone.
  public let policy: String
  /// What is so, and a hint.
  public let message: String
  /// How bad it is.
  public let severity: Severity
  /// Where it stands in a tree of sources, if one was searched; ``policy`` is the file then.
  public let site: Site?

  /// A finding of its rule's own severity, or of another one.
  public init(
    _ rule: CheckRule, host: String = "", policy: String = "", _ message: String,
    severity: Severity? = nil, site: Site? = nil
  ) {
    self.rule = rule
    self.host = host
    self.policy = policy
    self.message = message
    self.severity = severity ?? rule.severity
    self.site = site
  }

  /// A place in a file of sources.
  public struct Site: Hashable, Sendable {
    /// Counted from 1; `nil` if the file has no lines.
    public let line: Int?
    /// Who has the trouble.
    public let affects: AffectedUsers

    /// A place.
    public init(line: Int?, affects: AffectedUsers) { (self.line, self.affects) = (line, affects) }
  }

  /// How bad a finding is.
  public enum Severity: String, Hashable, Sendable, Comparable, CaseIterable {
    /// Worth knowing.
    case info
    /// Nobody is refused now, and somebody may be soon, or is protected less than it seems.
    case warning
    /// Users are refused, or a host that seems to be pinned is not.
    case error

    public static func < (left: Severity, right: Severity) -> Bool { left.rank < right.rank }

    private var rank: Int {
      switch self {
      case .info: 0
      case .warning: 1
      case .error: 2
      }
    }
  }
}

/// Who is locked out, or let down, by what stands in a file.
public enum AffectedUsers: String, Hashable, Sendable, CaseIterable {
  /// Whoever has installed the app.
  case everybody
  /// Whoever has it on one of Apple's systems.
  case apple = "ios"
  /// Whoever has it on Android.
  case android
  /// Those who build it, and their scripts.
  case developers
}

/// What `check` and `doctor` look for. The raw value is the name in every output, and does not change.
public enum CheckRule: String, Hashable, Sendable, CaseIterable {
  /// A host that is demanded a pin of which none counts: clients refuse every server.
  case noUsablePin = "no-usable-pin"
  /// A host whose one pin is its only way in.
  case noBackup = "no-backup-pin"
  /// One pin twice in one list.
  case duplicatePin = "duplicate-pin"
  /// A pin that is demanded of leaf and CA at once.
  case leafAndCA = "same-pin-leaf-and-ca"
  /// Something in the list that nothing reads.
  case unreadable = "unreadable-entry"
  /// A host that seems to be pinned and is not.
  case notPinned = "not-pinned"
  /// A pin that ends.
  case pinExpires = "pin-expires"
  /// The day from which a format pins nothing any more.
  case pinningEnds = "pinning-ends"
  /// The day from which clients refuse the whole list.
  case listExpires = "list-expires"
  /// A wildcard for all hosts of a public suffix, such as `*.co.uk`.
  case publicSuffix = "public-suffix"
  /// A wider pattern that adds keys to a host with its own.
  case widened = "widened-host"
  /// Lists of which one lets in servers of a host that another refuses.
  case drift = "drift"
  /// A host that one list pins and another does not.
  case missingHost = "missing-host"
  /// A mirror of a registry that does not serve what the registry does.
  case mirror = "mirror-differs"
  /// A server, or an address of it, that could not be asked.
  case unreachable = "unreachable"
  /// A server that offers no version of TLS that clients connect with.
  case outdatedTLS = "outdated-tls"
  /// A server whose chain or name no client accepts, pins aside.
  case untrusted = "untrusted-chain"
  /// CAs that a list trusts, and that are not the system's.
  case otherAnchors = "other-cas"
  /// Clients of a list would refuse the server.
  case refused = "refused"
  /// Clients would refuse the server with the key or the certificate that is to come.
  case backupRefused = "backup-refused"
  /// A certificate that ends, and a list that lets in no other key.
  case leafExpires = "leaf-expires"
  /// A CA that ends before the certificates that need it.
  case authorityEnds = "ca-expires"
  /// A server with several keys, by kind or by address, of which one is let in.
  case oneKeyOfTwo = "one-key-of-two"
  /// Endpoints that share a key: whoever steals it has all of them.
  case sharedKey = "shared-key"
  /// A root that a trust store should have and does not.
  case missingRoot = "missing-root"
  /// Code that accepts servers which it should refuse, pins or not.
  case disabled = "pinning-disabled"
  /// A pin that is only reported.
  case reportOnly = "report-only"
  /// Whole certificates that are compared: a renewal with the same key is refused.
  case wholeCertificate = "whole-certificate"
  /// A certificate among the sources that ends.
  case bundledCertificate = "bundled-certificate"
  /// Leaf pins alone, which every renewal has to keep.
  case keyReuse = "leaf-key-reuse"
  /// Clear text to a host that is pinned.
  case clearText = "clear-text"
  /// What counts in debug builds alone.
  case debugBuilds = "debug-builds"
  /// A pin whose host cannot be told.
  case looseLiteral = "pin-without-host"
  /// A pin that stands for one which was to follow.
  case placeholder = "placeholder-pin"
  /// A part of the sources that was not read.
  case notSearched = "not-searched"

  /// Those that only `doctor` finds, since a list does not show them.
  public static let ofSources: Set<CheckRule> = [
    .disabled, .wholeCertificate, .bundledCertificate, .keyReuse, .clearText,
    .debugBuilds, .looseLiteral, .placeholder, .notSearched,
  ]

  /// How bad it is unless a finding says otherwise.
  public var severity: Finding.Severity {
    switch self {
    case .noUsablePin, .leafAndCA, .notPinned, .publicSuffix, .unreachable, .outdatedTLS,
      .untrusted, .refused, .backupRefused, .oneKeyOfTwo, .missingRoot, .disabled:
      .error
    case .noBackup, .duplicatePin, .unreadable, .pinExpires, .pinningEnds, .listExpires, .widened,
      .drift, .missingHost, .mirror, .leafExpires, .authorityEnds, .reportOnly, .wholeCertificate,
      .bundledCertificate, .clearText, .placeholder, .notSearched:
      .warning
    case .otherAnchors, .sharedKey, .keyReuse, .debugBuilds, .looseLiteral: .info
    }
  }

  /// One sentence for reports that list rules.
  public var summary: String {
    switch self {
    case .noUsablePin: "A host has no pin that counts, and clients refuse every server of it."
    case .noBackup: "A host has one way in: a lost or renewed key locks everybody out."
    case .duplicatePin: "A pin stands twice in a list, which looks like a backup and is none."
    case .leafAndCA: "A pin is demanded of the leaf and of its CA at once, which no chain has."
    case .unreadable: "An entry is not what it seems, and no client reads it."
    case .notPinned: "A host seems to be pinned and is not."
    case .pinExpires: "A pin ends soon, or has ended."
    case .pinningEnds: "From this day on the format pins the host no longer."
    case .listExpires: "From this day on clients refuse the whole list."
    case .publicSuffix: "A wildcard covers hosts of other people."
    case .widened: "A wider pattern lets further keys into a host that lists its own."
    case .drift: "One list lets in servers of a host that another refuses."
    case .missingHost: "A host is pinned by one list and not by another."
    case .mirror: "A mirror is silent, or serves another statement than the registry does."
    case .unreachable: "A server, or one of its addresses, could not be asked."
    case .outdatedTLS: "A server offers TLS 1.1 at most, and no client connects."
    case .untrusted: "A server's chain or name is not valid; every client refuses it."
    case .otherAnchors: "Clients of this list trust other CAs than the system's alone."
    case .refused: "Clients of this list would refuse the server now."
    case .backupRefused: "Clients would refuse the server with its next key or certificate."
    case .leafExpires: "A certificate ends soon, and the list lets in no other key."
    case .authorityEnds: "A CA ends before its certificate: every client refuses the server then."
    case .oneKeyOfTwo:
      "A server has several keys, by kind or by address, and clients that are shown another one refuse it."
    case .sharedKey: "Endpoints share a key."
    case .missingRoot: "A trust store lacks a root that it should have."
    case .disabled: "Code accepts servers that it should refuse: anybody may get in."
    case .reportOnly: "A missing pin is only reported, and the server is let in."
    case .wholeCertificate:
      "Whole certificates are compared: each renewal locks out every installed version."
    case .bundledCertificate: "A certificate among the sources ends."
    case .keyReuse: "Leaf pins alone: each renewal has to keep the key."
    case .clearText: "Clear text is permitted to a host that is pinned."
    case .debugBuilds: "Debug builds trust more, or pin less, than those that users have."
    case .looseLiteral: "A pin in code whose host cannot be told."
    case .placeholder: "A pin of an example, which no server's key has."
    case .notSearched: "A part of the sources was not read."
    }
  }
}
