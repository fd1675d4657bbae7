import SslPinningPlatform
import TLSTools

extension RedisDSN {
  /// What the chain of a Redis has to end in, as it is now.
  ///
  /// - Throws: ``StoreError/invalidDSN(reason:hint:)``.
  func trustAnchors() throws(StoreError) -> ChainValidator {
    var bytes: [UInt8]?
    if let anchors {
      do throws(SmallFile.Failure) { bytes = try SmallFile.read(anchors, limit: 16 << 20) } catch {
        throw unusable("\(error)")
      }
    }
    do throws(CertificateError) {
      return if let bytes { try ChainValidator(anchorsIn: bytes) } else { try .system() }
    } catch { throw unusable("\(error)") }
  }

  private func unusable(_ reason: String) -> StoreError {
    let name = anchors ?? "the system"
    return .invalidDSN(
      reason: "asks for TLS, and the anchors in \(name) cannot be used: \(reason)",
      hint: "?ca=FILE names a PEM file")
  }
}
