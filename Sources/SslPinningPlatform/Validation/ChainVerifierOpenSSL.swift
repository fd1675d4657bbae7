#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

  /// The one chain validator on Linux: handshakes of pinned clients, fetches of registries and the probes of a
  /// registry server are all judged here. Read it from top to bottom:
  ///
  /// 1. ``path(at:)``: OpenSSL looks for a path to an anchor whose dates hold at one of the moments. It does not
  ///    backtrack: of two issuers of one name it takes one, and fails if that one leads nowhere. Then each other path
  ///    (``CandidatePaths``) is validated in full, alone: its anchor is all that is trusted, its certificates are all
  ///    that was sent. The first valid one counts, else OpenSSL's fault.
  /// 2. ``judgement(for:)``: the leaf has the host's name, and each key on the path has a pin.
  /// 3. ``verdict(for:by:)``: the policy. If it refuses the path for a certificate above the leaf, the other paths are
  ///    validated likewise. The first that satisfies the policy counts; else, if only a forgiven path was found, that
  ///    one; else the first verdict.
  ///
  /// - No path is validated less strictly than the first: same settings, moments and name.
  /// - At most ``mostCandidates`` other paths each time.
  struct ChainVerifier {
    static let mostCandidates = 8

    let store: PlatformTrustStore
    let sent: SentChain
    /// Unix seconds, at one of which the dates must hold; empty means the system's clock.
    let moments: [Int64]

    /// The verdict, and the judgement on the path that it stands on.
    func verdict(
      for host: HostName, by judge: (ChainEvidence) -> PinEvaluation
    ) -> (verdict: ChainVerdict, judgement: Judgement) {
      func judged(_ judgement: Judgement) -> (verdict: ChainVerdict, judgement: Judgement) {
        let evidence = ChainEvidence(presented: sent.pins, validation: judgement.validation)
        let verdict = ChainVerdict(
          evaluation: judge(evidence), evidence: evidence, presented: sent.presented)
        return (verdict, judgement)
      }
      var best = judged(judgement(for: host))
      guard best.verdict.evaluation.mayHaveAnotherPath else { return best }
      for found in otherPaths(besides: best.judgement.found.path?.certificates ?? [], at: moments) {
        let judgement = Judgement(found, leaf: sent.certificates.first, host: host)
        guard case .success = judgement.validation else { continue }
        let other = judged(judgement)
        if other.verdict.evaluation.outcome == .matched { return other }
        if best.verdict.evaluation.decision == .refuse,
          other.verdict.evaluation.decision == .accept
        {
          best = other
        }
      }
      return best
    }

    /// The judgement on the path that OpenSSL finds.
    func judgement(for host: HostName) -> Judgement {
      Judgement(path(at: moments), leaf: sent.certificates.first, host: host)
    }

    /// A path to an anchor, or why there is none. Names are not looked at.
    func path(at moments: [Int64]) -> FoundPath {
      let found = Self.path(
        anchors: store.pointer, settings: store.settings, chain: sent.stack, at: moments)
      guard found.fault != nil else { return found }
      // None is left out: which path OpenSSL takes depends on the moment.
      return otherPaths(besides: [], at: moments).first { _ in true } ?? found
    }

    /// The valid ones among the other paths, each validated once it is asked for.
    private func otherPaths(
      besides known: CandidatePaths.Path, at moments: [Int64]
    ) -> some Sequence<FoundPath> {
      let anchors = AnchorLookup(store: store.pointer)
      let candidates = anchors.map {
        CandidatePaths(sent: sent.certificates, anchors: $0, settings: store.settings)
          .first(Self.mostCandidates, besides: known)
      }
      return (candidates ?? []).lazy
        .compactMap { path in
          withExtendedLifetime(anchors) { self.path(along: path, at: moments) }
        }
        .filter { $0.fault == nil }
    }

    /// What comes of one path alone; `nil` if OpenSSL has no memory for it.
    private func path(along path: CandidatePaths.Path, at moments: [Int64]) -> FoundPath? {
      guard let leaf = sent.certificates.first, let anchor = path.last,
        let chain = CertificateStack(), let anchors = X509_STORE_new()
      else { return nil }
      defer { X509_STORE_free(anchors) }
      for certificate in [leaf] + path.dropFirst().dropLast() {
        guard chain.append(sharing: certificate) else { return nil }
      }
      guard X509_STORE_add_cert(anchors, anchor) == 1,
        store.settings.apply(to: X509_STORE_get0_param(anchors))
      else { return nil }
      return Self.path(
        anchors: anchors, settings: store.settings, chain: chain.pointer, at: moments)
    }

    /// Of several moments, one at which all dates of the path hold is enough; nothing but a date is ever judged a
    /// second time (``MomentWalk``).
    ///
    /// - Parameters:
    ///   - anchors: OpenSSL's `X509_STORE *`.
    ///   - chain: OpenSSL's list of certificates, leaf first; borrowed.
    private static func path(
      anchors: OpaquePointer, settings: VerifySettings, chain: OpaquePointer, at moments: [Int64]
    ) -> FoundPath {
      var found = FoundPath.outOfMemory
      let fault = MomentWalk.fault(at: moments) { moment in
        found = path(anchors: anchors, settings: settings, chain: chain, at: moment)
        return found.fault
      }
      found.fault = fault
      return found
    }

    private static func path(
      anchors: OpaquePointer, settings: VerifySettings, chain: OpaquePointer, at moment: Int64?
    ) -> FoundPath {
      guard let leaf = CertificateStack.certificates(in: chain).first,
        let context = X509_STORE_CTX_new()
      else { return .outOfMemory }
      defer { X509_STORE_CTX_free(context) }
      // A context of our own: nothing that was set on a connection reaches it.
      guard X509_STORE_CTX_init(context, anchors, leaf, chain) == 1,
        settings.apply(to: X509_STORE_CTX_get0_param(context), at: moment)
      else { return .outOfMemory }
      let valid = X509_verify_cert(context) == 1
      let path = OwnedPath(X509_STORE_CTX_get1_chain(context))
      let depth = Int(X509_STORE_CTX_get_error_depth(context))
      let code = X509_STORE_CTX_get_error(context)
      guard !valid || code != X509_V_OK else {
        return FoundPath(code: code, depth: depth, fault: nil, path: path)
      }
      // Failing without a reason is failing all the same.
      let known = code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code
      return FoundPath(code: known, depth: depth, fault: fault(known), path: path)
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
  }

  /// What came of the search for a path, without the name.
  struct FoundPath {
    /// OpenSSL's code: `X509_V_OK` for a valid path.
    var code: Int32
    /// Which certificate of the path the code is about; 0 is the leaf.
    let depth: Int
    /// `nil` for a valid path.
    var fault: ChainFault?
    /// The path that was found, leaf first, also if it is not valid.
    let path: OwnedPath?

    static var outOfMemory: FoundPath {
      FoundPath(
        code: X509_V_ERR_OUT_OF_MEM, depth: 0,
        fault: .untrusted(code: Int(X509_V_ERR_OUT_OF_MEM), reason: "out of memory"), path: nil)
    }

    /// Leaves the result and the path in the context of a handshake, as its own verification would.
    func tell(_ storeContext: OpaquePointer) {
      X509_STORE_CTX_set_error(storeContext, code)
      if let path = path?.release() { X509_STORE_CTX_set0_verified_chain(storeContext, path) }
    }
  }

  /// The judgement on a path: valid, for the host, and with a pin for each of its keys.
  struct Judgement {
    let validation: Result<ValidatedChain, ChainFault>
    /// The path it is about, with OpenSSL's code for ``validation``.
    let found: FoundPath

    init(_ found: FoundPath, leaf: OpaquePointer?, host: HostName) {
      var found = found
      let fault: ChainFault
      if let invalid = found.fault {
        fault = invalid
      } else if leaf.map({ HostCheck.matches($0, host) }) != true {
        fault = .wrongHost
        found.code = X509_V_ERR_HOSTNAME_MISMATCH
      } else {
        let certificates = found.path?.certificates ?? []
        let identities = certificates.compactMap(CertificateStack.identity)
        if identities.count == certificates.count,
          let chain = ValidatedChain(
            host: host, path: identities.map(\.pin), certificates: identities.map(\.fingerprint))
        {
          (validation, self.found) = (.success(chain), found)
          return
        }
        fault = .unreadable("a key on the validated path cannot be read")
        found.code = X509_V_ERR_UNSPECIFIED
      }
      (validation, self.found) = (.failure(fault), found)
    }
  }

  /// Whether a certificate is for a host, by its subjectAltName alone.
  package enum HostCheck {
    static let flags = UInt32(
      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

    package static func matches(_ certificate: OpaquePointer, _ host: HostName) -> Bool {
      switch host {
      case .name(let name):
        if match(certificate, name.bytes) != nil { return true }
        // OpenSSL's `*` stands for letters, digits and `-`; names have `_` as well. A name that is spelled out must
        // match as it is, so with `-` in their place only a wildcard counts.
        let label = name.bytes.prefix { $0 != UInt8(ascii: ".") }
        guard label.contains(UInt8(ascii: "_")) else { return false }
        let plain = label.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : $0 }
        return match(certificate, plain + name.bytes.dropFirst(label.count))?.hasPrefix("*.")
          ?? false
      case .address(let address):
        return X509_check_ip(certificate, address.bytes, address.bytes.count, 0) == 1
      }
    }

    /// The certificate's name that a host's name matches.
    private static func match(_ certificate: OpaquePointer, _ name: ArraySlice<UInt8>) -> String? {
      var found: UnsafeMutablePointer<CChar>?
      defer { CRYPTO_free(found, nil, 0) }
      let isMatch = name.withUnsafeBytes { bytes in
        let text = bytes.bindMemory(to: CChar.self)
        return X509_check_host(certificate, text.baseAddress, text.count, flags, &found) == 1
      }
      return isMatch ? found.map { String(cString: $0) } ?? "" : nil
    }

    /// Whether a certificate has a host's name or address in its subjectAltName. libcurl, if it checks the name, takes
    /// a common name for one where there is none.
    static func hasNames(_ certificate: OpaquePointer) -> Bool {
      guard let list = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else {
        return false
      }
      let names = OpaquePointer(list)
      defer { GENERAL_NAMES_free(names) }
      return (0..<max(0, OPENSSL_sk_num(names))).contains { index in
        var kind: Int32 = -1
        let name = OPENSSL_sk_value(names, index)?.assumingMemoryBound(to: GENERAL_NAME.self)
        return GENERAL_NAME_get0_value(name, &kind) != nil && [GEN_DNS, GEN_IPADD].contains(kind)
      }
    }
  }

  /// What OpenSSL is told of every path; see ``ChainValidator`` for the rules.
  package struct VerifySettings: Sendable {
    /// Whether a path may end at an anchor that is no root.
    let endsAtAnyAnchor: Bool

    /// The most certificates between the leaf and the anchor.
    let mostIntermediates: Int32

    /// OpenSSL's own limit, stated here so that nobody else in the process moves it.
    package static let usualMostIntermediates: Int32 = 100

    /// 112 bits: RSA of 2048 bits, SHA-224. OpenSSL's default for a store of one's own is lower
    /// than Debian's for connections.
    private static let securityLevel: Int32 = 2

    /// Replaces what is set, so that no configuration file and no other user of OpenSSL in the
    /// process can weaken it.
    func apply(to parameters: OpaquePointer?, at unixSeconds: Int64? = nil) -> Bool {
      guard let parameters else { return false }
      X509_VERIFY_PARAM_clear_flags(parameters, UInt(bitPattern: -1))
      // Trusted first: a cross-signed root that the server sends must not hide the trusted one.
      var flags = UInt(X509_V_FLAG_TRUSTED_FIRST)
      if endsAtAnyAnchor { flags |= UInt(X509_V_FLAG_PARTIAL_CHAIN) }
      X509_VERIFY_PARAM_set_depth(parameters, mostIntermediates)
      X509_VERIFY_PARAM_set_auth_level(parameters, Self.securityLevel)
      X509_VERIFY_PARAM_set_hostflags(parameters, HostCheck.flags)
      if let unixSeconds { X509_VERIFY_PARAM_set_time(parameters, time_t(unixSeconds)) }
      return X509_VERIFY_PARAM_set_flags(parameters, flags) == 1
        && X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER) == 1
        && X509_VERIFY_PARAM_set_trust(parameters, X509_TRUST_SSL_SERVER) == 1
    }
  }
#endif
