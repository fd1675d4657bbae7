#if os(Linux)
  import Foundation
  import SslPinningRules

  /// What a connection owns once it was accepted: for whom, on what certificates, under which
  /// generation of pins. Lives as ex_data of the connection's SSL.
  final class JudgedConnection: Sendable {
    /// The host as the URL spelled it, with its terminator: compared before every request.
    private let spelling: [CChar]
    let host: HostName
    /// What the server sent, in DER: after a change of pins the chain is judged again in full,
    /// because another of its paths may be the pinned one now.
    let presented: [[UInt8]]
    private let accepted: Locked<UInt64>

    init(
      spelling: UnsafePointer<CChar>, host: HostName, presented: [[UInt8]], accepted: UInt64
    ) {
      self.spelling = Array(UnsafeBufferPointer(start: spelling, count: strlen(spelling) + 1))
      self.host = host
      self.presented = presented
      self.accepted = Locked(accepted)
    }

    /// Whether the connection was accepted for a host of this spelling, under this generation.
    func isAccepted(for other: UnsafePointer<CChar>, generation: UInt64) -> Bool {
      strcmp(spelling, other) == 0 && accepted.withLock { $0 == generation }
    }

    func accept(under generation: UInt64) { accepted.withLock { $0 = generation } }
  }
#endif
