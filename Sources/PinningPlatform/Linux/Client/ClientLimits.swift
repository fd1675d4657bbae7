#if os(Linux)
  /// How much of a machine one client takes.
  struct ClientLimits: Sendable {
    /// Requests to one host and port that have a socket or a stream at a time; the others wait, and
    /// cost less than a kilobyte each.
    var perOrigin = 64
    /// The same over all hosts.
    var total = 512
    /// Bytes of a streamed body that may wait for their reader.
    var unread = 256 * 1024
    /// Bytes from which a body is handed over instead of copied.
    var handedOver = 32 * 1024
  }
#endif
