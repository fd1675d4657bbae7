import Foundation
import SslPinningPlatform
import SslPinningRules

/// Looks names up on threads of its own.
///
/// - `getaddrinfo` blocks for as long as the system's resolver likes and cannot be cancelled, so an
///   abandoned lookup runs to its end.
/// - ``LookupQueues`` decides how many threads run and which name is next. Names that do not resolve
///   never delay those that do.
package final class NameResolver: Sendable {
  package struct Failure: Error {
    let reason: String
    /// Whether the name service said so. Otherwise it could not be asked, and its last answer may still
    /// be right.
    let isFinal: Bool
    /// Whether there was no thread to ask it with.
    let lacksThread: Bool

    package init(reason: String, isFinal: Bool = true, lacksThread: Bool = false) {
      self.reason = reason
      self.isFinal = isFinal
      self.lacksThread = lacksThread
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

  /// Calls `answer` once, on any thread, perhaps before this returns, or never if the deadline passes first. The lookup begins
  /// after this call; one already running does not count.
  func resolve(_ host: String, port: UInt16, until deadline: Deadline, answer: @escaping Answer) {
    let question = LookupQueues.Question(
      deadline: deadline, patience: deadline.millisecondsLeft, answer: answer)
    start(
      lines.withLock { $0.ask(LookupQueues.Name(host: host, port: port), question) })
  }

  /// Looks a name up and waits for the answer; empty without one by the deadline, `nil` if there is no thread to ask
  /// with. Blocks its thread.
  package func addresses(of host: String, port: UInt16, until deadline: Deadline) -> [Endpoint]? {
    let (found, done) = (Locked<[Endpoint]?>([]), DispatchSemaphore(value: 0))
    resolve(host, port: port, until: deadline) { result in
      switch result {
      case .success(let addresses): found.withLock { $0 = addresses }
      case .failure(let failure): if failure.lacksThread { found.withLock { $0 = nil } }
      }
      done.signal()
    }
    _ = done.wait(timeout: .now() + .milliseconds(Int(deadline.pollTimeout)))
    return found.withLock { $0 }
  }

  /// Calls `tell`, on a lookup's thread, when a name without known addresses resolves after the caller has given
  /// up. After a start with many silent names, a good name may wait for its turn longer than a probe waits for it.
  package func whenFoundLate(_ tell: @escaping @Sendable (_ host: String) -> Void) {
    late.withLock { $0 = tell }
  }

  /// The addresses that a name had within the last ten minutes, for callers that got no answer in time.
  func lastFound(_ host: String, port: UInt16) -> [Endpoint]? {
    lines.withLock { $0.found(LookupQueues.Name(host: host, port: port)) }
  }

  private func start(_ line: LookupQueues.Line?) {
    guard let line, !workers.start("resolver", { [self] in work(line, lookup) }) else { return }
    // If no other thread serves this line, whoever waits hears so; the next question asks for a thread again.
    guard lines.withLock({ $0.isLeft(line) }) else { return }
    work(line) { _, _ in
      .failure(Failure(reason: "there is no thread for it", isFinal: false, lacksThread: true))
    }
  }

  private func work(_ line: LookupQueues.Line, _ lookup: Lookup) {
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
    // RFC 6761 section 6.3: these names are always loopback, whatever the resolver says.
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
    // More than are dialled: an address that is left out is not gone.
    while let current = entry?.pointee, found.count < 16 * addressLimit {
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

/// Which name is looked up next, and by how many threads at once. Pure: times come with the calls.
///
/// - A name has at most one lookup running. A question asked meanwhile is served by the next lookup: an
///   answer is never older than its question.
/// - There are four queues, each with its own threads: names that answered last time, new names, names that
///   failed once or outlasted everyone's patience, and names that failed repeatedly. So silent names never
///   delay one that answers, and one lost packet does not put a good name behind a thousand dead ones.
/// - Of the names that failed repeatedly, the one with the fewest failures in a row comes first.
/// - A name whose turn comes is looked up even if nobody waits any more: the next probe uses the result.
struct LookupQueues {
  enum Line: Int, CaseIterable {
    case answered
    case new
    case failedOnce
    case failing

    /// A thread that waits for a resolver costs only its stack. New names need the most threads: after a start
    /// all names are new, and only an answer tells good ones from silent ones. The bound is there because each
    /// lookup sends two packets at once, and a name server's socket buffers a few hundred.
    var threads: Int {
      switch self {
      case .answered: 64
      case .new: 128
      case .failedOnce: 64
      case .failing: 4
      }
    }
  }

  struct Name: Hashable, Sendable {
    let host: String
    let port: UInt16
  }

  struct Question {
    let deadline: Deadline
    /// How many milliseconds the caller waits.
    let patience: Int64
    let answer: NameResolver.Answer
  }

  /// Addresses that were found, and until when they may stand in for a missing answer.
  private struct Found {
    let addresses: [Endpoint]
    let until: Deadline
  }

  private struct Entry {
    var line = Line.new
    var failures = 0
    var isQueued = false
    var isRunning = false
    /// The questions that the running lookup does not serve.
    var questions: [Question] = []
    var found: Found?

    var isIdle: Bool { !isQueued && !isRunning && questions.isEmpty }
  }

  private struct Place: Comparable {
    let failures: Int
    let ticket: UInt64
    let name: Name

    static func < (one: Place, other: Place) -> Bool {
      (one.failures, one.ticket) < (other.failures, other.ticket)
    }
  }

  /// For how many milliseconds addresses stand in for a missing answer.
  static let memory: Int64 = 600_000
  /// Above this many names, those that nobody asks for are forgotten.
  private static let nameLimit = 100_000

  private var entries: [Name: Entry] = [:]
  private var places: [Line: PriorityQueue<Place>] = [:]
  private var threads: [Line: Int] = [:]
  private var lastTicket: UInt64 = 0

  /// Enters a question.
  ///
  /// - Returns: the line that needs one more thread.
  mutating func ask(_ name: Name, _ question: Question) -> Line? {
    if entries.count >= Self.nameLimit { entries = entries.filter { !$0.value.isIdle } }
    entries[name, default: Entry()].questions.removeAll { $0.deadline.hasPassed }
    entries[name, default: Entry()].questions.append(question)
    return enqueue(name)
  }

  /// Takes the next name of a line; `nil` ends the calling thread.
  mutating func take(from line: Line) -> (Name, [Question])? {
    while let place = places[line]?.popFirst() {
      guard let questions = entries[place.name]?.questions else { continue }
      entries[place.name]?.isQueued = false
      entries[place.name]?.isRunning = true
      entries[place.name]?.questions = []
      return (place.name, questions)
    }
    threads[line, default: 1] -= 1
    return nil
  }

  /// A thread for this line could not be started.
  ///
  /// - Returns: whether it has no other; the caller then serves it.
  mutating func isLeft(_ line: Line) -> Bool {
    guard threads[line, default: 1] > 1 else { return true }
    threads[line, default: 1] -= 1
    return false
  }

  /// Enters the result of a lookup.
  ///
  /// - Parameters:
  ///   - milliseconds: how long it took.
  ///   - patience: how long the callers that it served were willing to wait.
  ///   - isHeard: whether any of them still waited.
  /// - Returns: the line that needs one more thread, and whether the name has addresses now, had none before, and
  ///   nobody waited any more: then the callers that gave up should ask again.
  mutating func finish(
    _ name: Name, _ result: Result<[Endpoint], NameResolver.Failure>, milliseconds: Int64,
    patience: Int64, isHeard: Bool = true
  ) -> (line: Line?, isNews: Bool) {
    guard var entry = entries[name] else { return (nil, false) }
    entry.isRunning = false
    let wasKnown = entry.found.map { !$0.until.hasPassed } ?? false
    let isLate = milliseconds > patience
    switch result {
    case .success(let addresses):
      entry.found = Found(addresses: addresses, until: .after(milliseconds: Self.memory))
      entry.failures = isLate ? 1 : 0
    case .failure(let failure):
      // Only an answer that the name does not exist counts; a silent name service proves nothing.
      if failure.isFinal { entry.found = nil }
      entry.failures = min(entry.failures + 1, 8)
    }
    entry.line =
      switch entry.failures {
      case 0: .answered
      case 1: .failedOnce
      default: .failing
      }
    entries[name] = entry
    let isNews = !isHeard && !wasKnown && entry.found != nil
    return (entry.questions.isEmpty ? nil : enqueue(name), isNews)
  }

  /// The addresses that were found last, if that was recent.
  func found(_ name: Name) -> [Endpoint]? {
    guard let found = entries[name]?.found, !found.until.hasPassed else { return nil }
    return found.addresses
  }

  private mutating func enqueue(_ name: Name) -> Line? {
    guard var entry = entries[name], !entry.isQueued, !entry.isRunning else { return nil }
    entry.isQueued = true
    entries[name] = entry
    lastTicket += 1
    places[entry.line, default: PriorityQueue()].insert(
      Place(failures: entry.failures, ticket: lastTicket, name: name))
    let working = threads[entry.line, default: 0]
    guard working < entry.line.threads else { return nil }
    threads[entry.line] = working + 1
    return entry.line
  }
}
