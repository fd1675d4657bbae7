import CSslPinningOpenSSL
import CSslPinningShims
import Foundation
import TLSTools
import Testing

@testable import SslPinningPlatform

@Suite("A certificate whose key brings a curve of its own")
struct OwnCurvesTests {
  /// By OpenSSL 3.0: `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:explicit`.
  private static let own = [UInt8](
    Data(
      base64Encoded: """
        MIICZzCCAg2gAwIBAgIUSCIqnwfGeKueR7vsyL8uFyKlfakwCgYIKoZIzj0EAwIwDjEMMAoGA1UE
        AwwDb3duMCAXDTI2MTEzMDEyMTU1N1oYDzIxMjYxMTA2MTIxNTU3WjAOMQwwCgYDVQQDDANvd24w
        ggFLMIIBAwYHKoZIzj0CATCB9wIBATAsBgcqhkjOPQEBAiEA/////wAAAAEAAAAAAAAAAAAAAAD/
        //////////////8wWwQg/////wAAAAEAAAAAAAAAAAAAAAD///////////////wEIFrGNdiqOpPn
        s+u9VXaYhrxlHQawzFOw9jvOPD4n0mBLAxUAxJ02CIbnBJNqZnjhE50mt4GffpAEQQRrF9Hy4SxC
        R/i85uVjpEDydwN9gS3rM6D0oTlF2JjClk/jQuL+Gn+bjufrSnwPnhYrzjNXazFezsu2QGg3v1H1
        AiEA/////wAAAAD//////////7zm+q2nF56E87nKwvxjJVECAQEDQgAE9Z7gfHz2R9NQgNQtqLjS
        yLumIxIFn0DqIaOZ8SIauzuy6LznydskJ0ldhvSKmrUGZbjaOyZ6Jj0eYPvCjhcuxaNTMFEwHQYD
        VR0OBBYEFG8zGEifVkRpiAh0p/zsK4UyWvhqMB8GA1UdIwQYMBaAFG8zGEifVkRpiAh0p/zsK4Uy
        WvhqMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhANYVzTfZfSbQVvqvT0MnS0lO
        9QzJqXLLr0GHkV43wzr3AiBf9iHVFW0lV+ADLsgVxSHHt9df0wNmWnxHe1fPHelHDg==
        """, options: .ignoreUnknownCharacters) ?? Data())

  /// The bytes before its curve, as they may be spelt.
  private static let spellings: [[UInt8]] = [
    [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x30],
    // Lengths and tags as BER allows them.
    [0x06, 0x81, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x3f, 0x10],
    // SM2's name for such keys.
    [0x06, 0x08, 0x2a, 0x81, 0x1c, 0xcf, 0x55, 0x01, 0x82, 0x2d, 0x30],
  ]

  private func identity() throws -> ServerIdentity {
    try CertificateAuthority.makeRoot(name: "Root").issue(names: ["localhost"])
  }

  @Test("is known from one that names its curve")
  func known() throws {
    let named = try identity().leaf.der
    #expect(!pp_brings_own_curve(named, named.count) && !pp_brings_own_curve(nil, 0))
    #expect(pp_brings_own_curve(Self.own, Self.own.count))
    for beginning in Self.spellings {
      let bytes = named + beginning
      #expect(pp_brings_own_curve(bytes, bytes.count))
      #expect(!pp_brings_own_curve(bytes, bytes.count - 1 - (beginning.last == 0x10 ? 1 : 0)))
    }
    // SM2's name is a curve's, too.
    let key: [UInt8] =
      [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]
      + [0x06, 0x08, 0x2a, 0x81, 0x1c, 0xcf, 0x55, 0x01, 0x82, 0x2d, 0x03, 0x42]
    #expect(!pp_brings_own_curve(key, key.count))
  }

  @Test("is not read, wherever it comes from")
  func unread() throws {
    let named = try identity().leaf.der
    #expect(try Certificate(der: named).der == named)
    #expect(throws: CertificateError.self) { try Certificate(der: Self.own) }
    let stack = try #require(CertificateStack())
    #expect(stack.append(der: named) && !stack.append(der: Self.own))
  }

  /// Whether a client finishes a handshake with a server that shows a certificate beside its own.
  private func shakes(
    with extra: [UInt8], times: Int = 1, _ version: Int32,
    preparing prepare: (OpaquePointer?) -> Void
  ) throws -> Bool {
    let pair = try MemoryTLS(
      identity(),
      client: { context in
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
        prepare(context)
      })
    let x509 = extra.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_X509(nil, &cursor, bytes.count)
    }
    defer { X509_free(x509) }
    for _ in 0..<times {
      try #require(
        SSL_ctrl(pair.server, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(x509)) == 1)
    }
    return pair.shakes()
  }

  @Test(
    "ends the handshake before it is read, on requests, sessions, fetches and probes",
    arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
  func handshake(version: Int32) throws {
    let other = try identity().leaf.der
    #expect(try shakes(with: Self.own, version) { _ in })
    for prepare in [pp_tls_refuse_endless, pp_tls_read_in_turns, pp_tls_refuse_floods] {
      #expect(try shakes(with: other, version) { prepare($0) })
      #expect(try !shakes(with: Self.own, version) { prepare($0) })
    }
  }

  @Test(
    "is not needed to keep a reader busy: a crowd of certificates is refused, too",
    arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
  func crowd(version: Int32) throws {
    let other = try identity().leaf.der
    #expect(try shakes(with: other, times: 110, version) { _ in })
    // The server's own is one of a hundred.
    for prepare in [pp_tls_refuse_endless, pp_tls_read_in_turns] {
      #expect(try shakes(with: other, times: 99, version) { prepare($0) })
      #expect(try !shakes(with: other, times: 100, version) { prepare($0) })
    }
    // Of who tunnels, and whom the tunnel is to, sixteen kilobytes are read.
    #expect(try shakes(with: other, times: 9, version) { pp_tls_refuse_floods($0) })
    #expect(try !shakes(with: other, times: 99, version) { pp_tls_refuse_floods($0) })
  }
}
