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

/// What the system tells of one request after it has ended.
package struct TransactionFacts: Sendable {
  package let url: URL?
  /// Whether it went over a connection that had carried a request before.
  package let isReused: Bool
  /// When the connection's TLS handshake began and ended, by the wall clock; `nil` if the system does not say.
  package let secured: Date?, established: Date?
  /// When it was begun to be sent, by the wall clock; `nil` if it was not, or the system does not say.
  package let begun: Date?
  /// Whether anything of it left: it was begun, or answered by somebody else than a cache. One that its server, or
  /// whoever stands in for it, never answered has left as well.
  package let hasLeft: Bool

  package init(
    url: URL?, isReused: Bool, secured: Date?, established: Date?, begun: Date? = nil,
    isAnswered: Bool = true, isCached: Bool = false
  ) {
    self.url = url
    self.isReused = isReused
    (self.secured, self.established) = (Self.number(secured), Self.number(established))
    self.begun = Self.number(begun)
    hasLeft = !isCached && (self.begun != nil || isAnswered)
  }

  /// A date that is no number says nothing, and would end the process where ranges are made of it.
  private static func number(_ date: Date?) -> Date? {
    date.flatMap { $0.timeIntervalSince1970.isNaN ? nil : $0 }
  }
}

/// The handshakes of one session that were accepted, of each host, and what a request that has ended
/// says beside them.
///
/// - This is detection, not prevention: the request has left.
/// - A resumed TLS session is not challenged (Apple's Technical Q&A QA1727), and the session that it goes on from
///   may be another `URLSession`'s of the process, a plain one included. So a new connection is told if no challenge
///   was accepted between the beginning and the end of its handshake.
/// - A request goes over no connection that was challenged after it had begun. So one that outlives a change of pins is
///   held against what the connections of its time had shown, however many were accepted since.
/// - Once a connection was found unjudged its host has no proof any more: each request to the host is told until
///   a handshake is accepted again, and the session's connections are to be given up, so that there is one.
/// - Not seen: a resumption in whose handshake, or within a second of it, another connection to the host is challenged
///   (whoever answers can draw his handshake out); the requests of a resumed connection whose first one has not ended,
///   if the host was accepted before; one of whose handshake the system names no time; and a connection of another host
///   that carries a request (HTTP/2) to a host that was accepted before. The last does not happen on the client's own
///   sessions: they have one host each (``RouteTable``).
package struct ConnectionProofs: Sendable {
  /// What a request shows.
  package enum Finding: Sendable {
    /// A verdict stands on its connection, or nothing left.
    case judged
    /// It must not have left, whatever its connection: to be told. The decision says `accept`, because it did.
    case told(PinEvaluation)
    /// No verdict stands on its connection, for this reason: to be told, and the session's connections to be given up.
    case unjudged(HostName, why: String)
    /// It was accepted under other pins, and is to be judged again by what its host had shown.
    case judgeAgain(ConnectionProof)
  }

  /// Seconds between the two clocks' readings of one handshake that prove nothing.
  private static let tolerance = 1.0
  private static let capacity = 4096
  /// Seconds between two flushes for the sake of one host. Where the system resumes a TLS session again and again, each
  /// would cost a connection and bring no challenge.
  package static let betweenFlushes: Int64 = 60

  /// Accepted handshakes of a host that are remembered. More than these hardly end at one time.
  private static let handshakes = 32

  /// In the order of their challenges, whatever the order of the verdicts. Never empty.
  private var byHost: [HostName: [ConnectionProof]] = [:]
  private var flushed: [HostName: Int64] = [:]

  package init() {}

  /// Keeps an accepted handshake.
  package mutating func keep(_ proof: ConnectionProof) {
    if byHost.count >= Self.capacity, byHost[proof.host] == nil {
      // A client may speak to any number of unlisted hosts. A forgotten one is told as unjudged at worst.
      let times = byHost.values.compactMap(\.last?.challenged).sorted()
      byHost = byHost.filter { ($0.value.last?.challenged ?? 0) > times[times.count / 2] }
    }
    var proofs = byHost[proof.host] ?? []
    let later = proofs.firstIndex { $0.challenged > proof.challenged }
    proofs.insert(proof, at: later ?? proofs.endIndex)
    byHost[proof.host] = proofs.suffix(Self.handshakes)
  }

  /// Puts a proof that was judged again in the place of the old one, or forgets a handshake that was turned down after
  /// all. Leaves every other handshake alone.
  package mutating func replace(_ old: ConnectionProof, by new: ConnectionProof?) {
    guard var proofs = byHost[old.host],
      let index = proofs.firstIndex(where: {
        $0.challenged == old.challenged && $0.evidence == old.evidence
      })
    else { return }
    proofs.replaceSubrange(index...index, with: new.map { [$0] } ?? [])
    byHost[old.host] = proofs.isEmpty ? nil : proofs
  }

  /// What a request shows; forgets the proof of a host whose connection was not judged.
  ///
  /// - Parameter generation: of the pins in force now.
  package mutating func finding(about facts: TransactionFacts, generation: UInt64) -> Finding {
    guard facts.hasLeft, let url = facts.url, let scheme = url.scheme?.lowercased(),
      TaskRule.dials(scheme)
    else { return .judged }
    let spelling = url.host ?? ""
    guard TaskRule.allows(url) else { return Self.told(spelling, .clearText(scheme: scheme)) }
    let host: HostName
    do throws(HostNameError) { host = try HostName(spelling) } catch {
      return Self.told(spelling, .unreadableHost(error))
    }
    guard let proofs = byHost[host], var proof = proofs.first else {
      let kind = facts.isReused ? "a reused connection" : "a connection"
      return .unjudged(host, why: "\(kind) was never challenged for this host")
    }
    if !facts.isReused, let secured = facts.secured?.timeIntervalSince1970 {
      let established = facts.established?.timeIntervalSince1970 ?? .infinity
      let own = (secured - Self.tolerance)...(max(secured, established) + Self.tolerance)
      guard let challenge = proofs.first(where: { own.contains($0.challenged) }) else {
        byHost[host] = nil
        return .unjudged(
          host, why: "a new connection was not challenged: it resumed a TLS session")
      }
      proof = challenge
    } else {
      let begun = facts.begun?.timeIntervalSince1970 ?? .infinity
      proof = proofs.last { $0.challenged <= begun } ?? proof
    }
    return proof.generation == generation ? .judged : .judgeAgain(proof)
  }

  /// Whether the session is to be flushed for the sake of a host whose connection was not judged; if so, that counts as
  /// done. `now` in seconds of a clock that never goes back.
  package mutating func startFlush(for host: HostName, at now: Int64) -> Bool {
    if let last = flushed[host], now - last < Self.betweenFlushes { return false }
    if flushed.count >= Self.capacity {
      flushed = flushed.filter { now - $0.value < Self.betweenFlushes }
      if flushed.count >= Self.capacity { flushed = [:] }
    }
    flushed[host] = now
    return true
  }

  private static func told(_ host: String, _ outcome: PinEvaluation.Outcome) -> Finding {
    .told(PinEvaluation(host: host, outcome: outcome, decision: .accept))
  }
}
