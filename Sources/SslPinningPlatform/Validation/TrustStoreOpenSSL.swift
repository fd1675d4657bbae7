#if os(Linux)
  import CSslPinningOpenSSL
  import Foundation
  import SslPinningRules

  /// The anchors of one trust mode inside OpenSSL, with the settings that every path is held to.
  final class PlatformTrustStore: Sendable {
    // X509_STORE locks itself; it is only read after init, or extended by its directory look-up.
    nonisolated(unsafe) let pointer: OpaquePointer
    let settings: VerifySettings
    /// Whether any path is validated at all.
    let validates: Bool
    /// Another number for each store that was ever made in this process: a judgement that is kept is told apart by it.
    let generation: UInt64
    private static let lastGeneration = Locked<UInt64>(0)

    init(
      trust: TrustMode, system: SystemAnchors = SystemAnchors(),
      mostIntermediates: Int32 = VerifySettings.usualMostIntermediates
    ) throws(TrustError) {
      // OpenSSL's loaders leave and clear errors of their own; none may surface elsewhere.
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let store = X509_STORE_new() else { throw .unavailable("no memory") }
      do throws(TrustError) {
        var endsAtAnyAnchor = false
        switch trust {
        case .pinnedKeysOnly: break
        case .system:
          guard system.load(into: store) else { throw .noSystemAnchors(searched: system.searched) }
        case .anchors(let own, let andSystem):
          endsAtAnyAnchor = try Self.add(own, to: store)
          // One's own are enough to go on with where a system has none.
          if andSystem { _ = system.load(into: store) }
        }
        validates = trust != .pinnedKeysOnly
        settings = VerifySettings(
          endsAtAnyAnchor: endsAtAnyAnchor, mostIntermediates: mostIntermediates)
        guard settings.apply(to: X509_STORE_get0_param(store)) else {
          throw .unavailable("OpenSSL refuses the settings")
        }
      } catch {
        X509_STORE_free(store)
        throw error
      }
      pointer = store
      generation = Self.lastGeneration.withLock { last in
        last += 1
        return last
      }
    }

    deinit { X509_STORE_free(pointer) }

    func evidence(
      presented: [[UInt8]], host: HostName, at moments: [Int64]
    ) -> ChainEvidence {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      do throws(ChainFault) {
        let sent = try SentChain(presented: presented)
        guard validates else { return .notValidated(presented: sent.pins) }
        let verifier = ChainVerifier(store: self, sent: sent, moments: moments)
        return ChainEvidence(
          presented: sent.pins, validation: verifier.judgement(for: host).validation)
      } catch { return unreadable(presented, error) }
    }

    func verdict(
      presented: [[UInt8]], host: HostName, at moments: [Int64],
      by judge: (ChainEvidence) -> PinEvaluation
    ) -> ChainVerdict {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      do throws(ChainFault) {
        return verdict(
          on: try SentChain(presented: presented), host: host, at: moments, by: judge
        ).verdict
      } catch {
        let evidence = unreadable(presented, error)
        return ChainVerdict(
          evaluation: judge(evidence), evidence: evidence, presented: presented)
      }
    }

    /// - Returns: the verdict, and the judgement on the path that it stands on, where any was
    ///   validated.
    func verdict(
      on sent: SentChain, host: HostName, at moments: [Int64],
      by judge: (ChainEvidence) -> PinEvaluation
    ) -> (verdict: ChainVerdict, judgement: Judgement?) {
      guard validates else {
        let evidence = ChainEvidence.notValidated(presented: sent.pins)
        let verdict = ChainVerdict(
          evaluation: judge(evidence), evidence: evidence, presented: sent.presented)
        return (verdict, nil)
      }
      return ChainVerifier(store: self, sent: sent, moments: moments).verdict(for: host, by: judge)
    }

    private func unreadable(_ presented: [[UInt8]], _ fault: ChainFault) -> ChainEvidence {
      let pins = SPKIPin.readable(presented)
      return validates
        ? ChainEvidence(presented: pins, validation: .failure(fault))
        : .notValidated(presented: pins)
    }

    /// Adds an app's own anchors.
    ///
    /// - Returns: whether one of them is no root: it names another issuer. Roots alone are held to
    ///   a root's rules.
    private static func add(
      _ anchors: [[UInt8]], to store: OpaquePointer
    ) throws(TrustError) -> Bool {
      var areRoots = true
      for (index, anchor) in anchors.enumerated() {
        // Its pin must be known when a path ends there, so its key has to be found as well.
        guard let certificate = CertificateStack.parse(der: anchor),
          (try? SPKIPin(certificateDER: anchor)) != nil
        else { throw .malformedAnchor(index: index) }
        defer { X509_free(certificate) }
        if X509_get_extension_flags(certificate) & UInt32(EXFLAG_SI) == 0 { areRoots = false }
        guard X509_STORE_add_cert(store, certificate) == 1 else {
          throw .unavailable("OpenSSL does not take anchor \(index)")
        }
      }
      return !areRoots
    }
  }

  /// Where a Linux system keeps the certificates that it trusts.
  ///
  /// - OpenSSL's own rule: one file and one list of directories, each replaced by its environment
  ///   variable (`SSL_CERT_FILE`, `SSL_CERT_DIR`).
  /// - Only where both are empty and no variable is set, the bundle that a distribution installs for
  ///   libcurl: an OpenSSL that was built to look elsewhere finds nothing by itself. Who sets a
  ///   variable restricts what is trusted, and nothing is added to that.
  package struct SystemAnchors: Sendable {
    /// A PEM file with any number of certificates, read at once.
    package let file: String
    /// Directories as `openssl rehash` leaves them, separated by colons; read when an issuer is
    /// looked for.
    package let directories: String
    /// Files to fall back to, the first that holds a certificate.
    package let bundles: [String]

    /// Debian and Alpine, Fedora, openSUSE.
    package static let knownBundles = [
      "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
      "/etc/ssl/ca-bundle.pem",
    ]

    /// The places that this system uses under `environment`.
    package init(environment: [String: String] = ProcessInfo.processInfo.environment) {
      let file = environment[String(cString: X509_get_default_cert_file_env())]
      let directories = environment[String(cString: X509_get_default_cert_dir_env())]
      self.file = file ?? String(cString: X509_get_default_cert_file())
      self.directories = directories ?? String(cString: X509_get_default_cert_dir())
      bundles = file == nil && directories == nil ? Self.knownBundles : []
    }

    /// Everything that ``load(into:)`` looks at.
    var searched: [String] { [file, directories] + bundles }

    /// Loads the anchors.
    ///
    /// - Returns: whether there are any.
    package func load(into store: OpaquePointer) -> Bool {
      // A file that is missing is no error: the directories may hold all.
      _ = X509_STORE_load_file(store, file)
      let hasDirectory = X509_STORE_load_path(store, directories) == 1 && holdsHashedFile
      if hasDirectory || holdsAnchors(store) { return true }
      return bundles.contains { X509_STORE_load_file(store, $0) == 1 && holdsAnchors(store) }
    }

    private func holdsAnchors(_ store: OpaquePointer) -> Bool {
      OPENSSL_sk_num(X509_STORE_get0_objects(store)) > 0
    }

    /// Whether one of the directories has a file as `openssl rehash` names them: `2e5ac55d.0`.
    private var holdsHashedFile: Bool {
      directories.split(separator: ":").contains { directory in
        let names = try? FileManager.default.contentsOfDirectory(atPath: String(directory))
        return (names ?? []).contains { name in
          let parts = name.utf8.split(separator: UInt8(ascii: "."))
          guard parts.count == 2, let hash = parts.first, let number = parts.last else {
            return false
          }
          return hash.count == 8 && number.allSatisfy { (0x30...0x39).contains($0) }
        }
      }
    }
  }
#endif
