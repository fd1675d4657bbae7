#if os(Linux)
  import CSslPinningOpenSSL

  /// What OpenSSL is told of every path; see ``ChainValidator`` for the rules. Whoever judges chains
  /// in this package judges by these, so that what one side publishes is trusted by the other.
  package struct VerifySettings: Sendable {
    /// Whether a path may end at an anchor that is no root.
    package let endsAtAnyAnchor: Bool

    /// The most certificates between the leaf and the anchor.
    package let mostIntermediates: Int32

    package init(
      endsAtAnyAnchor: Bool, mostIntermediates: Int32 = Self.usualMostIntermediates
    ) {
      self.endsAtAnyAnchor = endsAtAnyAnchor
      self.mostIntermediates = mostIntermediates
    }

    /// OpenSSL's own limit, stated here so that nobody else in the process moves it.
    package static let usualMostIntermediates: Int32 = 100

    /// 112 bits: RSA of 2048 bits, SHA-224. OpenSSL's default for a store of one's own is lower
    /// than Debian's for connections.
    private static let securityLevel: Int32 = 2

    /// Replaces what is set, so that no configuration file and no other user of OpenSSL in the
    /// process can weaken it.
    package func apply(to parameters: OpaquePointer?, at unixSeconds: Int64? = nil) -> Bool {
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
