import CSslPinningOpenSSL
import Foundation
import SslPinningPlatform
import SslPinningRules

/// What a server showed in a finished handshake, held against a validator: the chain for itself, the name for itself.
///
/// What is judged is read again from the bytes that were sent: the handshake itself read them in a library context
/// that knows too little (``ProbeClient``).
struct ShownChain {
  /// Borrowed from the session.
  private let leaf: OpaquePointer
  /// As sent, the leaf first.
  let presented: [Certificate]

  /// - Throws: `handshake` if the server showed no certificate at all.
  init(_ session: OpaquePointer) throws(ProbeError) {
    OpenSSLErrors.clear()
    guard let leaf = SSL_get0_peer_certificate(session) else {
      throw .handshake(reason: "the server showed no certificate")
    }
    self.leaf = leaf
    var presented: [Certificate] = []
    let stack = SSL_get_peer_cert_chain(session)
    for index in 0..<max(0, OPENSSL_sk_num(stack)) {
      guard let x509 = OPENSSL_sk_value(stack, index) else { continue }
      do throws(CertificateError) {
        presented.append(try Certificate(copying: OpaquePointer(x509)))
      } catch { throw .local(reason: error.description) }
    }
    self.presented = presented
  }

  func isFor(_ host: HostName) -> Bool {
    defer { OpenSSLErrors.clear() }
    return HostCheck.matches(leaf, host)
  }

  /// - Parameter time: Unix seconds; `nil` is the machine's clock.
  func examined(by validator: ChainValidator, at time: Int64?) -> ChainExamination {
    validator.examine(presented.map(\.der), at: time)
  }

  /// What is wrong with a chain, in one line; `nil` if nothing is.
  ///
  /// - Parameter fault: what is wrong with the chain, the name apart.
  static func complaint(_ fault: String?, isNamed: Bool, host: String) -> String? {
    switch (fault, isNamed) {
    case (nil, true): nil
    case (nil, false): "the certificate is not for \(host)"
    case (let fault?, true): fault
    case (let fault?, false): "\(fault), and it is not for \(host)"
    }
  }
}

extension ProbedServer {
  /// What is to be told of a finished handshake.
  ///
  /// - Throws: `handshake` if the server showed no certificate at all.
  init(
    _ session: OpaquePointer, of target: ProbeTarget, at address: Endpoint,
    by validator: ChainValidator, time: Int64?
  ) throws(ProbeError) {
    let shown = try ShownChain(session)
    guard let leaf = shown.presented.first else {
      throw .handshake(reason: "the server showed no certificate")
    }
    let examined = shown.examined(by: validator, at: time)
    self.init(
      target: target, address: address,
      tlsVersion: SSL_get_version(session).map { String(cString: $0) } ?? "",
      cipher: SSL_get_current_cipher(session).flatMap { SSL_CIPHER_get_name($0) }
        .map { String(cString: $0) } ?? "",
      leaf: ProbedCertificate(leaf),
      presented: shown.presented.map { ProbedCertificate($0) },
      validated: examined.path?.map { ProbedCertificate(Certificate(written: $0)) },
      verification: Verification(
        code: examined.code, reason: examined.fault.map { "\($0)" } ?? "ok", depth: examined.depth),
      nameMatches: (try? HostName(target.host)).map(shown.isFor) ?? false)
  }
}

/// Reads the chain of a finished handshake as decisions need it: each distinct chain is validated once in a while
/// instead of every time.
///
/// - The name is checked in every handshake; only the judgement on the chain is kept
///   (``VerdictCache``), and only a good one.
struct ChainReader: Sendable {
  let host: HostName
  let validator: ChainValidator
  let cache: VerdictCache
  /// A chain counts that is valid as a whole at one of these Unix times; none: by the machine's clock.
  let times: [Int64]

  /// - Throws: `handshake` if the server showed no certificate at all.
  func read(_ session: OpaquePointer) throws(ProbeError) -> ProbeVerdict {
    let shown = try ShownChain(session)
    let isNamed = shown.isFor(host)
    let key = VerdictCache.Key(shown.presented, validator: validator)
    var fault: String?
    for now in times.isEmpty ? [Int64(Foundation.time(nil))] : times {
      var path = cache.path(for: key, at: now)
      if path == nil {
        let examined = shown.examined(by: validator, at: now)
        guard let certificates = examined.path else {
          fault = fault ?? (examined.fault.map { "\($0)" } ?? "no valid path")
          continue
        }
        path = cache.described(certificates.map(Certificate.init(written:)))
        guard let path else {
          return .untrusted(reason: "a key on the validated path cannot be read", leaf: nil)
        }
        cache.keep(path, for: key, at: now)
      }
      fault = nil
      if let path, isNamed { return .trusted(path) }
      break
    }
    return .untrusted(
      reason: ShownChain.complaint(fault, isNamed: isNamed, host: host.description) ?? "",
      leaf: shown.presented.first.flatMap { try? SPKIPin(certificateDER: $0.der) },
      isChainGood: fault == nil)
  }
}
