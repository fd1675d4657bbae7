import CSslPinningOpenSSL
import SslPinningPlatform

/// Which server to probe.
public struct ProbeTarget: Sendable, Hashable, CustomStringConvertible {
  /// The name asked for and checked, in lower case without a trailing dot, or a numeric address
  /// without brackets. A name is also sent as SNI; an address never is (RFC 6066 section 3).
  public let host: String
  public let port: UInt16
  /// Where to connect instead of looking `host` up; tried in order. Empty: look it up.
  public let connectTo: [Endpoint]

  /// - Throws: `invalidTarget` for anything but a DNS name in ASCII or a numeric address, for a
  ///   wildcard, and for port 0.
  public init(
    host: String, port: UInt16 = 443, connectTo: [Endpoint] = []
  ) throws(ProbeError) {
    let bare = host.hasSuffix(".") ? String(host.dropLast()) : host
    // A leading dot would make OpenSSL's name check match every name below it; SubjectName refuses one.
    guard port != 0, let name = try? SubjectName(bare), !name.text.hasPrefix("*") else {
      throw .invalidTarget("\(host):\(port)")
    }
    self.host = name.text
    self.port = port
    self.connectTo = connectTo
  }

  /// Reads `host`, `host:port`, `[v6]:port` or a bare IPv6 address.
  public init(
    parsing text: String, defaultPort: UInt16 = 443, connectTo: [Endpoint] = []
  ) throws(ProbeError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    let isBracketed = text.hasPrefix("[")
    guard isBracketed ? !text.hasSuffix("]") : parts.count == 2 else {
      try self.init(host: text, port: defaultPort, connectTo: connectTo)
      return
    }
    guard let last = parts.last, last.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }),
      let port = UInt16(last)
    else { throw .invalidTarget(text) }
    try self.init(
      host: String(text.dropLast(last.count + 1)), port: port, connectTo: connectTo)
  }

  public var description: String { Endpoint(address: host, port: port).description }
}

/// The kinds of key that a server may have beside each other.
public enum CertificateKeyKind: String, Sendable, Hashable, CaseIterable {
  /// P-256, P-384 or P-521.
  case ecdsa = "ECDSA"
  /// Signed by PKCS #1 v1.5 or PSS.
  case rsa = "RSA"
  /// Ed25519 or Ed448, as private networks have them.
  case eddsa = "EdDSA"

  /// OpenSSL's list of what such keys sign.
  var signatureAlgorithms: String {
    switch self {
    case .ecdsa: "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:ECDSA+SHA1"
    case .rsa:
      "rsa_pss_rsae_sha256:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:rsa_pss_pss_sha256:rsa_pss_pss_sha384"
        + ":rsa_pss_pss_sha512:RSA+SHA256:RSA+SHA384:RSA+SHA512:RSA+SHA1"
    case .eddsa: "ed25519:ed448"
    }
  }
}

extension CertificateKeyKind {
  /// The kind of key that a server showed; `nil` for one that is none of these.
  init?(shownIn session: OpaquePointer) {
    guard let certificate = SSL_get0_peer_certificate(session),
      let key = X509_get0_pubkey(certificate)
    else { return nil }
    switch EVP_PKEY_get_base_id(key) {
    case EVP_PKEY_EC: self = .ecdsa
    case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS: self = .rsa
    case EVP_PKEY_ED25519, EVP_PKEY_ED448: self = .eddsa
    default: return nil
    }
  }

  /// Has a session take nothing but keys of this kind. A server picks the key that can sign what the client takes
  /// (RFC 8446 section 4.2.3).
  ///
  /// - Returns: whether OpenSSL takes the list.
  func restrict(_ session: OpaquePointer) -> Bool {
    var names = Array(signatureAlgorithms.utf8CString)
    return SSL_ctrl(session, SSL_CTRL_SET_SIGALGS_LIST, 0, &names) == 1
  }
}

/// From where a server is probed.
package enum ProbeRoute: Sendable, Hashable {
  /// From this machine, at every address of the server.
  case direct
  /// From this machine, at the server's first address that can be reached.
  case directInTurn
  /// Through a tunnelling HTTP proxy (CONNECT, RFC 9110 section 9.3.6). The proxy gets the server's name and
  /// resolves it itself, because the addresses at its location matter.
  ///
  /// - Parameter trust: how the proxy proves its identity over TLS; `nil`: clear text.
  case tunnel(host: String, port: UInt16, trust: ProxyTrust? = nil)
}

