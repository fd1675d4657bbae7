import Foundation
import PinningPlatform

/// Looks names up beside the thread that waits for them.
///
/// `getaddrinfo` blocks for as long as the system's resolver likes and cannot be cancelled. So it
/// runs on threads of its own, at most `threadLimit`; who no longer waits simply does not listen,
/// and a lookup that is abandoned ends by itself. A lookup whose deadline passed in the queue is
/// never begun.
package final class NameResolver: Sendable {
  package struct Failure: Error {
    let reason: String

    package init(reason: String) { self.reason = reason }
  }

  /// Finds the addresses of a host; blocks for as long as it takes.
  package typealias Lookup =
    @Sendable (_ host: String, _ port: UInt16) -> Result<
      [Endpoint], Failure
    >
  typealias Answer = @Sendable (Result<[Endpoint], Failure>) -> Void

  private struct Question {
    let host: String
    let port: UInt16
    let deadline: Deadline
    let answer: Answer
  }

  private struct State {
    var queue: [Question] = []
    var threads = 0
  }

  private let state = Locked(State())
  private let workers = WorkerThreads()
  private let lookup: Lookup
  private static let threadLimit = 16
  static let addressLimit = ProbeDesk.addressLimit

  package init(lookup: @escaping Lookup = askSystem) { self.lookup = lookup }

  /// Calls `answer` once, on another thread, or never when the deadline passes first.
  func resolve(_ host: String, port: UInt16, until deadline: Deadline, answer: @escaping Answer) {
    let needsThread = state.withLock { state in
      state.queue.append(Question(host: host, port: port, deadline: deadline, answer: answer))
      guard state.threads < Self.threadLimit else { return false }
      state.threads += 1
      return true
    }
    if needsThread { workers.start("resolver") { [self] in work() } }
  }

  private func work() {
    while true {
      let next = state.withLock { state -> Question? in
        guard !state.queue.isEmpty else {
          state.threads -= 1
          return nil
        }
        return state.queue.removeFirst()
      }
      guard let next else { return }
      if !next.deadline.hasPassed { next.answer(lookup(next.host, next.port)) }
    }
  }

  /// Asks the system's resolver.
  package static let askSystem: Lookup = { host, port in
    // RFC 6761 section 6.3: these never leave the machine, whatever its resolver thinks.
    if host == "localhost" || host.hasSuffix(".localhost") {
      let both = [Endpoint.loopback(port), Endpoint(address: "::1", port: port)]
      return .success(both)
    }
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &list)
    defer { if let list { freeaddrinfo(list) } }
    guard code == 0 else {
      let text =
        code == EAI_SYSTEM ? strerror(errno) : UnsafeMutablePointer(mutating: gai_strerror(code))
      return .failure(Failure(reason: text.map { String(cString: $0) } ?? "error \(code)"))
    }
    var found: [Endpoint] = []
    var entry = list
    while let current = entry?.pointee, found.count < addressLimit {
      if let address = current.ai_addr,
        current.ai_family == AF_INET || current.ai_family == AF_INET6,
        let kept = SocketAddress(address, length: current.ai_addrlen)?.endpoint
      {
        found.append(kept)
      }
      entry = current.ai_next
    }
    return found.isEmpty ? .failure(Failure(reason: "no address")) : .success(found)
  }
}
