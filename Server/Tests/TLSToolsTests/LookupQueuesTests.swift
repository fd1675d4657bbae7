import SslPinningPlatform
import Testing

@testable import TLSTools

/// The lines of a resolver in simulated time: how long a lookup takes is up to the name, and nobody waits.
@Suite("Which name is looked up next") struct LookupQueuesTests {
  /// A name service. Times are milliseconds.
  private struct Zone {
    /// For how long a silent name keeps its thread.
    var silence: Int64 = 5000
    /// Good names whose first lookup fails as a silent one does.
    var losesFirst = false
  }

  /// Looks every name up again and again, `pause` after it failed, until the good ones are found.
  ///
  /// - Returns: when the last good name was found.
  private func run(good: Int, silent: Int, _ zone: Zone, pause: Int64 = 30_000) -> Int64 {
    var lines = LookupQueues()
    var random = Repeatable()
    let names = ((0..<good).map { "good-\($0)" } + (0..<silent).map { "silent-\($0)" })
      .shuffled(using: &random).map { LookupQueues.Name(host: $0, port: 443) }
    enum Event {
      case ask(LookupQueues.Name)
      case finish(LookupQueues.Name, LookupQueues.Line, Bool)
    }
    var events: [Int64: [Event]] = [0: names.map { .ask($0) }]
    var tries: [LookupQueues.Name: Int] = [:]
    var found = Set<LookupQueues.Name>()
    var now: Int64 = 0
    func begin(_ line: LookupQueues.Line) {
      guard let (name, _) = lines.take(from: line) else { return }
      tries[name, default: 0] += 1
      let isGood = name.host.hasPrefix("good") && !(zone.losesFirst && tries[name] == 1)
      events[now + (isGood ? 50 : zone.silence), default: []].append(.finish(name, line, isGood))
    }
    while found.count < good, let next = events.keys.min(), next < 3_600_000 {
      now = next
      for event in events.removeValue(forKey: now) ?? [] {
        switch event {
        case .ask(let name):
          let question = LookupQueues.Question(
            deadline: .after(milliseconds: 3_600_000), patience: 3000, answer: { _ in })
          if let line = lines.ask(name, question) { begin(line) }
        case .finish(let name, let line, let isGood):
          if isGood { found.insert(name) }
          let result: Result<[Endpoint], NameResolver.Failure> =
            isGood ? .success([.loopback(1)]) : .failure(.init(reason: "silent", isFinal: false))
          let started = lines.finish(
            name, result, milliseconds: isGood ? 50 : zone.silence, patience: 3000
          ).line
          if let started { begin(started) }
          begin(line)
          if !isGood { events[now + pause, default: []].append(.ask(name)) }
        }
      }
    }
    return found.count == good ? now : .max
  }

  /// Numbers that are the same in each run.
  private struct Repeatable: RandomNumberGenerator {
    var state: UInt64 = 1
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ state >> 29
    }
  }

  @Test("ten good names are found beside a thousand silent ones before 60 s have passed")
  func silentNames() {
    #expect(run(good: 10, silent: 1000, Zone()) < 60_000)
  }

  @Test("and if the first packet of each good one is lost, before three minutes have")
  func lostPackets() {
    #expect(run(good: 10, silent: 1000, Zone(losesFirst: true)) < 180_000)
  }

  @Test("no more lookups begin at once than a name server's socket holds packets of")
  func burst() {
    var lines = LookupQueues()
    var threads = 0
    for number in 0..<1000 {
      let question = LookupQueues.Question(
        deadline: .after(milliseconds: 60_000), patience: 3000, answer: { _ in })
      if lines.ask(LookupQueues.Name(host: "new-\(number)", port: 443), question) != nil {
        threads += 1
      }
    }
    #expect(threads == 128)
  }

  @Test("addresses that come when nobody waits any more are news, once")
  func news() {
    var lines = LookupQueues()
    let name = LookupQueues.Name(host: "late", port: 443)
    func look(_ result: Result<[Endpoint], NameResolver.Failure>, isHeard: Bool) -> Bool {
      let question = LookupQueues.Question(
        deadline: .after(milliseconds: 60_000), patience: 3000, answer: { _ in })
      _ = lines.ask(name, question)
      for line in LookupQueues.Line.allCases {
        guard lines.take(from: line) != nil else { continue }
        return lines.finish(name, result, milliseconds: 4000, patience: 3000, isHeard: isHeard)
          .isNews
      }
      return false
    }
    #expect(!look(.failure(.init(reason: "silent", isFinal: false)), isHeard: false))
    #expect(look(.success([.loopback(1)]), isHeard: false))
    // A name that is always late is not probed without end.
    #expect(!look(.success([.loopback(1)]), isHeard: false))
    #expect(!look(.failure(.init(reason: "no such name")), isHeard: true))
    #expect(!look(.success([.loopback(1)]), isHeard: true))
  }
}
