import RegistryCore
import TLSTools

/// Which questions for a kind of key vantage points had answered by an endpoint, and when.
///
/// A point that is there and gets no answer to such a question any more stands by what it saw: the endpoint, or a firewall before
/// it, may limit what one address asks, or answer so late that nothing is left of the time to ask again. Whoever stands before the
/// registry's server can bring about both, and shows a key of that kind himself.
struct AnsweredKinds {
  private struct Question: Hashable {
    let route: Int
    let kind: CertificateKeyKind
  }

  private var last: [Question: Int64] = [:]
  private let started: Int64

  /// - Parameter start: of this server, in milliseconds of uptime. What was answered before nobody remembers: it counts as if it
  ///   was answered then.
  init(since start: Int64) { started = start }

  /// Enters what a probe found.
  ///
  /// - Parameters:
  ///   - now: when it began, in milliseconds of uptime.
  ///   - interval: how often the endpoint is probed, in milliseconds; `nil`: at the common interval.
  /// - Returns: the routes of points that got no answer to a question that was answered within ``EndpointKeys/lastWord``, or within
  ///   three intervals, by the words of the kinds.
  mutating func note(
    _ findings: [ProbeFinding], at now: Int64, every interval: Int64? = nil
  ) -> [String: Set<Int>] {
    let lasting = max(EndpointKeys.lastWord * 1000, 3 * (interval ?? 0))
    let there = Set(findings.filter { $0.keyType == nil && $0.blame != .proxy }.map(\.route))
    var withheld: [String: Set<Int>] = [:]
    for finding in findings where finding.route != 0 {
      guard let kind = finding.keyType else { continue }
      let question = Question(route: finding.route, kind: kind)
      switch finding.outcome {
      case .success, .failure(.handshake): last[question] = now
      case .failure:
        let isThere =
          finding.blame != .proxy || finding.isRefusedAsTooMany || there.contains(finding.route)
        if isThere, now - (last[question] ?? started) <= lasting {
          withheld[kind.word, default: []].insert(finding.route)
        }
      }
    }
    return withheld
  }
}
