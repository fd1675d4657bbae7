/// When an endpoint is probed again, as far as the decisions about its keys care.
package enum NextProbe: Sendable, Hashable {
  /// After ``TLSConfiguration/confirmationInterval``: something waits for confirmation.
  case soon
  /// After ``ProbeSchedule/Settings/closeInterval``: a key may be about to be withdrawn.
  case closely
  /// When its interval is over.
  case onSchedule
  /// Later, and later each time: it did not answer.
  case failed
  /// Not again: it is watched no more.
  case never
}

/// Takes in what probes one endpoint show.
package protocol ProbeReceiver: Sendable {
  /// Enters one probe. By its return everything that the probe changed is published, or kept for the
  /// next attempt.
  func enter(_ probe: ProbeResult) async -> NextProbe
}

extension ProbeResult {
  /// Whether anybody answered at all.
  package var isAnswered: Bool {
    observations.contains {
      if case .unreachable = $0.outcome { false } else { true }
    }
  }
}
