#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

  /// The paths from a leaf to an anchor that names and key identifiers allow: which of them are valid
  /// is not asked here.
  ///
  /// - Made of what the server sent and of anchors alone. An anchor may stand below another one.
  /// - Shortest first, then by fingerprint and in the order sent: the same chain gives the same paths
  ///   in the same order, whatever the order in which anchors were added.
  /// - No path holds one key under one name twice, so none goes in circles.
  /// - Bounded: a chain made to have a million paths, or one very long one, is given up early, which
  ///   can only refuse.
  /// - A signature may take ten milliseconds to check, by the choice of whoever made the key, and others' connections
  ///   wait for it: so all paths together are bounded, too.
  /// - A path with a certificate that the trust store rejects by name is none.
  struct CandidatePaths {
    /// The most certificates whose issuers are looked for.
    static let mostSteps = 64

    /// The most certificates on all paths together: eight paths as long as any that is in use.
    static let mostCertificates = 48

    /// Leaf first, anchor last.
    typealias Path = [OpaquePointer]

    private let sent: [OpaquePointer]
    private let anchors: AnchorLookup
    private let settings: VerifySettings

    init(sent: [OpaquePointer], anchors: AnchorLookup, settings: VerifySettings) {
      self.sent = sent
      self.anchors = anchors
      self.settings = settings
    }

    /// The first `count` paths, `known` left out.
    func first(_ count: Int, besides known: Path) -> [Path] {
      guard let leaf = sent.first else { return [] }
      var found: [Path] = []
      var room = Self.mostCertificates
      func add(_ path: Path) {
        guard found.count < count, path.count <= room, !Self.areSame(path, known),
          !path.contains(where: anchors.rejects)
        else { return }
        found.append(path)
        room -= path.count
      }
      if let own = anchors.copy(of: leaf), canEnd(at: own) { add([own]) }
      var waiting: [Path] = [[leaf]]
      var steps = 0
      while steps < min(waiting.count, Self.mostSteps), found.count < count {
        let path = waiting[steps]
        steps += 1
        guard let last = path.last, path.count <= Int(settings.mostIntermediates) + 1,
          !Self.issued(last, by: last)
        else {
          continue
        }
        let trusted = anchors.named(X509_get_issuer_name(last)).filter {
          Self.issued(last, by: $0) && !Self.holds(path, $0)
        }
        for anchor in trusted where canEnd(at: anchor) { add(path + [anchor]) }
        var above = sent.dropFirst().filter {
          Self.issued(last, by: $0) && !Self.holds(path, $0)
        }
        above += trusted.filter { anchor in
          !above.contains { X509_cmp($0, anchor) == 0 }
        }
        for next in above where !Self.issued(next, by: next) { waiting.append(path + [next]) }
      }
      return found
    }

    /// Whether OpenSSL ends a path there, under the settings that all paths are held to.
    private func canEnd(at anchor: OpaquePointer) -> Bool {
      settings.endsAtAnyAnchor || Self.issued(anchor, by: anchor)
    }

    /// By name, key identifier and key usage, as OpenSSL looks for issuers; no signature is checked.
    private static func issued(_ subject: OpaquePointer, by issuer: OpaquePointer) -> Bool {
      X509_check_issued(issuer, subject) == X509_V_OK
    }

    private static func holds(_ path: Path, _ certificate: OpaquePointer) -> Bool {
      path.contains { other in
        X509_NAME_cmp(X509_get_subject_name(other), X509_get_subject_name(certificate)) == 0
          && EVP_PKEY_eq(X509_get0_pubkey(other), X509_get0_pubkey(certificate)) == 1
      }
    }

    private static func areSame(_ one: Path, _ other: Path) -> Bool {
      one.count == other.count && zip(one, other).allSatisfy { X509_cmp($0, $1) == 0 }
    }
  }

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
