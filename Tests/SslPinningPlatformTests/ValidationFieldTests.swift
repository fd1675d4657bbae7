import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// Certificates as other people's commands make them: common names only, other purposes, version 1.
@Suite("Chains of certificates made elsewhere")
struct ValidationFieldTests {
  /// A root and a leaf of the openssl program, with these extensions in the leaf.
  private func evidence(
    extensions: [String], subject: String = "/CN=www.example.com", signing: [String] = [],
    host: String = "www.example.com"
  ) async throws -> ChainEvidence {
    let openssl = try OpenSSLCommand()
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    try await openssl.run(
      ["req", "-x509"] + curve + [
        "-keyout", "ca.key", "-subj", "/CN=Root", "-days", "2", "-out", "ca.pem",
      ])
    try await openssl.run(
      ["req", "-new"] + curve + ["-keyout", "leaf.key", "-subj", subject, "-out", "leaf.csr"])
    try openssl.write([UInt8](extensions.joined(separator: "\n").utf8), to: "extensions")
    let leaf = try await openssl.make(
      "leaf.der",
      [
        "x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-outform", "DER",
      ] + (extensions.isEmpty ? [] : ["-extfile", "extensions"]) + signing)
    let root = try await openssl.make("ca.der", ["x509", "-in", "ca.pem", "-outform", "DER"])
    return try ChainValidator(trust: .anchors([root]))
      .evidence(presented: [leaf], host: try HostName(host))
  }

  @Test(
    "names stand in subjectAltName only, and a wildcard is a whole label",
    arguments: [
      ([], "www.example.com", false),
      (["basicConstraints=CA:FALSE"], "www.example.com", false),
      (["subjectAltName=email:www.example.com"], "www.example.com", false),
      (["subjectAltName=DNS:www.example.com"], "www.example.com", true),
      (["subjectAltName=DNS:a.example.com"], "www.example.com", false),
      (["subjectAltName=DNS:WWW.EXAMPLE.COM"], "www.example.com", true),
      (["subjectAltName=DNS:*.example.com"], "www.example.com", true),
      (["subjectAltName=DNS:w*.example.com"], "www.example.com", false),
      (["subjectAltName=DNS:*w.example.com"], "www.example.com", false),
      (["subjectAltName=DNS:*.*.com"], "www.example.com", false),
      (["subjectAltName=DNS:www.*.com"], "www.example.com", false),
      (["subjectAltName=DNS:*.com"], "example.com", false),
      (["subjectAltName=DNS:*"], "localhost", false),
      (["subjectAltName=DNS:*.example.com"], "a_b.example.com", true),
      (["subjectAltName=DNS:*.example.com"], "_a__b_.example.com", true),
      (["subjectAltName=DNS:a-b.example.com"], "a_b.example.com", false),
      (["subjectAltName=DNS:a_b.example.com"], "a_b.example.com", true),
      (["subjectAltName=DNS:*.example.com"], "c.a_b.example.com", false),
      (["subjectAltName=DNS:*.a-b.example.com"], "c_d.a_b.example.com", false),
      (["subjectAltName=DNS:*.com"], "a_b.com", false),
      (["subjectAltName=DNS:.example.com"], "www.example.com", false),
      (["subjectAltName=DNS:10.0.0.1"], "10.0.0.1", false),
      (["subjectAltName=IP:10.0.0.1"], "10.0.0.1", true),
      (["subjectAltName=IP:10.0.0.1"], "::ffff:10.0.0.1", false),
      (["subjectAltName=IP:::ffff:10.0.0.1"], "10.0.0.1", false),
      (["subjectAltName=DNS:xn--bcher-kva.example"], "XN--BCHER-KVA.example", true),
    ])
  func names(extensions: [String], host: String, matches: Bool) async throws {
    let evidence = try await evidence(extensions: extensions, host: host)
    if matches {
      #expect(try evidence.validation.get().path.count == 2)
    } else {
      #expect(evidence.validation == .failure(.wrongHost))
    }
  }

  @Test(
    "accepts certificates for servers and refuses those for something else",
    arguments: [
      ([], true), (["extendedKeyUsage=serverAuth"], true),
      (["extendedKeyUsage=serverAuth,clientAuth"], true), (["extendedKeyUsage=clientAuth"], false),
      (["extendedKeyUsage=emailProtection"], false), (["keyUsage=digitalSignature"], true),
      (["1.2.3.4=critical,ASN1:NULL"], false), (["1.2.3.4=ASN1:NULL"], true),
    ])
  func purpose(extensions: [String], accepted: Bool) async throws {
    let evidence = try await evidence(
      extensions: ["subjectAltName=DNS:www.example.com"] + extensions)
    #expect(evidence.isUntrusted != accepted)
    #expect(evidence.isValidated == accepted)
  }

  @Test("refuses a signature of SHA-1", arguments: [("-sha1", false), ("-sha256", true)])
  func weakSignature(option: String, accepted: Bool) async throws {
    let evidence = try await evidence(
      extensions: ["subjectAltName=DNS:www.example.com"], signing: [option])
    #expect(evidence.isValidated == accepted)
  }
}
