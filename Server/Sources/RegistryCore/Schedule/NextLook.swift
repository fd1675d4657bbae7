/// When an endpoint is looked at again, as far as the decisions about its keys care.
package enum NextLook: Sendable, Hashable {
  /// After ``TLSConfiguration/lookInterval``: something waits for confirmation.
  case soon
  /// After ``LookSchedule/Settings/closeInterval``: a key may be about to be withdrawn.
  case closely
  /// When its interval is over.
  case onSchedule
  /// Later, and later each time: it did not answer.
  case failed
  /// Not again: it is watched no more.
  case never
}

/// Takes in what looks at one endpoint show.
package protocol LookDecision: Sendable {
  /// Enters one look. By its return everything that the look changed is published, or kept for the
  /// next attempt.
  func enter(_ look: Look) async -> NextLook
}

extension Look {
  /// Whether anybody answered at all.
  package var isAnswered: Bool {
    observations.contains {
      if case .unreachable = $0.outcome { false } else { true }
    }
  }
}
