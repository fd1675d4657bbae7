import SslPinningPlatform

/// Where proxies are: few names that every look asks for, so each is looked up once in a while, however
/// many ask.
///
/// - An answer is good for half a minute; a failure for those who waited for it.
final class ProxyDirectory: Sendable {
  private struct Proxy: Hashable {
    let host: String
    let port: UInt16
  }

  /// A lookup under way, and who waits for it.
  private struct Question {
    let number: UInt64
    let until: Deadline
    var waiting: [(until: Deadline, answer: NameResolver.Answer)] = []
  }

  private struct State {
    var last: UInt64 = 0
    var known: [Proxy: (addresses: [Endpoint], until: Deadline)] = [:]
    var asking: [Proxy: Question] = [:]
  }

  private static let lifetime: Int64 = 30_000
  /// After this many milliseconds without an answer the question is asked again.
  private static let patience: Int64 = 60_000

  private let resolver: NameResolver
  private let state = Locked(State())

  init(resolver: NameResolver) { self.resolver = resolver }

  /// Calls `answer` once, on any thread, or never where the lookup does not end by `until`.
  func find(
    _ host: String, port: UInt16, until: Deadline, answer: @escaping NameResolver.Answer
  ) {
    let proxy = Proxy(host: host, port: port)
    let patience = Deadline.after(milliseconds: Self.patience)
    let (known, asked) = state.withLock { state -> ([Endpoint]?, UInt64?) in
      if let entry = state.known[proxy], !entry.until.hasPassed { return (entry.addresses, nil) }
      var question = state.asking[proxy]
      let mustAsk = question?.until.hasPassed ?? true
      if mustAsk {
        state.last += 1
        question = Question(
          number: state.last, until: patience, waiting: question?.waiting ?? [])
      }
      // Whoever has given up is not kept.
      question?.waiting.removeAll { $0.until.hasPassed }
      question?.waiting.append((until, answer))
      state.asking[proxy] = question
      return (nil, mustAsk ? state.last : nil)
    }
    if let known { return answer(.success(known)) }
    guard let asked else { return }
    resolver.resolve(host, port: port, until: patience) { [self] result in
      finish(proxy, asked, result)
    }
  }

  private func finish(
    _ proxy: Proxy, _ number: UInt64, _ result: Result<[Endpoint], NameResolver.Failure>
  ) {
    let waiting = state.withLock { state in
      if case .success(let addresses) = result {
        state.known[proxy] = (addresses, .after(milliseconds: Self.lifetime))
      }
      guard state.asking[proxy]?.number == number else { return [NameResolver.Answer]() }
      return state.asking.removeValue(forKey: proxy)?.waiting.map(\.answer) ?? []
    }
    for answer in waiting { answer(result) }
  }
}
