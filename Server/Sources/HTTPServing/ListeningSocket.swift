import Foundation
import TLSTools

/// Opens the socket that a server listens on.
///
/// Done here rather than by libmicrohttpd, which says of a failure only that there was one.
package enum ListeningSocket {
  /// A bound, listening, non-blocking socket and the address with the port the system chose.
  package static func open(
    _ address: ListenAddress
  ) throws(HTTPServerError) -> (descriptor: Int32, address: ListenAddress) {
    let family = address.isIPv6 ? AF_INET6 : AF_INET
    let type = Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC
    let descriptor = socket(family, type, 0)
    guard descriptor >= 0 else {
      // A kernel without IPv6 has every address all the same.
      if errno == EAFNOSUPPORT, address.isEveryAddress { return try open(address.everyIPv4Address) }
      throw failure("opening a socket")
    }
    do throws(HTTPServerError) {
      try set(SO_REUSEADDR, of: SOL_SOCKET, on: descriptor)
      if address.isIPv6, !address.isEveryAddress {
        try set(IPV6_V6ONLY, of: Int32(IPPROTO_IPV6), on: descriptor)
      }
      try bind(descriptor, to: address)
      // Whoever finds the queue full dials again after one second, three, and seven, and those who dial more often come first.
      guard listen(descriptor, 4096) == 0 else { throw refusal(address) }
      return (descriptor, address.with(port: try port(of: descriptor)))
    } catch {
      close(descriptor)
      throw error
    }
  }

  private static func bind(_ descriptor: Int32, to address: ListenAddress) throws(HTTPServerError) {
    let bound: Int32
    if address.isIPv6 {
      var raw = sockaddr_in6()
      raw.sin6_family = sa_family_t(AF_INET6)
      raw.sin6_port = address.port.bigEndian
      guard inet_pton(AF_INET6, address.host, &raw.sin6_addr) == 1 else {
        throw .noSuchAddress(address)
      }
      bound = withSocketAddress(&raw) { Foundation.bind(descriptor, $0, $1) }
    } else {
      var raw = sockaddr_in()
      raw.sin_family = sa_family_t(AF_INET)
      raw.sin_port = address.port.bigEndian
      guard inet_pton(AF_INET, address.host, &raw.sin_addr) == 1 else {
        throw .noSuchAddress(address)
      }
      bound = withSocketAddress(&raw) { Foundation.bind(descriptor, $0, $1) }
    }
    guard bound == 0 else { throw refusal(address) }
  }

  private static func port(of descriptor: Int32) throws(HTTPServerError) -> UInt16 {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let named = withSocketAddress(&storage) { pointer, _ in
      getsockname(descriptor, pointer, &length)
    }
    guard named == 0 else { throw failure("reading the port") }
    // The port stands at the same place in both families (RFC 3493 §3.3).
    return withUnsafeBytes(of: &storage) { UInt16($0[2]) << 8 | UInt16($0[3]) }
  }

  private static func set(
    _ option: Int32, of level: Int32, on descriptor: Int32
  ) throws(HTTPServerError) {
    var on: Int32 = 1
    guard setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size)) == 0
    else { throw failure("setting a socket option") }
  }

  private static func refusal(_ address: ListenAddress) -> HTTPServerError {
    switch errno {
    case EADDRINUSE: .addressInUse(address)
    case EACCES, EPERM: .notPermitted(address)
    case EADDRNOTAVAIL: .noSuchAddress(address)
    default: failure("listening on \(address)")
    }
  }

  private static func failure(_ operation: String) -> HTTPServerError {
    .system(operation: operation, reason: String(cString: strerror(errno)))
  }

  private static func withSocketAddress<Raw, Result>(
    _ raw: inout Raw, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    withUnsafeMutablePointer(to: &raw) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<Raw>.size))
      }
    }
  }
}

/// The certificate that a server shows, and its key.
///
/// Hazard: it holds the private key in clear text; nothing prints it.
package struct ListenerIdentity: Sendable, Equatable {
  /// The certificate and its chain, leaf first.
  package let certificatePEM: String
  package let keyPEM: String
  /// When the first of the certificates ends, in Unix seconds. Of three or more the last does not count: a cross-signed root that
  /// ended keeps nobody out who knows the root itself.
  package let ends: Int64?

  /// No file of either kind comes near.
  private static let limit = 1 << 20

  /// Takes PEM texts that belong together.
  ///
  /// - Throws: ``HTTPServerError/certificate(reason:)`` where they do not, or are unreadable.
  init(certificatePEM: String, keyPEM: String) throws(HTTPServerError) {
    do throws(CertificateError) {
      let certificates = try Certificate.certificates(inPEM: certificatePEM)
      _ = try ServerIdentity(certificates: certificates, key: PrivateKey(pem: keyPEM))
      ends = certificates.prefix(max(2, certificates.count - 1)).compactMap {
        $0.validity?.notAfter
      }.min()
    } catch { throw .certificate(reason: "\(error)") }
    self.certificatePEM = certificatePEM
    self.keyPEM = keyPEM
  }

  /// Reads PEM files that belong together.
  package init(certificateFile: String, keyFile: String) throws(HTTPServerError) {
    try self.init(certificatePEM: Self.text(certificateFile), keyPEM: Self.text(keyFile))
  }

  private static func text(_ path: String) throws(HTTPServerError) -> String {
    do throws(SmallFile.Failure) {
      return String(decoding: try SmallFile.read(path, limit: limit), as: UTF8.self)
    } catch { throw .certificate(reason: "\(path): \(error)") }
  }
}
