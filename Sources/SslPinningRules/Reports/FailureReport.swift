import CanonicalJSON

/// A verdict that is worth telling a collector.
///
/// - Reported: refusals after a handshake, and what was let through all the same: a missing pin under
///   report-only, a connection that nobody judged.
/// - Not reported: accepted connections, and requests that never came to a handshake (clear text,
///   an unreadable host). No server had a part in them.
/// - Says of the app's request the host and the port, never path, query, headers or body.
package struct FailureReport: Hashable, Sendable {
  /// The most certificates, and the most bytes of them in all, that a report carries, leaf first.
  package static let mostCertificates = 10
  package static let mostCertificateBytes = 32 << 10
  /// The most pins in each of its lists.
  package static let mostPins = 64

  package let evaluation: PinEvaluation
  /// The server's port, where the caller knows it.
  package let port: Int?
  /// The pattern of the entry that listed the host, where the caller knows it.
  package let pattern: HostPattern?
  /// The certificates as the server sent them, in DER, leaf first; none where they are not at hand.
  package let chain: [[UInt8]]

  /// A report; `nil` where the verdict is not to be reported.
  ///
  /// - Parameter includesForgiven: whether what report-only let through is.
  package init?(
    _ evaluation: PinEvaluation, port: Int? = nil, pattern: HostPattern? = nil,
    chain: [[UInt8]] = [], includesForgiven: Bool
  ) {
    switch (evaluation.outcome, evaluation.decision) {
    case (.matched, _), (.unlisted, .accept), (.clearText, _), (.unreadableHost, _): return nil
    case (.unjudged, _), (_, .refuse): break
    case (_, .accept): guard includesForgiven else { return nil }
    }
    self.evaluation = evaluation
    self.port = port
    self.pattern = pattern
    self.chain = chain
  }

  /// What the report is merged by.
  package var key: ReportKey {
    ReportKey(
      host: evaluation.host, port: port, rule: evaluation.rule, leaf: evaluation.presented.first,
      isRefused: evaluation.decision == .refuse)
  }
}
