import SslPinningPlatform
import SslPinningRules

extension TrustAnchors {
  /// Whether a client without pins would believe these certificates for a host: a valid path leads from the
  /// first of them to an anchor, and it has the host's name.
  ///
  /// Hazard: it does not say that anybody holds the key. Whoever has seen a chain can show it about.
  ///
  /// - Parameters:
  ///   - certificates: in DER, the leaf first.
  ///   - time: Unix seconds.
  package func believe(_ certificates: [[UInt8]], for host: HostName, at time: Int64) -> Bool {
    do throws(CertificateError) {
      var parsed: [Certificate] = []
      for der in certificates { parsed.append(try Certificate(der: der)) }
      guard let leaf = parsed.first,
        try ChainJudge(anchors: self, time: time).verify(parsed).path != nil
      else { return false }
      let x509 = try leaf.parsed()
      return withExtendedLifetime(x509) { HostCheck.matches(x509.pointer, host) }
    } catch { return false }
  }
}
