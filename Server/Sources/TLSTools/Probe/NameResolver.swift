import Foundation
import SslPinningPlatform

/// Looks names up beside the thread that waits for them.
///
/// - `getaddrinfo` blocks for as long as the system's resolver likes and cannot be cancelled. So it
///   runs on threads of its own; a lookup that nobody waits for any more ends by itself.
/// - How many threads there are, and whose turn it is: ``LookupQueues``. Names that do not resolve never
///   delay those that do.
package final class NameResolver: Sendable {
  package struct Failure: Error {
    let reason: String
    /// Whether the name service says so. Otherwise it could not be asked, and what it said before may
    /// still be right.
    let isFinal: Bool

    package init(reason: String, isFinal: Bool = true) {
      self.reason = reason
      self.isFinal = isFinal
    }
  }

  /// Finds the addresses of a host; blocks for as long as it takes.
  package typealias Lookup =
    @Sendable (_ host: String, _ port: UInt16) -> Result<
      [Endpoint], Failure
    >
  typealias Answer = @Sendable (Result<[Endpoint], Failure>) -> Void

  private let lines = Locked(LookupQueues())
  private let workers = WorkerThreads()
  private let lookup: Lookup
  private let late = Locked<(@Sendable (_ host: String) -> Void)?>(nil)
  static let addressLimit = ProbeScheduler.addressLimit

  package init(lookup: @escaping Lookup = askSystem) { self.lookup = lookup }

  /// Calls `answer` once, on another thread, or never when the deadline passes first. The lookup begins
  /// after this call: one that is under way already does not serve it.
  func resolve(_ host: String, port: UInt16, until deadline: Deadline, answer: @escaping Answer) {
    let question = LookupQueues.Question(
      deadline: deadline, patience: deadline.millisecondsLeft, answer: answer)
    start(
      lines.withLock { $0.ask(LookupQueues.Name(host: host, port: port), question) })
  }

  /// Has `tell` called, on a thread of a lookup, when a name turns out to have addresses after whoever asked has
  /// given up, and it had none before: at a start with many silent names good ones may wait for their turn
  /// longer than a probe does.
  package func whenFoundLate(_ tell: @escaping @Sendable (_ host: String) -> Void) {
    late.withLock { $0 = tell }
  }

  /// The addresses that a name had within the last ten minutes, for whoever got no answer in time.
  func lastFound(_ host: String, port: UInt16) -> [Endpoint]? {
    lines.withLock { $0.found(LookupQueues.Name(host: host, port: port)) }
  }

  private func start(_ line: LookupQueues.Line?) {
    guard let line else { return }
    workers.start("resolver") { [self] in work(line) }
  }

  private func work(_ line: LookupQueues.Line) {
    while let (name, questions) = lines.withLock({ $0.take(from: line) }) {
      let begun = ContinuousClock.now
      let result = lookup(name.host, name.port)
      let taken = begun.duration(to: .now) / .milliseconds(1)
      let patience = questions.map(\.patience).max() ?? 0
      let waiting = questions.filter { !$0.deadline.hasPassed }
      let (next, isNews) = lines.withLock {
        $0.finish(
          name, result, milliseconds: Int64(taken), patience: patience, isHeard: !waiting.isEmpty)
      }
      start(next)
      for question in waiting { question.answer(result) }
      if isNews { late.withLock { $0 }?(name.host) }
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
      return .failure(
        Failure(
          reason: text.map { String(cString: $0).lowercased() } ?? "error \(code)",
          isFinal: code != EAI_AGAIN && code != EAI_SYSTEM && code != EAI_MEMORY))
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
