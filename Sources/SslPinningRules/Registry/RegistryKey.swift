/// One readable entry of a registry's `keys`.
public struct RegistryKey: Hashable, Sendable {
  /// The hosts that the key is for.
  public let pattern: HostPattern
  /// The key, or why it cannot be read: then its hosts stay listed, and are refused unless another
  /// entry gives them a readable pin.
  public let pin: Result<SPKIPin, PinSyntaxError>
  /// Unix time in seconds after which the key counts as expired; `nil` means never.
  public let expires: Int64?
  /// The endpoint that the server watches for this entry, where it says so.
  public let fqdn: String?

  /// An entry.
  public init(
    pattern: HostPattern, pin: Result<SPKIPin, PinSyntaxError>, expires: Int64? = nil,
    fqdn: String? = nil
  ) {
    self.pattern = pattern
    self.pin = pin
    self.expires = expires
    self.fqdn = fqdn
  }
}
