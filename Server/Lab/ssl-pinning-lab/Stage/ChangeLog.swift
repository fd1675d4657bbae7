import Foundation
import SslPinningPlatform

/// The requests of a change row and their results.
final class ChangeLog: Sendable {
  /// One request.
  struct Request: Sendable {
    let dialer: String
    let url: URL
    let expected: String
    let answer: Dialer.Answer
    /// In which of the row's seconds it was sent.
    let second: Int
    /// Whether it was made while the change was healing: then a refusal is counted, but is no lock-out.
    let mayBeRefused: Bool

    var isRefused: Bool { if case .served = answer { false } else { true } }
  }

  /// How long an unannounced change kept users waiting.
  struct Healing: Sendable {
    let seconds: Double
    let bound: Double
  }

  fileprivate struct State {
    var requests: [Request] = []
    var second = 0
    /// How many requests had been made when the last change happened.
    var changedAt: Int?
    var healing: Healing?
  }

  fileprivate let state = Locked(State())

  /// Notes that the row's change happens now. Only later requests prove anything.
  func changed() { state.withLock { $0.changedAt = $0.requests.count } }

  /// A second of the row's time has passed.
  func nextSecond() { state.withLock { $0.second += 1 } }

  /// Sends a request with each dialer, and notes whether this body came back.
  func get(_ url: URL, _ dialers: [Dialer], expecting body: String) async {
    for dialer in dialers {
      let answer = await dialer.dial(url)
      note(dialer, url, body, answer)
    }
  }

  /// Sends requests until each dialer is served, and notes how long that took.
  ///
  /// - Parameters:
  ///   - bound: the most seconds that it may take.
  ///   - clock: the row's time, in seconds.
  ///   - pause: waits between two attempts.
  func healing(
    _ url: URL, _ dialers: [Dialer], expecting body: String, within bound: Double,
    clock: @Sendable () -> Double = { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 },
    pause: @Sendable () async throws -> Void
  ) async throws {
    let start = clock()
    func elapsed() -> Double { clock() - start }
    let first = state.withLock { $0.second }
    for dialer in dialers {
      while elapsed() <= bound, await !attempt(url, dialer, expecting: body) {
        try await pause()
        state.withLock { $0.second = first + Int(elapsed()) }
      }
    }
    healed(after: elapsed(), bound: bound)
    await get(url, dialers, expecting: body)
  }

  /// Sends a request while the change heals: a refusal is counted, but is no lock-out.
  ///
  /// - Returns: whether it was served.
  func attempt(_ url: URL, _ dialer: Dialer, expecting body: String) async -> Bool {
    let answer = await dialer.dial(url)
    note(dialer, url, body, answer, mayBeRefused: true)
    if case .served = answer { return true }
    return false
  }

  /// Notes how many seconds it took until every app was served.
  func healed(after seconds: Double, bound: Double) {
    state.withLock { $0.healing = Healing(seconds: seconds, bound: bound) }
  }

  /// Whether the change has not healed yet.
  var isHealing: Bool { state.withLock { $0.healing == nil } }

  private func note(
    _ dialer: Dialer, _ url: URL, _ body: String, _ answer: Dialer.Answer,
    mayBeRefused: Bool = false
  ) {
    state.withLock { state in
      state.requests.append(
        Request(
          dialer: dialer.name, url: url, expected: body, answer: answer, second: state.second,
          mayBeRefused: mayBeRefused))
    }
  }
}

/// The outcome of a change row, made only from its requests.
struct ChangeOutcome: Sendable {
  /// In the row's own words.
  let shown: String
  let requests: [ChangeLog.Request]
  let healing: ChangeLog.Healing?
  private let changedAt: Int?

  init(_ shown: String, _ log: ChangeLog) {
    self.shown = shown
    (requests, healing, changedAt) = log.state.withLock { ($0.requests, $0.healing, $0.changedAt) }
  }

  /// The number of requests for which no body came back.
  var refused: Int { requests.count { $0.isRefused } }

  /// In how many seconds one of them came back without.
  var refusedSeconds: Int { Set(requests.filter(\.isRefused).map(\.second)).count }

  /// Why the row proves nothing; `nil` if it does.
  var fault: String? {
    guard let changedAt else { return "nothing changed" }
    return requests.count > changedAt ? nil : "no request was made after the change"
  }

  /// Which request was locked out, if any.
  var lockOut: String? {
    if let healing, healing.seconds > healing.bound {
      return
        "healed after \(healing.seconds.inTenths) s, and \(healing.bound.inTenths) s is the bound"
    }
    for request in requests {
      switch request.answer {
      case .served(let body) where body == request.expected: continue
      case .served(let body):
        return "\(request.url) answered \"\(body)\", and not \"\(request.expected)\""
      case .refused, .failed:
        if request.mayBeRefused { continue }
        return "\(request.url) over \(request.dialer): \(request.answer.text)"
      }
    }
    return nil
  }
}

extension Double {
  /// With one decimal, for people.
  var inTenths: String {
    let tenths = Int((self * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }
}

extension Dialer.Answer {
  var isFailure: Bool { if case .failed = self { true } else { false } }

  var text: String {
    switch self {
    case .served(let body): "served \"\(body)\""
    case .refused(let rule, let text): "\(rule): \(text)"
    case .failed(let reason): "failed: \(reason)"
    }
  }
}

/// One way in which an app sends a request.
struct Dialer: Sendable {
  /// How a request ended.
  enum Answer: Sendable, Equatable {
    /// The body of the answer.
    case served(String)
    /// A verdict refused it, by this rule.
    case refused(rule: String, String)
    /// It failed for another reason.
    case failed(String)
  }

  let name: String
  let dial: @Sendable (URL) async -> Answer
}
