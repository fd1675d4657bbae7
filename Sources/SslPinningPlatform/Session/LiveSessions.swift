import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What the sessions of one transport share on Apple's systems. On Linux both stay empty: there every request
/// asks for the generation, and refusals are found by their texts (``RefusalLog``).
struct SessionState: Sendable {
  let sessions = LiveSessions()
  let recent = RecentRefusals()
}

/// The pinned sessions of one transport that are still in use.
///
/// - When the pins change, every one is flushed, for what that is worth. Apple's page says that requests go over new
///   connections afterwards; disassembled code of recent systems shows that `flush` writes cookies and caches out and
///   closes no connection. So what goes over an old one is held against the new pins when it ends, and told.
/// - The system offers no other way to close a connection than to invalidate its session, which is the app's.
package final class LiveSessions: Sendable {
  private struct Entry {
    weak var session: URLSession?
  }

  private struct State {
    var entries: [Entry] = []
    var generation: UInt64?
  }

  private let state = Locked(State())

  package init() {}

  /// Follows a session for as long as it lives and is not invalidated.
  package func add(_ session: URLSession) {
    state.withLock { state in
      state.entries.removeAll { $0.session == nil }
      state.entries.append(Entry(session: session))
    }
  }

  /// A session that was invalidated is not flushed.
  package func remove(_ session: URLSession) {
    state.withLock { state in
      state.entries.removeAll { $0.session == nil || $0.session === session }
    }
  }

  /// Flushes what is ``due(at:)``.
  func follow(_ generation: UInt64) {
    for session in due(at: generation) { session.flush {} }
  }

  /// Every session if `generation` is another than at the last call; none at the first.
  package func due(at generation: UInt64) -> [URLSession] {
    state.withLock { state in
      defer { state.generation = generation }
      guard let seen = state.generation, seen != generation else { return [] }
      return state.entries.compactMap { $0.session }
    }
  }
}

/// Finds the verdict behind an error that carries nothing of ours, by failing URL and time: for
/// platforms that answer a refusal with an error of their own.
///
/// - Of each host the newest refusal is kept, for 60 seconds, and after an acceptance for 2: of two handshakes at one
///   time, say with a man in the middle on one of two networks, either may end first, and the error comes after both.
/// - Hazard: such an error cannot be told from the app's own cancel of a request to a host that was
///   refused within that time. Then the refusal is named; every other cancel stays a cancel.
/// - Bounded: at most 1 024 hosts.
package final class RecentRefusals: Sendable {
  /// Seconds for which a refusal explains errors.
  package static let remembered: Int64 = 60
  /// Seconds for which it still does once the host was accepted.
  package static let rememberedBesideAcceptance: Int64 = 2
  private static let capacity = 1024

  private struct Entry {
    let refusal: PinEvaluation
    var until: Int64
  }

  /// What platforms report when a handshake is turned down.
  private static let codes: Set<Int> = [
    NSURLErrorCancelled, NSURLErrorUserCancelledAuthentication, NSURLErrorSecureConnectionFailed,
    NSURLErrorServerCertificateUntrusted,
  ]

  private let byHost = Locked<[HostName: Entry]>([:])

  package init() {}

  /// Keeps a refusal that requests to `host` will fail with; `now` in seconds of a clock that never
  /// goes back.
  package func note(_ refusal: PinEvaluation, failing host: HostName, at now: Int64) {
    byHost.withLock { entries in
      if entries.count >= Self.capacity {
        entries = entries.filter { now <= $0.value.until }
        if entries.count >= Self.capacity { entries.removeAll() }
      }
      entries[host] = Entry(refusal: refusal, until: now + Self.remembered)
    }
  }

  /// The host was accepted: soon its errors have other causes. `now` as for ``note(_:failing:at:)``.
  package func forget(_ host: HostName, at now: Int64) {
    byHost.withLock { entries in
      guard let until = entries[host]?.until else { return }
      entries[host]?.until = min(until, now + Self.rememberedBesideAcceptance)
    }
  }

  /// The verdict that this error stands for.
  package func refusal(for error: any Error, at now: Int64) -> PinEvaluation? {
    var next: NSError? = error as NSError
    for _ in 0..<4 {
      guard let current = next else { break }
      if let host = Self.host(of: current),
        let entry = byHost.withLock({ $0[host] }), now <= entry.until
      {
        return entry.refusal
      }
      next = current.userInfo[NSUnderlyingErrorKey] as? NSError
    }
    return nil
  }

  private static func host(of error: NSError) -> HostName? {
    guard error.domain == NSURLErrorDomain, codes.contains(error.code),
      let url = error.userInfo[NSURLErrorFailingURLErrorKey] as? URL, let host = url.host
    else { return nil }
    return try? HostName(host)
  }
}
