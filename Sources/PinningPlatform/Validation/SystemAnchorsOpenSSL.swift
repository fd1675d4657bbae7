#if os(Linux)
  import COpenSSL
  import Foundation
  import Pinning

  /// Where a Linux system keeps the certificates that it trusts.
  enum SystemAnchors {
    /// Bundles that distributions install, for an OpenSSL that was built to look elsewhere: Debian
    /// and Alpine, Fedora, openSUSE.
    static let bundles = [
      "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
      "/etc/ssl/ca-bundle.pem",
    ]

    /// Loads OpenSSL's default file and directory, or one of ``bundles`` where those are empty.
    ///
    /// - Returns: where nothing was found, or `nil` where something was.
    static func load(into store: OpaquePointer) throws(TrustError) -> [String]? {
      guard X509_STORE_set_default_paths(store) == 1 else {
        throw .unavailable("OpenSSL cannot look up the system's certificates")
      }
      let file = setting(X509_get_default_cert_file_env())
      let directory = setting(X509_get_default_cert_dir_env())
      let directories = directory ?? String(cString: X509_get_default_cert_dir())
      // The file is read by now, the directory only when an issuer is looked for.
      if holdsAnchors(store) || holdsHashedFile(directories) { return nil }
      var searched = [file ?? String(cString: X509_get_default_cert_file()), directories]
      // Who names places of his own restricts what is trusted: nothing may be added to it.
      if file == nil, directory == nil {
        for bundle in bundles where X509_STORE_load_file(store, bundle) == 1 {
          if holdsAnchors(store) { return nil }
        }
        searched += bundles
      }
      return searched
    }

    private static func holdsAnchors(_ store: OpaquePointer) -> Bool {
      OPENSSL_sk_num(X509_STORE_get0_objects(store)) > 0
    }

    /// Whether one of the directories has a file as `openssl rehash` names them: `2e5ac55d.0`.
    private static func holdsHashedFile(_ directories: String) -> Bool {
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

    private static func setting(_ name: UnsafePointer<CChar>?) -> String? {
      guard let name, let value = getenv(name) else { return nil }
      return String(cString: value)
    }
  }
#endif
