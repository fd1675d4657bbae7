import Pinning

/// What the operator configured about one document, replaced as a whole when it is read again.
struct KeeperSettings: Sendable {
  var configuration: DocumentConfiguration
  var rule: ConfirmationRule
  var approval: ApprovalMode
  /// Within how many milliseconds a changed key is published where an endpoint says nothing else.
  var interval: Int64
  /// The vantage points that have to agree on a new key.
  var vantages: Set<String>

  init(_ configuration: DocumentConfiguration, tls: TLSConfiguration) {
    self.configuration = configuration
    rule = ConfirmationRule(tls)
    approval = tls.approval
    interval = tls.interval
    vantages = Set([Observation.direct] + tls.vantagePoints.map(\.name))
  }
}
