import Foundation
import SslPinningPlatform
import SslPinningRules

// The rules count Unix seconds and bytes, and know no Foundation; an app has dates and data.

extension RegistryStamp {
  /// When the registry's server last confirmed it.
  public var confirmationDate: Date { Date(unixSeconds: confirmed) }
}

extension Pin {
  /// When the pin expires; `nil` means never. It counts for 26 hours longer.
  public var expirationDate: Date? { expires.map { Date(unixSeconds: $0) } }

  /// A pin that expires at this time; with `nil` it never does.
  public init(_ spki: SPKIPin, expirationDate: Date?) {
    self.init(spki, expires: expirationDate.map(\.unixSeconds))
  }
}

extension TrustMode {
  /// One's own certification authorities, as ``BundledCertificates`` reads them; with or without the system's.
  ///
  /// - Warning: an empty list without the system's anchors trusts nothing: every server is refused.
  // Disfavored, so that an empty literal is the case of the same name.
  @_disfavoredOverload
  public static func anchors(_ certificates: [Data], andSystem: Bool = false) -> TrustMode {
    .anchors(certificates.map { [UInt8]($0) }, andSystem: andSystem)
  }
}

extension SPKIPin {
  /// The pin of a certificate: SHA-256 over its SubjectPublicKeyInfo as the bytes stand.
  ///
  /// - Parameter certificate: one certificate in DER, without anything behind it.
  /// - Throws: ``SslPinningRules/CertificateSyntaxError``.
  public init(certificate: Data) throws(CertificateSyntaxError) {
    try self.init(certificateDER: [UInt8](certificate))
  }
}

extension Date {
  package init(unixSeconds: Int64) { self.init(timeIntervalSince1970: TimeInterval(unixSeconds)) }

  /// Whole Unix seconds; dates beyond what they can say are the last, or the first, that they can.
  package var unixSeconds: Int64 {
    let seconds = timeIntervalSince1970.rounded(.down)
    return Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max)
  }
}
