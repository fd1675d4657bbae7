import Foundation
import SslPinningRules

/// What a connection was accepted on.
package struct ConnectionProof: Sendable {
  package let host: HostName
  package let evidence: ChainEvidence
  /// The generation of pins that accepted it.
  package let generation: UInt64
  /// When the challenge arrived, by the wall clock, in seconds.
  package let challenged: Double

  package init(host: HostName, evidence: ChainEvidence, generation: UInt64, challenged: Double) {
    self.host = host
    self.evidence = evidence
    self.generation = generation
    self.challenged = challenged
  }
}

/// What the system tells of one request after it was answered.
package struct TransactionFacts: Sendable {
  package let url: URL?
  /// Whether it went over a connection that had carried a request before.
  package let isReused: Bool
  /// When the connection's TLS handshake began, by the wall clock, in seconds; `nil` if the system does not say.
  package let secured: Double?

  package init(url: URL?, isReused: Bool, secured: Double?) {
    self.url = url
    self.isReused = isReused
    self.secured = secured
  }
}

/// The handshakes of one session that were accepted, the latest of each host, and what an answered request
/// says beside them.
///
/// - This is detection, not prevention: the request has left.
/// - A resumed TLS session is not challenged (Apple's Technical Q&A QA1727), and the session that it goes on from
///   may be another `URLSession`'s of the process, a plain one included. A new connection without a challenge
///   of its own is therefore told.
/// - Not seen: a resumption within a second of a challenge for the same host, and a connection of another host
///   that carries a request (HTTP/2) to a host that was accepted before.
package struct ConnectionProofs: Sendable {
  /// What an answered request shows.
  package enum Finding: Sendable {
    /// A verdict stands on its connection.
    case judged
    /// It was not, and this is to be told.
    case told(PinEvaluation)
    /// It was accepted under other pins, and is to be judged again by what its host had shown.
    case judgeAgain(ConnectionProof)
  }

  /// Seconds between the two clocks' readings of one handshake that prove nothing.
  private static let tolerance = 1.0
  private static let capacity = 4096

  private var byHost: [HostName: ConnectionProof] = [:]

  package init() {}

  /// Keeps an accepted handshake. The time of the latest challenge stays: verdicts may come in another order.
  package mutating func keep(_ proof: ConnectionProof) {
    if byHost.count >= Self.capacity, byHost[proof.host] == nil {
      // A client may speak to any number of unlisted hosts. A forgotten one is told as unjudged at worst.
      let times = byHost.values.map(\.challenged).sorted()
      byHost = byHost.filter { $0.value.challenged > times[times.count / 2] }
    }
    byHost[proof.host] = ConnectionProof(
      host: proof.host, evidence: proof.evidence, generation: proof.generation,
      challenged: max(proof.challenged, byHost[proof.host]?.challenged ?? proof.challenged))
  }

  /// Puts a proof that was judged again in the place of the old one, or forgets the host: otherwise each later
  /// request would be held against its old connection. Does nothing if another handshake was accepted meanwhile.
  package mutating func replace(_ old: ConnectionProof, by new: ConnectionProof?) {
    guard let held = byHost[old.host], held.challenged == old.challenged,
      held.generation == old.generation
    else { return }
    byHost[old.host] = new
  }

  /// - Parameter generation: of the pins in force now.
  package func finding(about facts: TransactionFacts, generation: UInt64) -> Finding {
    guard let url = facts.url, let spelling = url.host, let host = try? HostName(spelling),
      let scheme = url.scheme?.lowercased()
    else { return .judged }
    guard TaskRule.dials(scheme) else { return .judged }
    guard TaskRule.allows(url) else { return Self.told(host, .clearText(scheme: scheme)) }
    guard let proof = byHost[host] else {
      let kind = facts.isReused ? "a reused connection" : "a connection"
      return Self.told(host, .unjudged("\(kind) was never challenged for this host"))
    }
    if !facts.isReused, let secured = facts.secured,
      secured > proof.challenged + Self.tolerance
    {
      return Self.told(
        host, .unjudged("a new connection was not challenged: it resumed a TLS session"))
    }
    return proof.generation == generation ? .judged : .judgeAgain(proof)
  }

  /// The decision says `accept`, because the request did go out.
  package static func told(_ host: HostName, _ outcome: PinEvaluation.Outcome) -> Finding {
    .told(PinEvaluation(host: host.description, outcome: outcome, decision: .accept))
  }
}
