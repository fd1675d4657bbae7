import FaultLab
import Foundation
import TLSTools

/// One attack, first shown to work without pins, then tried on a client with pins.
///
/// - The control comes first and is mandatory: a refusal proves nothing without an attack. Its request must
///   arrive in the attacker's log, or there is no trial.
/// - The pinned dials go to the same URL, by every way in which an app can send a request.
/// - A dial counts as refused only if a verdict refuses it by a rule that the row named: neither a
///   time-out nor an absent attacker is a success of pinning.
struct AttackTrial: Sendable {
  /// How a pinned dial must end.
  struct Refusal: Sendable {
    /// The rules that may decide.
    let rules: Set<String>
    /// Whether a connection to the attacker is made: unlisted hosts and clear text are refused before that.
    /// `nil` if the row does not care.
    let isDialled: Bool?

    /// In or after the handshake with the attacker.
    static func inHandshake(_ rules: String...) -> Refusal {
      Refusal(rules: Set(rules), isDialled: true)
    }

    /// Before a connection to the attacker is made.
    static func before(_ rules: String...) -> Refusal {
      Refusal(rules: Set(rules), isDialled: false)
    }

    /// At either time.
    static func either(_ rules: String...) -> Refusal {
      Refusal(rules: Set(rules), isDialled: nil)
    }
  }

  /// What the attacker read from the control.
  let control: String
  /// How the pinned dials ended.
  let answers: [(dialer: String, answer: Dialer.Answer)]
  /// How many bytes the attacker read from the pinned dials.
  let bytesRead: Int
  /// Why the pinned dials prove nothing; `nil` if they do.
  let fault: String?

  /// Runs an attack.
  ///
  /// - Parameters:
  ///   - control: the dial without pins.
  ///   - dialers: the dials with pins.
  /// - Throws: ``Inconclusive`` if the control did not reach the attacker.
  init(
    _ url: URL, attacker: some Attacker, control: Dialer, pinned dialers: [Dialer],
    _ refusal: Refusal
  ) async throws(Inconclusive) {
    let known = attacker.read.count
    let unpinned = await control.dial(url)
    guard await attacker.settle() else { throw Inconclusive("the attacker never came to rest") }
    guard attacker.read.count > known, let read = attacker.read.last else {
      throw Inconclusive("control: the attacker read nothing of \(control.name): \(unpinned.text)")
    }
    self.control = "\(control.name) reads \"\(read)\""
    let bytes = attacker.bytesRead
    var answers: [(String, Dialer.Answer)] = []
    var fault: String? = dialers.isEmpty ? "no pinned dial was made" : nil
    for dialer in dialers {
      let connections = attacker.connections
      let answer = await dialer.dial(url)
      if refusal.isDialled == true { await attacker.meets(connections + 1) }
      guard await attacker.settle() else { throw Inconclusive("the attacker never came to rest") }
      answers.append((dialer.name, answer))
      if let found = Self.fault(of: answer, refusal) {
        fault = "\(dialer.name) to \(url): \(found)"
      } else if let isDialled = refusal.isDialled,
        isDialled != (attacker.connections > connections)
      {
        fault = "\(dialer.name) to \(url): the attacker was \(isDialled ? "never " : "")dialled"
      }
    }
    self.answers = answers
    self.fault = fault
    bytesRead = attacker.bytesRead - bytes
  }

  /// Whether anything got through: a body, or a byte.
  var isAccepted: Bool {
    bytesRead > 0 || answers.contains { if case .served = $0.answer { true } else { false } }
  }

  private static func fault(of answer: Dialer.Answer, _ refusal: Refusal) -> String? {
    switch answer {
    case .served: nil
    case .refused(let rule, let text):
      refusal.rules.contains(rule) ? nil : "refused by the rule \(rule): \(text)"
    case .failed(let reason): "no verdict: \(reason)"
    }
  }
}

/// The outcome of an attack row.
struct AttackOutcome: Sendable {
  /// In the row's own words.
  let shown: String
  let exhibits: [AttackTrial]

  init(_ shown: String, _ first: AttackTrial, _ others: AttackTrial...) {
    self.init(shown, first, others)
  }

  init(_ shown: String, _ first: AttackTrial, _ others: [AttackTrial]) {
    self.shown = shown
    exhibits = [first] + others
  }
}

/// An attacker who must not read a request.
protocol Attacker: AnyObject, Sendable {
  /// The request lines that were read in clear, in order.
  var read: [String] { get }
  /// How many bytes of application data were read in clear.
  var bytesRead: Int { get }
  /// How many connections were accepted.
  var connections: Int { get }
  /// Waits until everything in progress has been counted.
  func settle() async -> Bool
}

extension LocalHTTPServer: Attacker {
  var read: [String] { requests.map { "\($0.method) \($0.target)" } }
  var bytesRead: Int { counts.applicationBytesReceived }
  var connections: Int { counts.connections }
  func settle() async -> Bool { await waitUntilIdle() }
}

extension InterceptingProxy: Attacker {
  var read: [String] { requests.map { "\($0.method) \($0.target)" } }
  var bytesRead: Int { plaintextBytes }
  var connections: Int { handshakesCompleted + handshakesFailed }

  /// Waits until the counters stop changing: on loopback, what is still in progress arrives at once.
  func settle() async -> Bool {
    var (before, calm) = (-1, 0)
    for _ in 0..<1000 {
      let now = handshakesCompleted + handshakesFailed + plaintextBytes
      calm = now == before ? calm + 1 : 0
      if calm == 3 { return true }
      before = now
      try? await Task.sleep(nanoseconds: 10_000_000)
    }
    return false
  }
}

extension Attacker {
  /// Waits until so many connections have been counted, because a client sees its refusal before the attacker
  /// does. The wait is bounded: maybe no connection was made.
  func meets(_ connections: Int) async {
    for _ in 0..<1000 where self.connections < connections {
      try? await Task.sleep(nanoseconds: 5_000_000)
    }
  }
}

/// Why a row did not show what it must show. Such a row fails, whatever happened on its sockets.
struct Inconclusive: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// The attack succeeded before any connection to the attacker: a forged document was believed.
struct Breach: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Ends the row if its claim does not hold.
func show(_ holds: Bool, _ reason: @autoclosure () -> String) throws(Inconclusive) {
  guard holds else { throw Inconclusive(reason()) }
}
