import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Certificate requests")
struct CertificateRequestTests {
  private static let kinds: [[String]] = [
    ["rsa:2048"], ["ed25519"], ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
  ]

  private static func make(_ kind: [String]) async throws -> (request: [UInt8], key: [UInt8]) {
    let openssl = try OpenSSLCommand()
    let request = try await openssl.make(
      "request.der",
      [
        "req", "-new", "-outform", "DER", "-nodes", "-keyout", "key.pem", "-subj", "/CN=a",
        "-newkey",
      ]
        + kind)
    let key = try await openssl.make(
      "public.der", ["pkey", "-in", "key.pem", "-pubout", "-outform", "DER"])
    return (request, key)
  }

  @Test("a request has the key that it was made for", arguments: kinds)
  func key(kind: [String]) async throws {
    let (request, key) = try await Self.make(kind)
    #expect(try CertificateRequest(der: request).publicKeyDER == key)
  }

  @Test("a request with a changed bit, cut short, or with a byte behind it is refused")
  func broken() async throws {
    let (request, key) = try await Self.make(Self.kinds[2])
    for count in 0..<request.count {
      #expect(throws: CertificateError.self) {
        try CertificateRequest(der: Array(request.prefix(count)))
      }
    }
    #expect(throws: CertificateError.self) { try CertificateRequest(der: request + [0]) }
    for index in request.indices {
      var changed = request
      changed[index] ^= 1
      // Of the one bit that OpenSSL reads otherwise and finds the same, the key must be too.
      if let read = try? CertificateRequest(der: changed) {
        #expect(read.publicKeyDER == key, "byte \(index)")
      }
    }
  }

  @Test("a request whose key brings its own curve is refused before it is read")
  func ownCurve() async throws {
    let named = try await Self.make(Self.kinds[2])
    #expect(try CertificateRequest(der: named.request).publicKeyDER == named.key)
    let (own, _) = try await Self.make(Self.kinds[2] + ["-pkeyopt", "ec_param_enc:explicit"])
    #expect(
      throws: CertificateError.malformed(
        what: "certificate request", reason: "its key is on no curve that has a name")
    ) { try CertificateRequest(der: own) }
  }

  @Test("another's key in a request is refused: its signature is not by that")
  func otherKey() async throws {
    let (request, key) = try await Self.make(Self.kinds[2])
    let (_, other) = try await Self.make(Self.kinds[2])
    let start = try #require(request.firstRange(of: key)?.lowerBound)
    var changed = request
    changed.replaceSubrange(start..<(start + key.count), with: other)
    #expect(throws: CertificateError.self) { try CertificateRequest(der: changed) }
  }
}
