import HTTPServing
import SslPinningPlatform
import SslPinningRules
import TLSTools

extension VantagePoint {
  /// The way to probe from here.
  ///
  /// - Throws: ``AnchorsError/vantage(name:reason:)`` if one of its files cannot be used.
  func route() throws(AnchorsError) -> ProbeRoute {
    guard let security else { return .tunnel(host: host, port: port) }
    let anchors: TrustAnchorCache?
    if security.pins.isEmpty || security.anchors != nil {
      anchors = try TrustAnchorCache(file: security.anchors)
    } else {
      anchors = nil
    }
    let identity = try identity(security)
    var current: (@Sendable () -> ChainValidator)?
    if let anchors { current = { anchors.current() } }
    do throws(CertificateError) {
      let trust = try ProxyTrust(pins: Set(security.pins), anchors: current, identity: identity)
      return .tunnel(host: host, port: port, trust: trust)
    } catch { throw .vantage(name: name, reason: "\(error)") }
  }

  private func identity(
    _ security: Security
  ) throws(AnchorsError) -> ServerIdentity? {
    guard let certificate = security.certificate, let key = security.privateKey else { return nil }
    let identity: ListenerIdentity
    do throws(HTTPServerError) {
      identity = try ListenerIdentity(certificateFile: certificate, keyFile: key)
    } catch { throw .vantage(name: name, reason: "\(error)") }
    do throws(CertificateError) {
      return try ServerIdentity(
        certificates: Certificate.certificates(inPEM: identity.certificatePEM),
        key: PrivateKey(pem: identity.keyPEM))
    } catch { throw .vantage(name: name, reason: "\(error)") }
  }
}
