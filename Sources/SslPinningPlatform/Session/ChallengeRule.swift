import Foundation
import SslPinningRules

/// Who answers an authentication challenge of `URLSession` on Apple's systems.
///
/// - A server's trust is judged here, at whatever level the system asks. No delegate of the app ever sees it.
/// - A proxy's own trust is left to the system: chain and name count there, pins never. Nothing documents which
///   challenges the system marks as a proxy's, so the mark alone is not believed: if the host is listed, or a
///   request goes to it, the challenge is judged as the server's.
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

  /// A challenge, as far as that decides anything.
  package struct Challenge: Sendable {
    package let level: Level
    package let method: Method
    /// The host of its protection space, as the system spells it.
    package let host: String
    /// Whether the system says that a proxy asks.
    package let isProxy: Bool
    /// Whether it carries a trust object.
    package let hasTrust: Bool

    package init(level: Level, method: Method, host: String, isProxy: Bool, hasTrust: Bool) {
      (self.level, self.method, self.host) = (level, method, host)
      (self.isProxy, self.hasTrust) = (isProxy, hasTrust)
    }

    /// Whether it may be about the task with this URL. A proxy's is about all of them.
    package func concerns(_ url: URL?) -> Bool { level == .task || isProxy || isHost(of: url) }

    fileprivate func isHost(of url: URL?) -> Bool {
      guard let other = url?.host else { return false }
      guard let name = try? HostName(other), let own = try? HostName(host) else {
        return other.lowercased() == host.lowercased()
      }
      return name == own
    }
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
    /// Look up where the session's tasks go, and decide again.
    case lookUp
    /// Ask these until one of them has the method; default handling if none has.
    case ask([Asked])
  }

  /// - Parameters:
  ///   - isListed: whether an entry speaks of the host, or nobody can read it.
  ///   - requests: where the tasks go that the challenge may be about; `nil`: not looked up yet.
  package static func step(
    about challenge: Challenge, isListed: Bool, requests: [URL?]?, in role: SessionRole
  ) -> Step {
    if case .refusing = role { return .cancel }
    let judged = challenge.hasTrust ? Step.judge : .cancel
    if challenge.method == .serverTrust, !challenge.isProxy || isListed { return judged }
    guard let requests else { return .lookUp }
    switch (challenge.method, challenge.level) {
    case (.serverTrust, _):
      return requests.contains(where: challenge.isHost) ? judged : .leaveToSystem
    case (_, .session): return .ask([.appSession, .taskOwn, .appTask])
    case (.sessionWide, .task): return .ask([.taskOwn, .appTask, .appSession])
    case (.perTask, .task): return .ask([.taskOwn, .appTask])
    }
  }
}
