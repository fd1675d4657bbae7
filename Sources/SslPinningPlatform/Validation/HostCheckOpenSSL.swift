#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

  /// Whether a certificate is for a host, by its subjectAltName alone.
  package enum HostCheck {
    static let flags = UInt32(
      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

    package static func matches(_ certificate: OpaquePointer, _ host: HostName) -> Bool {
      switch host {
      case .name(let name):
        name.bytes.withUnsafeBytes { bytes in
          let text = bytes.bindMemory(to: CChar.self)
          return X509_check_host(certificate, text.baseAddress, text.count, flags, nil) == 1
        }
      case .address(let address):
        X509_check_ip(certificate, address.bytes, address.bytes.count, 0) == 1
      }
    }
  }
#endif
