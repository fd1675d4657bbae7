#if os(Linux)
  import CSslPinningOpenSSL
  import Foundation
  import SslPinningRules

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
