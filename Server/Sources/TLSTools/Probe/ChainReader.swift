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
  /// A chain counts that is valid as a whole at one of these Unix times; none: by the machine's clock.
  let times: [Int64]

  /// - Throws: `handshake` when the server showed no certificate at all.
  func read(_ session: OpaquePointer) throws(ProbeError) -> ProbeVerdict {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    guard let leaf = SSL_get0_peer_certificate(session) else { throw ChainJudge.nothingShown }
    let isNamed = HostCheck.matches(leaf, host)
    do throws(CertificateError) {
      let presented = try ChainJudge.certificates(in: SSL_get_peer_cert_chain(session))
      let reason: String
      let judgement = try judge(presented)
      switch judgement {
      case .valid(let path) where isNamed: return .trusted(path)
      case .valid: reason = "the certificate is not for \(host)"
      case .unreadable:
        return .untrusted(reason: "a key on the validated path cannot be read", leaf: nil)
      case .invalid(let fault): reason = isNamed ? fault : "\(fault), and it is not for \(host)"
      }
      let isChainGood = if case .valid = judgement { true } else { false }
      let pin = presented.first.flatMap { try? SPKIPin(certificateDER: $0.der) }
      return .untrusted(reason: reason, leaf: pin, isChainGood: isChainGood)
    } catch { throw .local(reason: error.description) }
  }

  /// What a chain is worth, whatever its name.
  private enum Judgement {
    case valid([PathCertificate])
    case unreadable
    case invalid(String)
  }

  /// Judges at one time after the other; if the chain is valid at none, the first says why.
  private func judge(_ presented: [Certificate]) throws(CertificateError) -> Judgement {
    let key = VerdictCache.Key(presented, anchors: anchors)
    var fault: String?
    for now in times.isEmpty ? [Int64(Foundation.time(nil))] : times {
      if let path = cache.path(for: key, at: now) { return .valid(path) }
      let outcome = try ChainJudge(anchors: anchors, time: now).verify(presented)
      guard let certificates = outcome.path else {
        fault = fault ?? outcome.verification.reason
        continue
      }
      guard let path = cache.described(certificates) else { return .unreadable }
      cache.keep(path, for: key, at: now)
      return .valid(path)
    }
    return .invalid(fault ?? "")
  }
}
