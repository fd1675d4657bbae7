import Foundation

/// Who answers an authentication challenge of `URLSession` on Apple's systems.
///
/// - A server's trust is judged here, at whatever level the system asks. No delegate of the app ever sees it.
/// - A proxy's own trust is left to the system: chain and name count there, pins never.
/// - Anything else is the app's to answer. This package implements the methods of both levels, so the system no
///   longer looks for the next one who does; ``Asked`` in order stands in for that search.
/// - Where nothing may leave, every challenge is cancelled.
package enum ChallengeRule {
  /// The delegate method that the system called. Which one it calls first is not documented for every case;
  /// both lead to the same verdicts.
  package enum Level: CaseIterable, Sendable { case session, task }

  /// What is asked for.
  package enum Method: CaseIterable, Sendable {
    /// Whether the server may be trusted.
    case serverTrust
    /// What holds for the whole session: a client certificate, NTLM, Negotiate.
    case sessionWide
    /// What holds for one task: Basic, Digest.
    case perTask
  }

  /// Whom to ask, by which method.
  package enum Asked: CaseIterable, Sendable {
    /// The app's session delegate, by the session's method.
    case appSession
    /// A task's own delegate.
    case taskOwn
    /// The app's session delegate, by the task's method.
    case appTask
  }

  /// What to do with the challenge.
  package enum Step: Hashable, Sendable {
    /// Judge the chain, and answer with the verdict.
    case judge
    /// Default handling.
    case leaveToSystem
    /// End the request.
    case cancel
    /// Ask these until one of them has the method; default handling if none has.
    case ask([Asked])
  }

  /// - Parameter hasTrust: whether the challenge carries a trust object.
  package static func step(
    at level: Level, about method: Method, isProxy: Bool, hasTrust: Bool, in role: SessionRole
  ) -> Step {
    if case .refusing = role { return .cancel }
    switch (method, level) {
    case (.serverTrust, _) where isProxy: return .leaveToSystem
    case (.serverTrust, _): return hasTrust ? .judge : .cancel
    case (_, .session): return .ask([.appSession, .taskOwn, .appTask])
    case (.sessionWide, .task): return .ask([.taskOwn, .appTask, .appSession])
    case (.perTask, .task): return .ask([.taskOwn, .appTask])
    }
  }

  /// Whether a challenge to the session may be about the task with this URL. A proxy's is about all of them.
  package static func concerns(_ url: URL?, host: String, isProxy: Bool) -> Bool {
    isProxy || url?.host?.lowercased() == host.lowercased()
  }
}
