import SslPinningRules

/// What a chain that an app reported is worth. The higher one counts where both are true.
enum ChainStanding: String, Sendable, CaseIterable, Comparable {
  /// Whoever sent the report may have made it up.
  case unverified
  /// Its leaf's key is published for the host, or was seen there by this server.
  case seen
  /// Its path leads to an anchor of this server and it has the host's name: somebody got it from an
  /// authority.
  case verified

  static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .unverified: 0
    case .seen: 1
    case .verified: 2
    }
  }
}

/// Finds out what a reported chain is worth.
struct ReportedChainJudge: Sendable {
  /// Whether the server's anchors believe certificates for a host.
  let believes: @Sendable (_ certificates: [[UInt8]], _ host: HostName) -> Bool
  /// Whether this server knows a key of a host.
  let knows: @Sendable (SPKIPin, _ host: HostName) async -> Bool

  func standing(of report: CollectedReport) async -> ChainStanding {
    if !report.chain.certificates.isEmpty, believes(report.chain.certificates, report.host) {
      return .verified
    }
    guard let pin = report.chain.leafPin, await knows(pin, report.host) else { return .unverified }
    return .seen
  }
}
