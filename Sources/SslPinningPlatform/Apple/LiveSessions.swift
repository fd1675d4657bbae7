#if canImport(Security)
  import Foundation

  /// The pinned sessions of one transport that are still in use.
  ///
  /// - When the pins change, every one is flushed: requests from then on go over new connections,
  ///   whose handshakes are judged. The system offers no way to close a connection, so what is under
  ///   way on an old one ends there.
  final class LiveSessions: Sendable {
    private struct Entry {
      weak var session: URLSession?
    }

    private struct State {
      var entries: [Entry] = []
      var generation: UInt64?
    }

    private let state = Locked(State())

    /// Follows a session for as long as it lives.
    func add(_ session: URLSession) {
      state.withLock { state in
        state.entries.removeAll { $0.session == nil }
        state.entries.append(Entry(session: session))
      }
    }

    /// Flushes every session where `generation` is another than at the last call.
    func follow(_ generation: UInt64) {
      let sessions = state.withLock { state -> [URLSession] in
        defer { state.generation = generation }
        guard let seen = state.generation, seen != generation else { return [] }
        return state.entries.compactMap { $0.session }
      }
      for session in sessions { session.flush {} }
    }
  }
#endif
