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
