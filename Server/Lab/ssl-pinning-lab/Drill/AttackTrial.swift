import FaultLab
import Foundation
import TLSTools

/// One attack, shown to work without pins first, and then tried on a client with them.
///
/// - The control comes first and is no option: a refusal proves nothing where nobody was attacking.
///   Its dial has to arrive in the attacker's log, or there is no exhibit.
/// - The pinned dials go to the same URL, by every way that an app has.
/// - A dial counts as refused only if a verdict says so, by a rule that the row named: neither a
///   time-out nor an attacker who was not there is a success of pinning.
struct AttackTrial: Sendable {
  /// How a pinned dial has to end.
  struct Refusal: Sendable {
    /// The rules that may decide.
    let rules: Set<String>
    /// Whether the attacker is dialled at all: unlisted hosts and clear text are refused before.
    /// `nil` where the row does not mind.
    let isDialled: Bool?

    /// After a handshake with the attacker.
    static func inHandshake(_ rules: String...) -> Refusal {
      Refusal(rules: Set(rules), isDialled: true)
    }

    /// Before the attacker is dialled.
    static func before(_ rules: String...) -> Refusal {
      Refusal(rules: Set(rules), isDialled: false)
    }

    /// At either time: the rule says which.
    static func either(_ rules: String...) -> Refusal {
      Refusal(rules: Set(rules), isDialled: nil)
    }
  }

  /// What the attacker read of the control.
  let control: String
  /// How the pinned dials ended.
  let answers: [(dialer: String, answer: Dialer.Answer)]
  /// What the attacker read of the pinned dials.
  let bytesRead: Int
  /// Why the pinned dials prove nothing, if that is so.
  let fault: String?

  /// Shows an attack.
  ///
  /// - Parameters:
  ///   - control: the dial without pins.
  ///   - dialers: the dials with pins.
  /// - Throws: ``Inconclusive`` where the control did not reach the attacker.
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

/// What an attack row showed.
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

/// Whoever must not read a request.
protocol Attacker: AnyObject, Sendable {
  /// The request lines that were read in clear, in order.
  var read: [String] { get }
  /// How many bytes of applications were read in clear.
  var bytesRead: Int { get }
  /// How many connections were taken.
  var connections: Int { get }
  /// Waits until everything that is under way has been counted.
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

  /// What still comes, comes at once: loopback, and nobody waits for anything.
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
  /// Waits until so many connections have been counted: a client sees its refusal before an attacker
  /// does. Not for ever: nobody may have dialled.
  func meets(_ connections: Int) async {
    for _ in 0..<1000 where self.connections < connections {
      try? await Task.sleep(nanoseconds: 5_000_000)
    }
  }
}

/// Why a row did not show what it has to show. Such a row fails, whatever its sockets did.
struct Inconclusive: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// An attacker got what he wanted before he was even dialled: his document was believed.
struct Breach: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Ends a row that does not show what it claims.
func show(_ holds: Bool, _ reason: @autoclosure () -> String) throws(Inconclusive) {
  guard holds else { throw Inconclusive(reason()) }
}
