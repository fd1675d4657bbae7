import RegistryCore
import SslPinningPlatform

/// Which vantage points answer, and why probes failed from where.
final class VantageMetrics: Sendable {
  /// A vantage point that fell silent, or answers again.
  struct Change: Sendable, Equatable {
    let vantage: String
    /// Why it is silent; `nil`: it answers.
    let reason: String?
  }

  private let up = MetricFamily(
    "ssl_pinning_vantage_up", help: "1 while a vantage point itself answers, else 0",
    labels: ["vantage"], limit: 1000
  ) { Gauge() }
  private let failures = MetricFamily(
    "ssl_pinning_vantage_probe_failures_total",
    help: "Probes of one address from one vantage point that showed no key that can be believed",
    labels: ["vantage", "cause"], limit: 10_000
  ) { Counter() }
  private let silent = Locked<Set<String>>([])

  var all: [any ExposedMetric] { [up, failures] }

  /// Ends the series of vantage points that are configured no more.
  func configured(_ vantages: [String]) {
    let causes = ProbeFailureCause.allCases.map(\.rawValue)
    up.keep(only: vantages.map { [$0] })
    failures.keep(
      only: ([ProbeObservation.direct] + vantages).flatMap { name in causes.map { [name, $0] } })
    silent.withLock { $0.formIntersection(vantages) }
  }

  /// Enters a probe.
  ///
  /// - Returns: the vantage points of which something else is known now.
  func probed(_ probe: ProbeResult) -> [Change] {
    var changes: [Change] = []
    for observation in probe.observations {
      if let cause = observation.failureCause {
        failures.cell(observation.vantage, cause.rawValue).increment()
      }
      guard observation.vantage != ProbeObservation.direct, let reason = observation.silence else {
        continue
      }
      up.cell(observation.vantage).set(reason == .answers ? 1 : 0)
      let isNew = silent.withLock { silent in
        reason == .answers
          ? silent.remove(observation.vantage) != nil : silent.insert(observation.vantage).inserted
      }
      guard isNew else { continue }
      changes.append(Change(vantage: observation.vantage, reason: reason.text))
    }
    return changes
  }

  /// Forgets what probes showed: another server probes now.
  func forgetProbes() {
    up.keep(only: [])
    silent.withLock { $0 = [] }
  }
}

extension ProbeObservation {
  fileprivate enum Silence: Equatable {
    case answers
    case silent(String)

    var text: String? { if case .silent(let reason) = self { reason } else { nil } }
  }

  /// Whether the vantage point itself answered; `nil` if that is not known.
  fileprivate var silence: Silence? {
    switch (outcome, cause) {
    case (.accepted, _), (.refused, _): .answers
    case (.unreachable(let reason), .vantage): .silent(reason)
    case (.unreachable, .timeout), (.unreachable, .other), (.unreachable, nil): nil
    case (.unreachable, _): .answers
    }
  }
}
