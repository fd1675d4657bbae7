import CSslPinningOpenSSL
import Foundation
import SslPinningPlatform
import SslPinningRules

/// A certificate that a probe saw, with its pin.
public struct ProbedCertificate: Sendable, Hashable {
  public let certificate: Certificate
  /// SHA-256 over the certificate's SubjectPublicKeyInfo; nil if the strict reader refuses an encoding
  /// that OpenSSL accepted.
  public let pin: SPKIPin?

  init(_ certificate: Certificate) {
    self.certificate = certificate
    pin = try? SPKIPin(certificateDER: certificate.der)
  }
}

/// What a server showed, and whether to trust it.
///
/// Chain and name are checked separately: an expired, self-signed or wrongly named server still has a
/// result. Hazard: only `isTrusted` says that the server is genuine; the pins of an untrusted result
/// may be an attacker's.
public struct ProbedServer: Sendable, Hashable {
  /// OpenSSL's verdict on the chain, without the name.
  public struct Verification: Sendable, Hashable {
    /// `X509_V_ERR_…`; 0 is good.
    public let code: Int32
    /// OpenSSL's text for the code.
    public let reason: String
    /// Which certificate of the path failed; 0 is the leaf.
    public let depth: Int

    public var isGood: Bool { code == 0 }
  }

  public let target: ProbeTarget
  /// The address that answered.
  public let address: Endpoint
  /// Such as `TLSv1.3`.
  public let tlsVersion: String
  /// OpenSSL's name of the cipher suite.
  public let cipher: String
  /// The server's own certificate.
  public let leaf: ProbedCertificate
  /// As sent, the leaf first: the rest may be in any order and have extra certificates.
  public let presented: [ProbedCertificate]
  /// The validated path from the leaf to the anchor; nil if no valid path was found.
  public let validated: [ProbedCertificate]?
  public let verification: Verification
  /// Whether the leaf carries the target's name in subjectAltName (RFC 9525: never the common
  /// name, and `*` only as a whole label).
  public let nameMatches: Bool

  /// Whether a client without pins would talk to this server.
  public var isTrusted: Bool { validated != nil && nameMatches }

  /// Why no client gets as far as its chain, in words behind its name; nil if clients do.
  ///
  /// Clients need TLS 1.2, on Apple's systems by App Transport Security and on others by OpenSSL's security level. A probe
  /// takes older versions, to report what is there, and a server agrees to one only if it offers no newer one.
  public var obstacle: String? {
    ["TLSv1", "TLSv1.1"].contains(tlsVersion)
      ? "offers \(tlsVersion) at most, and clients connect with TLS 1.2 or newer: none reaches it"
      : nil
  }

  /// What is wrong, in one line; nil if nothing is.
  public var complaint: String? {
    ShownChain.complaint(
      verification.isGood ? nil : verification.reason, isNamed: nameMatches, host: target.host)
  }
}

/// The verdict on the chain that a server showed.
package enum ProbeVerdict: Sendable, Hashable {
  /// A client without pins would talk to this server. Carries the validated path from the leaf to the anchor.
  case trusted([PathCertificate])
  /// The chain proves nothing, for this reason. The leaf's pin, if readable, may be an attacker's.
  /// `isChainGood`: only the name is wrong.
  case untrusted(reason: String, leaf: SPKIPin?, isChainGood: Bool = false)
}

/// One certificate of a validated path, as far as decisions and people need it.
package struct PathCertificate: Sendable, Hashable {
  /// SHA-256 over the certificate's SubjectPublicKeyInfo.
  package let pin: SPKIPin
  /// As one line (RFC 2253), for people; never compare by it.
  package let subject: String
  /// As one line (RFC 2253), for people; never compare by it.
  package let issuer: String
  package let validity: Validity

  package init(pin: SPKIPin, subject: String, issuer: String, validity: Validity) {
    self.pin = pin
    self.subject = subject
    self.issuer = issuer
    self.validity = validity
  }
}

/// Who caused the failure of a route.
package enum ProbeBlame: Sendable, Hashable {
  /// The server, or this machine.
  case server
  /// The proxy: the server was never asked.
  case proxy
  /// One of the two: the proxy got the request and did not answer in time.
  case proxyOrServer
}

/// What one address of a server showed on one route.
package struct ProbeFinding: Sendable, Hashable {
  /// The index of the requested route.
  package let route: Int
  /// The address that was dialled; `nil` if a proxy resolved the name, or there was none.
  package let address: Endpoint?
  package let outcome: Result<ProbeVerdict, ProbeError>
  /// The address that a proxy said it dialled: its word alone.
  package var dialledThere: String?
  /// In how many milliseconds the server proved its key; 0 if it did not.
  package var took: Int64 = 0
  /// The kind of key that was asked for; `nil` if the server chose.
  package var keyType: CertificateKeyKind?
  /// Whether the address is from an earlier lookup, because this one did not answer in time.
  package var isRemembered = false
  /// Other addresses that the name has, and that were not dialled.
  package var leftOut: Set<Endpoint> = []
  /// Whether the handshake was finished. One that ended before (`provedItsKeyBeforeItRefused`) proves the leaf's key alone:
  /// the rest of the chain may be another's.
  package var isFinished = true
  /// Who caused the failure, if it failed.
  package var blame = ProbeBlame.server
  /// Whether it timed out while this program had too much else to do.
  package var wasHeldUp = false

  package init(route: Int, address: Endpoint?, outcome: Result<ProbeVerdict, ProbeError>) {
    self.route = route
    self.address = address
    self.outcome = outcome
  }
}

/// The chain of a finished handshake, to be checked by a validator: the chain and the name separately.
///
/// The certificates are parsed again from the bytes that were sent, because the handshake read them in a library
/// context with too few algorithms (``ProbeClient``).
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
  /// - Parameter fault: what is wrong with the chain, apart from the name.
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
  /// The result of a finished handshake.
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

/// Reads the verdict on the chain of a finished handshake, validating each distinct chain once in a while instead
/// of every time.
///
/// - The name is checked in every handshake. Only good verdicts on chains are cached (``VerdictCache``).
struct ChainReader: Sendable {
  let host: HostName
  let validator: ChainValidator
  let cache: VerdictCache
  /// A chain must be valid as a whole at one of these Unix times; empty means now, by the machine's clock.
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
