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
