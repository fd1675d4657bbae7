#if os(Linux)
  import CSslPinningShims

  /// What tests see of `quiet_tls.h`: connections that a peer's leaving does not end the process by.
  package enum QuietTLS {
    /// Prepares an `SSL_CTX`.
    package static func prepare(_ context: OpaquePointer) -> Bool { pp_tls_quiet(context) }

    /// How many contexts were prepared in this process.
    package static var count: Int { Int(pp_tls_quiet_count()) }
  }
#endif
