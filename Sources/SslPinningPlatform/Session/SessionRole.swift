import Foundation
import SslPinningRules

/// What a `URLSession` of a transport is for.
package enum SessionRole: Hashable, Sendable {
  /// Requests to listed hosts: every pinned session of an app, and the client's own for each of them. A policy's
  /// leave for unlisted hosts does not count here: HTTP/2 would carry requests to listed hosts over the
  /// connection of an unlisted one, unasked.
  case pinned
  /// Requests of the client to hosts without an entry, and to no others.
  case unlisted
  /// Nothing may leave, for this reason: the app asked for a session that cannot be pinned.
  case refusing(reason: String)
}

/// What a task of a `URLSession` is, as far as that decides anything.
package enum TaskKind: Hashable, Sendable {
  /// A data, upload, download or WebSocket task: it has a URL.
  case request
  /// A stream task: bare TCP to a host and a port. No protocol class and no challenge sees it.
  case stream
}

/// Which tasks may leave over a session of a transport, first or redirected.
///
/// - Only `https` and `wss` go out; `data:` and `file:` dial nobody. Closed: a scheme that nobody has heard of
///   and a task without a URL are refused.
/// - A stream task is clear text until the app starts TLS, and nobody judges that TLS: refused.
package enum TaskRule {
  private static let judged: Set<String> = ["https", "wss"]
  private static let local: Set<String> = ["data", "file"]

  /// Whether a request to this URL may leave over a pinned session.
  package static func allows(_ url: URL?) -> Bool {
    guard let scheme = url?.scheme?.lowercased() else { return false }
    return judged.contains(scheme) || !dials(scheme)
  }

  /// Whether requests of this scheme, in lower case, go out at all.
  package static func dials(_ scheme: String) -> Bool { !local.contains(scheme) }

  /// Why a task must not go out; `nil` if it may.
  package static func fault(
    of kind: TaskKind, to url: URL?, in role: SessionRole
  ) -> PinEvaluation.Outcome? {
    if case .refusing(let reason) = role { return .unjudged(reason) }
    guard kind == .request else { return .clearText(scheme: "tcp") }
    guard let url else { return .unjudged("the task names no URL") }
    return allows(url) ? nil : .clearText(scheme: url.scheme?.lowercased() ?? "")
  }
}
