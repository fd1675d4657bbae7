import Foundation
import SslPinningPlatform
import SslPinningRules

extension FixedPins {
  /// What of a bundled certificate is pinned. Either way it may be the server's, an intermediate or
  /// a root: it is looked for on the whole validated path.
  public enum CertificatePart: Hashable, Sendable {
    /// Its key: a renewed certificate with the same key still matches.
    case publicKey
    /// All of it: its renewal is refused. Ship the next certificate before the server shows it.
    case wholeCertificate
  }

  /// Pins bundled certificates beside the usual judgement: the servers must be valid under `trust`,
  /// and one of the certificates, or its key, must stand on the path.
  ///
  /// - Parameters:
  ///   - certificates: each in DER, as ``BundledCertificates`` reads them.
  ///   - part: the key, or the whole certificate.
  ///   - hosts: names, addresses or patterns (`*.name`, `**.name`), all pinned alike.
  ///   - trust: who vouches for the servers first.
  ///   - unlistedHosts: what happens to other hosts.
  /// - Throws: ``FixedPinsError``.
  public static func certificates(
    _ certificates: [Data], pinning part: CertificatePart, hosts: [String],
    trust: TrustMode = .system, unlistedHosts: UnlistedHosts = .refuse
  ) throws(FixedPinsError) -> FixedPins {
    guard !certificates.isEmpty else { throw .noPins(host: nil) }
    var pins = PinSet()
    var fingerprints: Set<CertificateFingerprint> = []
    for (index, certificate) in certificates.enumerated() {
      let certificate = [UInt8](certificate)
      do throws(CertificateSyntaxError) {
        pins.insert(Pin(try SPKIPin(certificateDER: certificate)))
        fingerprints.insert(try CertificateFingerprint(certificateDER: certificate))
      } catch { throw .badCertificate(index: index, error) }
    }
    guard !hosts.isEmpty else { throw .noPins(host: nil) }
    var entries: [PolicyEntry] = []
    for host in hosts {
      let pattern = try pattern(host)
      entries.append(
        part == .publicKey
          ? PolicyEntry(pattern, leaf: pins, ca: pins, match: .any)
          : PolicyEntry(pattern, certificates: fingerprints))
    }
    return FixedPins(entries: entries, trust: trust, unlistedHosts: unlistedHosts)
  }

  /// Trusts these certificates and nobody else: one's own CA as the only anchor, or a server's
  /// self-signed certificate. A path must end at one of them; dates and names are checked as ever.
  ///
  /// This is AFNetworking's certificate mode. There it held for every host; here say which.
  ///
  /// - Parameters:
  ///   - certificates: each in DER, as ``BundledCertificates`` reads them.
  ///   - hosts: names, addresses or patterns (`*.name`, `**.name`).
  /// - Note: on Apple platforms App Transport Security must have an exception for these hosts: it
  ///   asks the system's anchors before anybody else is asked.
  /// - Throws: ``FixedPinsError``.
  public static func anchors(
    _ certificates: [Data], hosts: [String]
  ) throws(FixedPinsError) -> FixedPins {
    // The anchor stands on every valid path, so demanding it there changes no verdict: it says
    // which hosts are meant.
    try Self.certificates(
      certificates, pinning: .wholeCertificate, hosts: hosts, trust: .anchors(certificates))
  }
}
