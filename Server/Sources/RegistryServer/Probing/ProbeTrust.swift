import Dispatch
import HTTPServing
import RegistryCore
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
    do throws(ClientIdentityFault) {
      return try ServerIdentity(certificateFile: certificate, keyFile: key)
    } catch { throw .vantage(name: name, reason: error.reason) }
  }
}

extension TLSConfiguration {
  /// What endpoints that ask for a certificate are shown; `nil` for nothing.
  ///
  /// - Throws: ``AnchorsError/client(reason:)``.
  var clientIdentity: ServerIdentity? {
    get throws(AnchorsError) {
      guard let clientCertificate, let clientKey else { return nil }
      do throws(ClientIdentityFault) {
        return try ServerIdentity(certificateFile: clientCertificate, keyFile: clientKey)
      } catch { throw .client(reason: error.reason) }
    }
  }
}

/// Why a certificate cannot be shown.
private struct ClientIdentityFault: Error {
  let reason: String
}

extension ServerIdentity {
  /// A certificate with its chain, and its key.
  fileprivate init(
    certificateFile: String, keyFile: String
  ) throws(ClientIdentityFault) {
    let identity: ListenerIdentity
    do throws(HTTPServerError) {
      identity = try ListenerIdentity(certificateFile: certificateFile, keyFile: keyFile)
    } catch { throw ClientIdentityFault(reason: "\(error)") }
    do throws(CertificateError) {
      try self.init(
        certificates: Certificate.certificates(inPEM: identity.certificatePEM),
        key: PrivateKey(pem: identity.keyPEM))
    } catch { throw ClientIdentityFault(reason: "\(error)") }
  }
}

/// The anchors that endpoints are judged by.
///
/// - Own anchors replace the system's, and are read once.
/// - The system's are read again every hour, so that an update of the machine's roots needs no
///   restart. Where that fails the ones read before stay in force. Reading takes a while: meanwhile,
///   too, and nobody waits for it.
final class TrustAnchorCache: Sendable {
  private struct Held {
    var anchors: ChainValidator
    var read: ContinuousClock.Instant
    var isBeingRead = false
  }

  private let isSystem: Bool
  private let held: Locked<Held>

  /// - Parameter file: one or more certificates in PEM, or one in DER; `nil` for the system's.
  init(file: String?) throws(AnchorsError) {
    let name = file ?? "the system's trust store"
    var bytes: [UInt8] = []
    if let file {
      do throws(SmallFile.Failure) { bytes = try SmallFile.read(file, limit: 16 << 20) } catch {
        throw .unusable(path: name, reason: "\(error)")
      }
    }
    let anchors: ChainValidator
    do throws(CertificateError) {
      anchors = file == nil ? try .system() : try ChainValidator(anchorsIn: bytes)
    } catch { throw .unusable(path: name, reason: "\(error)") }
    isSystem = file == nil
    held = Locked(Held(anchors: anchors, read: .now))
  }

  /// The anchors to judge by now.
  func current() -> ChainValidator {
    let (anchors, isDue) = held.withLock { held in
      let isDue = isSystem && !held.isBeingRead && held.read.duration(to: .now) > .seconds(3600)
      if isDue { held.isBeingRead = true }
      return (held.anchors, isDue)
    }
    if isDue { DispatchQueue.global().async { [self] in readAgain() } }
    return anchors
  }

  private func readAgain() {
    let new = try? ChainValidator.system()
    held.withLock { held in
      held = Held(anchors: new ?? held.anchors, read: .now)
    }
  }
}

/// Why endpoints cannot be judged.
public enum AnchorsError: Error, Equatable, Sendable {
  /// The anchors at this path cannot be used.
  case unusable(path: String, reason: String)
  /// A vantage point cannot be used.
  case vantage(name: String, reason: String)
  /// The certificate for endpoints that ask for one cannot be used.
  case client(reason: String)
}

extension AnchorsError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unusable(let path, let reason):
      "the anchors in \(path) cannot be used: \(reason)"
        + (reason.contains("hint:") ? "" : "; hint: tls.anchors is a PEM file")
    case .client(let reason): "tls.client_certificate cannot be used: \(reason)"
    case .vantage(let name, let reason): "the vantage point \(name) cannot be used: \(reason)"
    }
  }
}

extension AnchorsError: ExplainedError {}
