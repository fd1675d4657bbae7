/// What one client may take of the server. Times are seconds.
public struct HTTPLimits: Sendable, Hashable {
  /// Connections in all; further ones wait to be accepted.
  public var connections = 1024
  /// Connections of one address. Not applied while listening on loopback: there a reverse proxy
  /// stands in front, and every client has its address.
  public var connectionsPerAddress = 128
  /// How long a connection may be silent.
  public var idle: Int64 = 15
  /// How long a request may take to arrive, counted from the connection's beginning or from the end
  /// of the previous answer, however steadily it drips.
  public var request: Int64 = 30
  /// How long an answer may take to be read.
  public var answer: Int64 = 120
  /// How long a clean stop waits for answers that are under way.
  public var drain: Int64 = 5

  /// The defaults.
  public init() {}
}
