import Foundation

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
/// - When the pins change, every one is flushed: requests go over new connections, whose handshakes are judged,
///   once `flush` has run. It runs on its own time: a task that is resumed at the same moment may still use
///   the old connection, and is held against the new pins when it ends.
/// - The system offers no way to close a connection, so what is under way on an old one ends there.
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
