import Foundation
import SslPinningPlatform

/// A connection to a database, used by one thread at a time.
protocol DatabaseConnection: AnyObject, Sendable {
  /// Whether it can be used as far as is known without asking the database: it did not fail, and
  /// nothing has come over it that nobody asked for, such as its end.
  var isUsable: Bool { get }
}

/// Connections to one database, opened when needed and kept for the next call.
///
/// - Work runs off the cooperative threads, on a queue that belongs to the connection.
/// - A connection that was closed meanwhile is noticed before it is used, and another one opened. One
///   that fails takes the idle ones with it: what cut it has cut them too.
/// - Nobody waits longer for a connection than 5 seconds.
final class ConnectionPool<Connection: DatabaseConnection>: Sendable {
  /// A queue and the connection that is used on it.
  private final class Lane: Sendable {
    let queue = WorkQueue("database connection")
    let connection: Slot<Connection>

    init() { connection = Slot() }
  }

  private struct State {
    var idle: IdleConnections<Lane>
    var isClosed = false
  }

  private let patience: Int
  private let turnstile: AsyncSemaphore
  private let state: Locked<State>
  private let open: @Sendable () throws(StoreError) -> Connection
  private let cleaning: Slot<RepeatingWork>

  /// - Parameters:
  ///   - patience: how many milliseconds a call waits for a connection.
  ///   - open: makes a connection; may block.
  init(
    _ configuration: ConnectionPoolConfiguration, patience: Int = 5000,
    open: @escaping @Sendable () throws(StoreError) -> Connection
  ) {
    self.patience = patience
    turnstile = AsyncSemaphore(places: configuration.maxOpen)
    state = Locked(State(idle: IdleConnections(configuration)))
    self.open = open
    cleaning = Slot()
    cleaning.set(
      WorkQueue("idle connections").every(30_000) { [weak self] in
        _ = self?.state.withLock { $0.idle.expired(at: .now) }
      })
  }

  /// Runs blocking work on a connection.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable (Connection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    try checkOpen()
    guard await turnstile.enter(within: patience) else { throw .busy }
    defer { turnstile.leave() }
    try checkOpen()
    let aged = state.withLock { $0.idle.take() } ?? IdleConnections.Aged(Lane(), opened: .now)
    let (lane, age) = (aged.connection, aged.opened)
    let result: Result<(value: Value, opened: ContinuousClock.Instant), StoreError>
    do throws(StoreError) {
      result = .success(
        try await lane.queue.run { [open] () throws(StoreError) in
          var opened = age
          if lane.connection.value?.isUsable != true {
            lane.connection.set(nil)
            lane.connection.set(try open())
            opened = .now
          }
          guard let connection = lane.connection.value else { throw .closed }
          return (try work(connection), opened)
        })
    } catch { result = .failure(error) }
    putBack(lane, opened: (try? result.get().opened) ?? age)
    return try result.get().value
  }

  /// Closes the idle connections now and the others after their use.
  func close() {
    cleaning.set(nil)
    _ = state.withLock { state in
      state.isClosed = true
      return state.idle.removeAll()
    }
  }

  private func checkOpen() throws(StoreError) {
    if state.withLock({ $0.isClosed }) { throw .closed }
  }

  private func putBack(_ lane: Lane, opened: ContinuousClock.Instant) {
    let isGood = lane.connection.value?.isUsable == true
    // What is dropped here is closed when nobody holds it any more, after the lock.
    _ = state.withLock { state in
      guard !state.isClosed else { return [Lane]() }
      guard isGood else { return state.idle.removeAll() }
      return state.idle.put(IdleConnections.Aged(lane, opened: opened), at: .now)
    }
  }
}

/// The connections that nobody uses at the moment, newest use last.
struct IdleConnections<Connection> {
  /// A connection with its age.
  struct Aged {
    let connection: Connection
    let opened: ContinuousClock.Instant
    fileprivate var used: ContinuousClock.Instant

    init(_ connection: Connection, opened: ContinuousClock.Instant) {
      self.connection = connection
      self.opened = opened
      used = opened
    }
  }

  private let configuration: ConnectionPoolConfiguration
  private var idle: [Aged] = []

  init(_ configuration: ConnectionPoolConfiguration) { self.configuration = configuration }

  var count: Int { idle.count }

  /// The connection that was used last, which is the likeliest to be still good.
  mutating func take() -> Aged? { idle.popLast() }

  /// Keeps a connection for the next use, or not.
  ///
  /// - Returns: those to close.
  mutating func put(_ connection: Aged, at now: ContinuousClock.Instant) -> [Connection] {
    var connection = connection
    connection.used = now
    idle.append(connection)
    return expired(at: now)
  }

  /// Takes out the connections that are too old, unused for too long, or too many.
  mutating func expired(at now: ContinuousClock.Instant) -> [Connection] {
    let excess = max(0, idle.count - max(0, configuration.maxIdle))
    var out = idle.prefix(excess).map(\.connection)
    idle.removeFirst(excess)
    idle.removeAll { one in
      let isOld =
        Self.isOver(configuration.maxLifetime, since: one.opened, at: now)
        || Self.isOver(configuration.maxIdleTime, since: one.used, at: now)
      if isOld { out.append(one.connection) }
      return isOld
    }
    return out
  }

  /// Takes out all.
  mutating func removeAll() -> [Connection] {
    defer { idle = [] }
    return idle.map(\.connection)
  }

  private static func isOver(
    _ limit: Int64, since start: ContinuousClock.Instant, at now: ContinuousClock.Instant
  ) -> Bool {
    limit > 0 && now - start >= .milliseconds(limit)
  }
}

/// How many connections to a database are kept, and for how long. Times are in milliseconds.
///
/// The names and defaults are those of the reference server; a change feed and a leadership have a
/// connection each besides.
public struct ConnectionPoolConfiguration: Sendable, Equatable {
  /// `max_open_conns`: the most connections at a time; further calls wait. 0 means no limit.
  public var maxOpen: Int
  /// `max_idle_conns`: the most connections kept while nobody uses them. 0 keeps none.
  public var maxIdle: Int
  /// `conn_max_idle_time`: a connection unused for longer is closed. 0 means never.
  public var maxIdleTime: Int64
  /// `conn_max_lifetime`: a connection older than this is closed after its use, so that a database
  /// behind a balancer is found again. 0 means never.
  public var maxLifetime: Int64

  /// A configuration; the defaults are those of the configuration file.
  public init(
    maxOpen: Int = 5, maxIdle: Int = 5, maxIdleTime: Int64 = 300_000,
    maxLifetime: Int64 = 1_800_000
  ) {
    self.maxOpen = maxOpen
    self.maxIdle = maxIdle
    self.maxIdleTime = maxIdleTime
    self.maxLifetime = maxLifetime
  }
}
