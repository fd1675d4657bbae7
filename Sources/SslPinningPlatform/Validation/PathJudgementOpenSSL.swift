#if os(Linux)
  import CSslPinningOpenSSL
  import Foundation
  import SslPinningRules

  /// The judgement on one chain, the same for a chain at hand and for one inside a handshake: path,
  /// then name, then the pins of the path.
  ///
  /// Of several moments, one at which all dates of the path hold is enough; nothing but a date is ever
  /// judged a second time.
  struct PathJudgement {
    let validation: Result<ValidatedChain, ChainFault>
    /// OpenSSL's code for ``validation``: `X509_V_OK` for a valid chain.
    let code: Int32
    /// The path that was found, leaf first, also where it is not valid. Owned.
    let path: OwnedPath?

    /// - Parameters:
    ///   - anchors: OpenSSL's `X509_STORE *`.
    ///   - chain: OpenSSL's list of certificates, leaf first; borrowed.
    ///   - moments: Unix seconds, at one of which the dates must hold; empty means the system's clock.
    init(
      anchors: OpaquePointer, settings: VerifySettings, chain: OpaquePointer, host: HostName,
      at moments: [Int64]
    ) {
      let found = Self.findPath(anchors: anchors, settings: settings, chain: chain, at: moments)
      let path = found.path
      if let fault = found.fault {
        self.init(.failure(fault), code: found.code, path: path)
        return
      }
      guard let leaf = CertificateStack.certificates(in: chain).first,
        HostCheck.matches(leaf, host)
      else {
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

    /// A path to an anchor, or why there is none; names are not looked at.
    struct FoundPath {
      /// OpenSSL's code: `X509_V_OK` for a valid path.
      let code: Int32
      /// `nil` for a valid path.
      var fault: ChainFault?
      /// The path that was found, also where it is not valid.
      let path: OwnedPath?
    }

    /// Looks for a path whose dates hold at one of `moments`.
    static func findPath(
      anchors: OpaquePointer, settings: VerifySettings, chain: OpaquePointer, at moments: [Int64]
    ) -> FoundPath {
      var mayBeEarly = false
      var last = findPath(anchors: anchors, settings: settings, chain: chain, at: moments.first)
      for moment in moments.dropFirst() {
        guard case .outOfDate(_, _, let isEarly) = last.fault else { return last }
        mayBeEarly = mayBeEarly || isEarly
        last = findPath(anchors: anchors, settings: settings, chain: chain, at: moment)
      }
      if case .outOfDate(let code, let reason, let isEarly) = last.fault {
        last.fault = .outOfDate(code: code, reason: reason, mayBeEarly: mayBeEarly || isEarly)
      }
      return last
    }

    private static func findPath(
      anchors: OpaquePointer, settings: VerifySettings, chain: OpaquePointer, at moment: Int64?
    ) -> FoundPath {
      guard let leaf = CertificateStack.certificates(in: chain).first,
        let context = X509_STORE_CTX_new()
      else {
        return FoundPath(
          code: X509_V_ERR_UNSPECIFIED, fault: .unreadable("no certificate"), path: nil)
      }
      defer { X509_STORE_CTX_free(context) }
      // A context of our own: nothing that was set on a connection reaches it.
      guard X509_STORE_CTX_init(context, anchors, leaf, chain) == 1,
        settings.apply(to: X509_STORE_CTX_get0_param(context), at: moment)
      else {
        let fault = ChainFault.untrusted(
          code: Int(X509_V_ERR_OUT_OF_MEM), reason: "out of memory")
        return FoundPath(code: X509_V_ERR_OUT_OF_MEM, fault: fault, path: nil)
      }
      let valid = X509_verify_cert(context) == 1
      let path = OwnedPath(X509_STORE_CTX_get1_chain(context))
      let code = X509_STORE_CTX_get_error(context)
      guard !valid || code != X509_V_OK else {
        return FoundPath(code: code, fault: nil, path: path)
      }
      // Failing without a reason is failing all the same.
      let known = code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code
      return FoundPath(code: known, fault: fault(known), path: path)
    }

    private static func fault(_ code: Int32) -> ChainFault {
      let reason = String(cString: X509_verify_cert_error_string(Int(code)))
      return switch code {
      case X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED:
        .outOfDate(
          code: Int(code), reason: reason, mayBeEarly: code == X509_V_ERR_CERT_NOT_YET_VALID)
      default: .untrusted(code: Int(code), reason: reason)
      }
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
