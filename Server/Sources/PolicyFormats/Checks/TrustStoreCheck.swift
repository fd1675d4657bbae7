import SslPinningRules

/// Whether a trust store has the roots that it should have: the old and the new root of a service that changes its
/// root, on every server that talks to it.
public enum TrustStoreCheck {
  /// A root by its key, with what messages call it.
  public struct Root: Hashable, Sendable {
    /// Its pin.
    public let pin: SPKIPin
    /// A subject or the pin's text.
    public let name: String

    /// A root.
    public init(pin: SPKIPin, name: String) { (self.pin, self.name) = (pin, name) }
  }

  /// A finding for each root that is missing.
  public static func findings(
    store: String, holds pins: Set<SPKIPin>, wanted roots: [Root]
  ) -> [Finding] {
    roots.filter { !pins.contains($0.pin) }.map {
      Finding(
        .missingRoot, host: $0.name, policy: store,
        "no valid root of this key is in the trust store; hint: add the certificate and run update-ca-certificates"
      )
    }
  }
}
