import RegistryCore
import SslPinningRules

/// What the operator configured about one document, replaced as a whole when it is read again.
struct CoordinatorSettings: Sendable {
  var configuration: DocumentConfiguration
  var rule: ConfirmationRule
  var approval: ApprovalMode
  /// Within how many milliseconds a changed key is published where an endpoint says nothing else.
  var interval: Int64
  /// Who probes: the vantage points, and this server itself.
  var vantages: Set<String>
  /// How many of them settle something.
  var quorum: Int
  /// CAs that were named beforehand for every endpoint.
  var issuers: Set<SPKIPin>
  /// What many endpoints that change at once lead to.
  var massChange: MassChangeMode

  init(_ configuration: DocumentConfiguration, tls: TLSConfiguration) {
    self.configuration = configuration
    rule = ConfirmationRule(tls)
    approval = tls.approval
    interval = tls.interval
    vantages = Set([ProbeObservation.direct] + tls.vantagePoints.map(\.name))
    quorum = tls.quorum ?? DecisionContext.quorum(of: tls.vantagePoints.count)
    issuers = tls.issuers.pins
    massChange = tls.massChange
  }
}
