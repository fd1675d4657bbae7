#if os(Linux)
  import COpenSSL
  import Foundation
  import Pinning

  /// The judgement on one chain, the same for a chain at hand and for one inside a handshake: path,
  /// then name, then the pins of the path.
  struct PathJudgement {
    let validation: Result<ValidatedChain, ChainFault>
    /// OpenSSL's code for ``validation``: `X509_V_OK` for a valid chain.
    let code: Int32
    /// The path that was found, leaf first, also where it is not valid. Owned.
    let path: OwnedPath?

    /// - Parameters:
    ///   - anchors: OpenSSL's `X509_STORE *`.
    ///   - chain: OpenSSL's list of certificates, leaf first; borrowed.
    init(
      anchors: OpaquePointer, settings: VerifySettings, chain: OpaquePointer, host: HostName,
      at unixSeconds: Int64?
    ) {
      guard let leaf = CertificateStack.certificates(in: chain).first,
        let context = X509_STORE_CTX_new()
      else {
        self.init(.failure(.unreadable("no certificate")), code: X509_V_ERR_UNSPECIFIED)
        return
      }
      defer { X509_STORE_CTX_free(context) }
      // A context of our own: nothing that was set on a connection reaches it.
      guard X509_STORE_CTX_init(context, anchors, leaf, chain) == 1,
        settings.apply(to: X509_STORE_CTX_get0_param(context), at: unixSeconds)
      else {
        self.init(
          .failure(.untrusted(code: Int(X509_V_ERR_OUT_OF_MEM), reason: "out of memory")),
          code: X509_V_ERR_OUT_OF_MEM)
        return
      }
      let valid = X509_verify_cert(context) == 1
      let path = OwnedPath(X509_STORE_CTX_get1_chain(context))
      let code = X509_STORE_CTX_get_error(context)
      guard valid, code == X509_V_OK else {
        // Failing without a reason is failing all the same.
        let code = code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code
        let reason = String(cString: X509_verify_cert_error_string(Int(code)))
        self.init(
          .failure(.untrusted(code: Int(code), reason: reason)), code: code, path: path)
        return
      }
      guard HostCheck.matches(leaf, host) else {
        self.init(.failure(.wrongHost), code: X509_V_ERR_HOSTNAME_MISMATCH, path: path)
        return
      }
      let certificates = path?.certificates ?? []
      let identities = certificates.compactMap(CertificateStack.identity)
      guard identities.count == certificates.count,
        let chain = ValidatedChain(
          host: host, path: identities.map(\.pin), certificates: identities.map(\.fingerprint))
      else {
        self.init(
          .failure(.unreadable("a key on the validated path cannot be read")),
          code: X509_V_ERR_UNSPECIFIED, path: path)
        return
      }
      self.init(.success(chain), code: X509_V_OK, path: path)
    }

    private init(
      _ validation: Result<ValidatedChain, ChainFault>, code: Int32, path: OwnedPath? = nil
    ) {
      self.validation = validation
      self.code = code
      self.path = path
    }

    /// A path that OpenSSL found, with a reference to each certificate on it.
    final class OwnedPath {
      private var stack: OpaquePointer?

      init?(_ stack: OpaquePointer?) {
        guard let stack else { return nil }
        self.stack = stack
      }

      deinit {
        for certificate in certificates { X509_free(certificate) }
        OPENSSL_sk_free(stack)
      }

      var certificates: [OpaquePointer] { CertificateStack.certificates(in: stack) }

      /// Gives the list away, to be freed by OpenSSL.
      func release() -> OpaquePointer? {
        defer { stack = nil }
        return stack
      }
    }
  }
#endif
