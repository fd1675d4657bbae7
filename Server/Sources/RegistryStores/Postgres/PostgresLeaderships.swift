import Foundation
import SslPinningPlatform
import TLSTools

/// The leadership of a store in PostgreSQL: a session's advisory lock, named after the table of
/// records, so that two registries in one database have a leader each.
///
/// - Whoever leads waits on the connection: its end is noticed at once, and silence by asking every
///   second.
/// - A table that was restored is another one, and so is its lock: who has the old one leads no more.
/// - Every role that may connect can take the lock. One that may not write the records is no server: nobody leads then.
/// - A standby hands out locks of its own, and takes no writes: nobody leads there.
final class PostgresLeaderships: Sendable {
  private static let table = "'ssl_pinning_records'::regclass::oid::integer"
  /// Has a row while this session holds the lock of the table that has the name.
  private static let holding =
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    + " AND classid = 1397969006 AND objid = 'ssl_pinning_records'::regclass::oid"

  /// Who holds the lock of the table that has the name, and is no server: a session whose role can become none that may write
  /// there, or a transaction that was prepared, which has no session.
  private static let stranger =
    "SELECT coalesce('the role ' || a.usename, 'a role that was dropped'), l.pid::text"
    + " FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid"
    + " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 1397969006 AND l.objsubid = 2"
    + " AND l.objid = 'ssl_pinning_records'::regclass::oid"
    + " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    + " AND (l.pid IS NULL OR a.usesysid IS NOT NULL AND NOT EXISTS"
    + " (SELECT FROM pg_roles r WHERE pg_has_role(a.usesysid, r.oid, 'MEMBER')"
    + " AND has_any_column_privilege(r.oid, 'ssl_pinning_records'::regclass, 'UPDATE')))"

  private let open: @Sendable () throws(StoreError) -> PostgresConnection
  private let queue = WorkQueue("leadership")
  private let state = Locked(State())

  private struct State {
    /// Kept between attempts, so that waiting for the leadership costs no connection each second.
    var candidate: PostgresConnection?
    var holding: Holding?
    var isClosed = false
  }

  private struct Holding {
    let term: LeadershipTerm
    let wakeup: SelfPipe
  }

  /// - Parameter open: makes a connection; may block.
  init(open: @escaping @Sendable () throws(StoreError) -> PostgresConnection) { self.open = open }

  deinit { state.withLock { $0.holding }?.wakeup.wake() }

  /// Takes the leadership if nobody has it.
  func take() async throws(StoreError) -> (any StoreLeadership)? {
    try await queue.run { [self] () throws(StoreError) in
      guard !state.withLock({ $0.isClosed }) else { throw .closed }
      guard state.withLock({ $0.holding == nil }) else { return nil }
      let connection = try candidate()
      guard
        try connection.query("SELECT pg_is_in_recovery()").first?.integer(0) == 0
      else {
        throw .unreachable(place: connection.place, reason: "it is a standby, only read from")
      }
      guard
        try connection.query("SELECT pg_try_advisory_lock(1397969006, \(Self.table))")
          .first?.integer(0) == 1
      else {
        // Without an answer it counts as a server's, as most do.
        let stranger = (try? connection.query(Self.stranger))?.first
        state.withLock { $0.candidate = connection }
        guard let stranger else { return nil }
        let isPrepared = stranger.text(1).isEmpty
        throw .failed(
          operation: "leading",
          reason: isPrepared
            ? "a prepared transaction holds the lock of the leader; hint: ROLLBACK PREPARED the one in"
              + " pg_prepared_xacts that is no application's"
            : "\(stranger.text(0)), which may not write to ssl_pinning_records, holds the lock of"
              + " the leader; hint: if it is no server, pg_terminate_backend(\(stranger.text(1)))")
      }
      return hold(connection)
    }
  }

  /// Resigns where it leads, and closes the connection.
  func close() async {
    let term = state.withLock { state in
      state.isClosed = true
      return state.holding?.term
    }
    await term?.resign()
    try? await queue.run { self.state.withLock { $0.candidate = nil } }
  }

  private func candidate() throws(StoreError) -> PostgresConnection {
    if let kept = state.withLock({ $0.candidate.take() }), kept.isUsable { return kept }
    return try open()
  }

  private func hold(_ connection: PostgresConnection) -> LeadershipTerm {
    let wakeup = SelfPipe()
    let gone = DispatchGroup()
    let term = LeadershipTerm {
      wakeup.wake()
      await withCheckedContinuation { continuation in
        gone.notify(queue: .global()) { continuation.resume() }
      }
    }
    state.withLock { $0.holding = Holding(term: term, wakeup: wakeup) }
    gone.enter()
    BackgroundThread.start("leadership") { [weak self] in
      let isGivenUp = Self.watch(connection, wakeup)
      self?.letGo(of: connection, isGivenUp)
      // After the lock was given back: whoever waits for the end may take it at once.
      term.end()
      gone.leave()
    }
    return term
  }

  private func letGo(of connection: PostgresConnection, _ isGivenUp: Bool) {
    let isFree =
      isGivenUp
      && (try? connection.query("SELECT pg_advisory_unlock(1397969006, \(Self.table))")) != nil
    state.withLock { state in
      state.holding = nil
      if isFree, !state.isClosed { state.candidate = connection }
    }
  }

  /// - Returns: whether it was given up; false where it was lost.
  private static func watch(_ connection: PostgresConnection, _ wakeup: SelfPipe) -> Bool {
    while true {
      switch wakeup.wait(for: connection.socket, milliseconds: 1000) {
      case .woken: return true
      case .ready: guard connection.isUsable else { return false }
      case .timedOut:
        guard (try? connection.query(Self.holding))?.isEmpty == false else { return false }
      }
    }
  }
}
