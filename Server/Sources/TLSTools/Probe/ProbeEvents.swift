import CSslPinningShims
import Foundation

/// What a loop waits for: the sockets of its connections, and a signal from other threads.
final class ProbeEvents: Sendable {
  let signal: EventSignal
  private let poll: Int32
  private static let signalToken = UInt64.max

  init() throws(SocketError) {
    signal = try EventSignal()
    poll = pp_tls_poll()
    guard poll >= 0 else { throw .system(operation: "epoll", code: errno) }
    // From here on `deinit` closes it, also when this throws.
    guard pp_tls_poll_add(poll, signal.descriptor, Self.signalToken) == 1 else {
      throw .system(operation: "epoll", code: errno)
    }
  }

  deinit { close(poll) }

  /// Reports what happens to a socket by `token`, until it is closed.
  func watch(_ descriptor: Int32, token: UInt64) -> Bool {
    pp_tls_poll_add(poll, descriptor, token) == 1
  }

  /// Waits for anything to happen; the tokens of the sockets to which it did.
  func wait(milliseconds: Int32) -> [UInt64] {
    let tokens = [UInt64](unsafeUninitializedCapacity: 128) { buffer, count in
      count = Int(pp_tls_poll_wait(poll, buffer.baseAddress, 128, milliseconds))
    }
    guard tokens.contains(Self.signalToken) else { return tokens }
    signal.lower()
    return tokens.filter { $0 != Self.signalToken }
  }
}
