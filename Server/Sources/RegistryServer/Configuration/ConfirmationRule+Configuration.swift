import RegistryCore

extension ConfirmationRule {
  /// The rule that a configuration amounts to. The window spans three scans at least, so that a
  /// fleet in which few servers have the new key yet gets its chance.
  public init(_ tls: TLSConfiguration) {
    let window = max(600_000, 3 * tls.interval, 10 * Int64(tls.confirmations) * tls.confirmationInterval)
    self.init(probes: tls.confirmations, window: window / 1000, grace: tls.grace / 1000)
  }
}
