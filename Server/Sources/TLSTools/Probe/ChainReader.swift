import CSslPinningOpenSSL
import Foundation
import SslPinningPlatform
import SslPinningRules

/// Reads the chain of a finished handshake as decisions need it, and judges it: like ``ChainJudge``,
/// but each distinct chain once in a while instead of every time.
///
/// - The name is checked in every handshake; only the judgement on the chain is kept
///   (``VerdictCache``), and only a good one.
struct ChainReader: Sendable {
  let host: HostName
  let anchors: TrustAnchors
  let cache: VerdictCache
  /// Judges validity at this Unix time; `nil`: by the machine's clock.
  let time: Int64?

  /// - Throws: `handshake` when the server showed no certificate at all.
  func read(_ session: OpaquePointer) throws(ProbeError) -> ProbeVerdict {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    guard let leaf = SSL_get0_peer_certificate(session) else { throw ChainJudge.nothingShown }
    let isNamed = HostCheck.matches(leaf, host)
    do throws(CertificateError) {
      let presented = try ChainJudge.certificates(in: SSL_get_peer_cert_chain(session))
      let now = time ?? Int64(Foundation.time(nil))
      let key = VerdictCache.Key(presented, anchors: anchors)
      let reason: String
      var isChainGood = true
      if let path = cache.path(for: key, at: now) {
        if isNamed { return .trusted(path) }
        reason = "the certificate is not for \(host)"
      } else {
        let outcome = try ChainJudge(anchors: anchors, time: now).verify(presented)
        if let certificates = outcome.path {
          guard let path = cache.described(certificates) else {
            return .untrusted(reason: "a key on the validated path cannot be read", leaf: nil)
          }
          cache.keep(path, for: key, at: now)
          if isNamed { return .trusted(path) }
          reason = "the certificate is not for \(host)"
        } else {
          isChainGood = false
          reason =
            isNamed
            ? outcome.verification.reason
            : "\(outcome.verification.reason), and it is not for \(host)"
        }
      }
      let pin = presented.first.flatMap { try? SPKIPin(certificateDER: $0.der) }
      return .untrusted(reason: reason, leaf: pin, isChainGood: isChainGood)
    } catch { throw .local(reason: error.description) }
  }
}
