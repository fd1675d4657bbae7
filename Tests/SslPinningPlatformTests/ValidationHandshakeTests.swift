import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Chains inside a handshake")
struct ValidationHandshakeTests {
  /// Calls `body` with what OpenSSL hands to a verify callback: a context over *another* store,
  /// whose settings would accept anything it holds.
  private func withHandshake<R>(
    presented: [[UInt8]], store: OpaquePointer?, _ body: (OpaquePointer) throws -> R
  ) throws -> R {
    let certificates = try presented.map { der in
      try #require(
        der.withUnsafeBufferPointer { bytes in
          var cursor = bytes.baseAddress
          return d2i_X509(nil, &cursor, bytes.count)
        })
    }
    let stack = try #require(OPENSSL_sk_new_null())
    for certificate in certificates { OPENSSL_sk_push(stack, UnsafeRawPointer(certificate)) }
    let context = try #require(X509_STORE_CTX_new())
    defer {
      X509_STORE_CTX_free(context)
      OPENSSL_sk_free(stack)
      for certificate in certificates { X509_free(certificate) }
    }
    try #require(X509_STORE_CTX_init(context, store, certificates.first, stack) == 1)
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context), 0)
    X509_VERIFY_PARAM_set_flags(
      X509_STORE_CTX_get0_param(context),
      UInt(X509_V_FLAG_PARTIAL_CHAIN) | UInt(X509_V_FLAG_NO_CHECK_TIME))
    return try body(context)
  }

  @Test("judges every x509-limbo chain as it judges the same chain outside of one")
  func sameJudgement() throws {
    var judged = 0
    for test in try LimboCase.all() where test.validationTime == nil {
      let presented = try test.presented
      let host = try HostName(test.expectedPeerName?.value ?? "example.com")
      let validator = try ChainValidator(trust: .anchors(try test.trusted))
      let outside = validator.evidence(presented: presented, host: host)
      if case .failure(.unreadable) = outside.validation { continue }
      let hostile = try #require(X509_STORE_new())
      defer { X509_STORE_free(hostile) }
      try withHandshake(presented: presented, store: hostile) { context in
        let inside = validator.evidence(storeContext: context, host: host)
        #expect(inside == outside, "\(test.id)")
        let code = X509_STORE_CTX_get_error(context)
        switch inside.validation {
        case .success(let chain):
          #expect(code == X509_V_OK)
          #expect(
            OPENSSL_sk_num(X509_STORE_CTX_get0_chain(context)) == Int32(chain.path.count))
        case .failure(.untrusted(let own, _)): #expect(Int(code) == own)
        case .failure: #expect(code == X509_V_ERR_HOSTNAME_MISMATCH)
        }
        judged += 1
      }
    }
    #expect(judged > 100)
  }

  @Test("keeps to its own anchors, whatever the connection trusts")
  func ownStore() throws {
    let (root, other) = (
      try CertificateAuthority.makeRoot(name: "Root"), try CertificateAuthority.makeRoot(name: "B")
    )
    let leaf = try root.issue(names: ["www.example.com"]).leaf
    let trusting = try ChainValidator(trust: .anchors([root.certificate.der]))
    let distrusting = try ChainValidator(trust: .anchors([other.certificate.der]))
    for (store, judge) in [(trusting, distrusting), (distrusting, trusting)] {
      try withHandshake(presented: [leaf.der], store: store.storePointer) { context in
        let accepted = X509_verify_cert(context) == 1
        let evidence = judge.evidence(storeContext: context, host: .example)
        #expect(evidence.isUntrusted == accepted)
        #expect((X509_STORE_CTX_get_error(context) == X509_V_OK) == !accepted)
      }
    }
  }

  @Test("hands out the same store as it judges with, as strict for whoever else verifies with it")
  func storeAlone() throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    let strong = try root.issue(names: ["www.example.com"]).leaf
    let weak = try root.issue(names: ["www.example.com"], algorithm: .rsa(bits: 1024)).leaf
    let validator = try ChainValidator(trust: .anchors([root.certificate.der]))
    for (leaf, accepted) in [(strong, true), (weak, false)] {
      let certificate = try #require(
        leaf.der.withUnsafeBufferPointer { bytes in
          var cursor = bytes.baseAddress
          return d2i_X509(nil, &cursor, bytes.count)
        })
      defer { X509_free(certificate) }
      let context = try #require(X509_STORE_CTX_new())
      defer { X509_STORE_CTX_free(context) }
      try #require(X509_STORE_CTX_init(context, validator.storePointer, certificate, nil) == 1)
      #expect((X509_verify_cert(context) == 1) == accepted)
    }
  }

  @Test(
    "leaves the connection's verdict alone under pinned keys only, and never crashes without one")
  func withoutPath() throws {
    let leaf = try ServerIdentity.selfSigned(names: ["a.example"]).leaf
    let pin = try SPKIPin(certificateDER: leaf.der)
    let validator = try ChainValidator(trust: .pinnedKeysOnly)
    try withHandshake(presented: [leaf.der], store: validator.storePointer) { context in
      let evidence = validator.evidence(storeContext: context, host: .example)
      #expect(evidence.presented == [pin])
      #expect(evidence.isUntrusted)
      #expect(X509_STORE_CTX_get_error(context) == X509_V_OK)
    }
    let context = try #require(X509_STORE_CTX_new())
    defer { X509_STORE_CTX_free(context) }
    try #require(X509_STORE_CTX_init(context, validator.storePointer, nil, nil) == 1)
    let evidence = validator.evidence(storeContext: context, host: .example)
    #expect(evidence.presented.isEmpty)
    #expect(!evidence.isValidated)
  }
}
