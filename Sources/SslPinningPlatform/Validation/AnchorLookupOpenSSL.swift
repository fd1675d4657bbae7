#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

  /// Looks anchors up by their subject, those that OpenSSL has yet to read from a directory included.
  /// What it returns lives as long as the look-up.
  final class AnchorLookup {
    private let context: OpaquePointer
    private var lists: [OpaquePointer] = []

    init?(store: OpaquePointer) {
      guard let context = X509_STORE_CTX_new() else { return nil }
      guard X509_STORE_CTX_init(context, store, nil, nil) == 1 else {
        X509_STORE_CTX_free(context)
        return nil
      }
      self.context = context
    }

    deinit {
      for list in lists {
        for certificate in CertificateStack.certificates(in: list) { X509_free(certificate) }
        OPENSSL_sk_free(list)
      }
      X509_STORE_CTX_free(context)
    }

    /// The anchors of this name, in the order of their fingerprints.
    func named(_ name: OpaquePointer?) -> [OpaquePointer] {
      guard let name, let list = X509_STORE_CTX_get1_certs(context, name) else { return [] }
      lists.append(list)
      return CertificateStack.certificates(in: list)
        .map { (certificate: $0, print: CertificateStack.identity(of: $0)?.fingerprint) }
        .sorted { one, other in
          guard let one = one.print, let other = other.print else { return other.print == nil }
          return one < other
        }
        .map(\.certificate)
    }

    /// The anchor that is this very certificate.
    func copy(of certificate: OpaquePointer) -> OpaquePointer? {
      named(X509_get_subject_name(certificate)).first { X509_cmp($0, certificate) == 0 }
    }

    /// Whether the store holds this certificate with the word that it is not to be trusted for TLS
    /// servers (`openssl x509 -addreject`). Such a word counts wherever the certificate came from.
    func rejects(_ certificate: OpaquePointer) -> Bool {
      guard let own = copy(of: certificate) else { return false }
      return X509_check_trust(own, X509_TRUST_SSL_SERVER, 0) == X509_TRUST_REJECTED
    }
  }
#endif
