import Pinning

/// What the operator configured about one document, replaced as a whole when it is read again.
struct KeeperSettings: Sendable {
  var configuration: DocumentConfiguration
  var rule: ConfirmationRule
  var approval: ApprovalMode
  /// The vantage points that have to agree on a new key.
  var vantages: Set<String>

  init(_ configuration: DocumentConfiguration, tls: TLSConfiguration) {
    self.configuration = configuration
    rule = ConfirmationRule(tls)
    approval = tls.approval
    vantages = Set([Observation.direct] + tls.vantagePoints.map(\.name))
  }
}
