import RegistryCore
import SslPinningPlatform
import TLSTools

/// Which questions for a kind of key vantage points had answered by an endpoint, and when.
///
/// A point that gets no answer to such a question any more stands by what it saw: the endpoint, or a firewall before it, may limit what
/// one address asks, or answer so late that nothing is left of the time to ask again. Whoever stands before the registry's server can
/// bring about both, and shows a key of that kind himself.
///
/// If the point is shown a key in the same probe, that lasts for as long as it is so. But one that never had an answer may stand behind a
/// limit for good, and must not hold each rotation of that kind.
struct AnsweredKinds {
  private struct Question: Hashable {
    let route: Int
    let kind: CertificateKeyKind
  }

  private var last: [Question: Int64] = [:]
  /// When a question was asked first. What was answered before, by a server that led then or before a restart, nobody remembers: it counts
  /// as if it was answered then.
  private var first: [Question: Int64] = [:]

  /// Enters what a probe found.
  ///
  /// - Parameters:
  ///   - now: when it began, in milliseconds of uptime.
  ///   - interval: how often the endpoint is probed, in milliseconds; `nil`: at the common interval.
  /// - Returns: the routes of points that got no answer to a question, by the words of the kinds: those to whom it was answered within
  ///   ``EndpointKeys/lastWord``, or within three intervals, or ever, if they are shown a key in this probe.
  mutating func note(
    _ findings: [ProbeFinding], at now: Int64, every interval: Int64? = nil
  ) -> [String: Set<Int>] {
    let lasting = max(EndpointKeys.lastWord * 1000, 3 * (interval ?? 0))
    let there = Set(findings.filter { $0.keyType == nil && !$0.leafPins.isEmpty }.map(\.route))
    var withheld: [String: Set<Int>] = [:]
    for finding in findings where finding.route != 0 {
      guard let kind = finding.keyType else { continue }
      let question = Question(route: finding.route, kind: kind)
      let begun = first[question] ?? now
      first[question] = begun
      switch finding.outcome {
      case .success(.trusted), .failure(.handshake): last[question] = now
      case .success(.untrusted), .failure:
        let isAsking = finding.blame != .proxy || finding.isRefusedAsTooMany
        let isRecent = now - (last[question] ?? begun) <= lasting
        let isThere = there.contains(finding.route)
        if isThere && last[question] != nil || (isThere || isAsking) && isRecent {
          withheld[kind.word, default: []].insert(finding.route)
        }
      }
    }
    return withheld
  }

  /// The same of the points that are among the new ones, by whose places there they are known from now on.
  func following(_ old: [String], to new: [String]) -> AnsweredKinds {
    func moved(_ times: [Question: Int64]) -> [Question: Int64] {
      let moved = times.compactMap { question, time in
        new.firstIndex(of: old[question.route]).map {
          (Question(route: $0, kind: question.kind), time)
        }
      }
      return Dictionary(moved, uniquingKeysWith: max)
    }
    var next = AnsweredKinds()
    (next.last, next.first) = (moved(last), moved(first))
    return next
  }
}

/// What is remembered of all endpoints. A configuration that is read again goes on with it, for the points that it still has:
/// otherwise whoever waits for that had a point's word end with it.
package final class AnsweredQuestions: Sendable {
  package init() {}

  private let memory = Locked((points: [String](), kinds: [String: AnsweredKinds]()))

  /// Enters what a probe found, as ``AnsweredKinds/note(_:at:every:)``.
  ///
  /// - Parameter points: their names, by the routes.
  /// - Returns: the names of those that got no answer.
  func note(
    _ findings: [ProbeFinding], of endpoint: WatchedEndpoint, by points: [String], at now: Int64
  ) -> [String: Set<String>] {
    memory.withLock { memory in
      if memory.points != points {
        let old = memory.points
        memory = (points, memory.kinds.mapValues { $0.following(old, to: points) })
      }
      return memory.kinds[endpoint.id, default: AnsweredKinds()].note(
        findings, at: now, every: endpoint.interval)
    }.mapValues { Set($0.map { points[$0] }) }
  }
}
