/// Why a validator cannot be made of a trust mode.
public enum TrustError: Error, Hashable, Sendable {
  /// The anchor at this index of the app's list is not one certificate in DER.
  case malformedAnchor(index: Int)
  /// The system's anchors are asked for, and there are none where the system keeps them.
  case noSystemAnchors(searched: [String])
  /// The platform's library gives no memory or refuses its settings.
  case unavailable(String)
}

extension TrustError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .malformedAnchor(let index):
      "anchor \(index) is not a certificate in DER; hint: decode PEM files first"
    case .noSystemAnchors(let searched):
      "no trusted certificates in \(searched.joined(separator: ", ")); "
        + "hint: install ca-certificates, or pass anchors"
    case .unavailable(let reason): "certificates cannot be validated: \(reason)"
    }
  }
}