/// The field of a CONNECT that names one of the host's addresses. A vantage point dials that one, if the name has it there;
/// any other proxy ignores it. In a vantage point's answer it names the address that was dialled.
package enum TunnelAddress {
  package static let field = "ssl-pinning-address"
}

/// The request for one probe.
struct ProbeRequest: Sendable {
  /// What to find out, and the handler of the result. It is called exactly once, on the probe's thread.
  enum Purpose: Sendable {
    /// One server: its addresses in turn, until one answers.
    case one(
      ProbeTarget, ChainValidator, time: Int64?,
      @Sendable (Result<ProbedServer, ProbeError>) -> Void
    )
    /// Every address on every route.
    case survey([ProbeRoute], ChainReader, @Sendable ([ProbeFinding]) -> Void)
  }

  let id: UInt64
  /// A name in lower case, or a numeric address.
  let host: String
  let port: UInt16
  /// Where to connect instead of looking `host` up; empty: look it up.
  let addresses: [Endpoint]
  let limits: ProbeLimits
  let deadline: Deadline
  let purpose: Purpose
  /// The routes that get less time, because they were silent a moment ago, and how many milliseconds.
  var hurried: [Int: Int64] = [:]
  /// Addresses that a proxy is asked for, beside one that it takes itself, by its route.
  var addressesThere: [Int: [Endpoint]] = [:]
  /// What is asked for as well, at each place that finished a handshake.
  var kinds: [CertificateKeyKind] = []

  /// The deadline of a route that begins now.
  func deadline(of route: Int) -> Deadline {
    hurried[route].map { min(.after(milliseconds: $0), deadline) } ?? deadline
  }

  /// The routes to probe.
  var routes: [ProbeRoute] {
    switch purpose {
    case .one: [.direct]
    case .survey(let routes, _, _): routes
    }
  }

  /// What to ask a proxy for: the name, so that the proxy resolves it at its location, or the address
  /// if one was configured.
  var tunnelTarget: String {
    (addresses.first ?? Endpoint(address: host, port: port)).description
  }

  /// Ends the whole job with one failure.
  func fail(_ error: ProbeError) {
    switch purpose {
    case .one(_, _, _, let complete): complete(.failure(error))
    case .survey(let routes, _, let complete):
      complete(
        routes.indices.map { ProbeFinding(route: $0, address: nil, outcome: .failure(error)) })
    }
  }
}

/// How long each part of a probe may take, in milliseconds. `total` bounds the whole probe: the other
/// limits add up to more.
package struct ProbeLimits: Sendable, Hashable {
  /// For the whole probe, from the moment of the call.
  package var total: Int64
  /// For looking the name up.
  package var lookup: Int64
  /// For connecting to one address.
  package var connect: Int64
  /// For a proxy's answer to CONNECT, including its lookup and connection.
  package var tunnel: Int64
  /// For the TLS handshake.
  package var handshake: Int64

  /// Limits under which no single part can use up the total, so that a timeout names the slow part.
  package init(total: Int64) {
    let total = max(0, total)
    self.init(
      total: total, lookup: total / 5 * 3, connect: total / 5 * 3, tunnel: total / 5 * 4,
      handshake: total / 5 * 4)
  }

  /// Limits.
  package init(total: Int64, lookup: Int64, connect: Int64, tunnel: Int64, handshake: Int64) {
    self.total = total
    self.lookup = lookup
    self.connect = connect
    self.tunnel = tunnel
    self.handshake = handshake
  }

  /// Only a total limit.
  static func only(total: Int64) -> ProbeLimits {
    ProbeLimits(total: total, lookup: total, connect: total, tunnel: total, handshake: total)
  }
}

/// A version of TLS, ordered by age.
public enum TLSVersion: Int32, Sendable, Hashable, Comparable, CustomStringConvertible {
  /// RFC 2246; for old servers in tests.
  case tls10 = 0x0301
  /// RFC 4346; for old servers in tests.
  case tls11 = 0x0302
  /// RFC 5246.
  case tls12 = 0x0303
  /// RFC 8446.
  case tls13 = 0x0304

  public static func < (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue < b.rawValue }

  public var description: String {
    switch self {
    case .tls10: "TLSv1.0"
    case .tls11: "TLSv1.1"
    case .tls12: "TLSv1.2"
    case .tls13: "TLSv1.3"
    }
  }

  /// The version a session agreed on.
  package init?(of session: OpaquePointer) { self.init(rawValue: SSL_version(session)) }
}
