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
/// - Nobody waits longer for a connection than ``patience``.
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

  /// How many milliseconds a call waits for a connection.
  static var patience: Int { 5000 }

  private let turnstile: AsyncSemaphore
  private let state: Locked<State>
  private let open: @Sendable () throws(StoreError) -> Connection
  private let cleaning: Slot<RepeatingWork>

  /// - Parameter open: makes a connection; may block.
  init(
    _ configuration: ConnectionPoolConfiguration,
    open: @escaping @Sendable () throws(StoreError) -> Connection
  ) {
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
    guard await turnstile.enter(within: Self.patience) else { throw .busy }
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
