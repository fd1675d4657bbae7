/// What one client may take of the server.
///
/// Times are absolute: each begins with its phase and no traffic moves it, so a steady drip gains
/// nothing.
public struct HTTPLimits: Sendable, Hashable {
  /// Connections in all; further ones wait to be accepted.
  public var connections = 1024
  /// Connections of one address, or of one /64 of IPv6. Not applied to proxies that are trusted, nor while
  /// listening on loopback: there a reverse proxy stands in front, and every client has its address.
  public var connectionsPerAddress = 128
  /// From so many connections on each answer is its connection's last, and one address may have
  /// ``connectionsPerAddressInACrowd``: the last eighth is for callers with few connections.
  var crowd: Int { connections - connections / 8 }
  /// Connections of one address while there is a crowd.
  var connectionsPerAddressInACrowd: Int { max(1, connectionsPerAddress / 4) }
  /// Connections on which a stranger waits for an answer: 503 beyond. The others remain for whoever wants
  /// what is ready.
  public var waiting: Int { max(1, connections / 4) }
  /// The same of one client; not applied where all clients may have the same address.
  public var waitingPerAddress = 32
  /// How long a connection may wait for its next request to begin.
  public var idle = Duration.seconds(15)
  /// How long a request's header may take to arrive; on a new connection, counted from its
  /// beginning, a TLS handshake included.
  public var header = Duration.seconds(5)
  /// How long a request's body may take to arrive.
  public var body = Duration.seconds(5)
  /// How long an answer may take to be read.
  public var answer = Duration.seconds(5)
  /// How long an answer for later may take to be there.
  public var later = Duration.seconds(90)
  /// How long a clean stop waits for answers that are under way.
  public var drain = Duration.seconds(5)
  /// Bytes of a request's target (414 beyond).
  public var target = 4096
  /// Header lines of a request (431 beyond). Their bytes are bounded by the connection's memory,
  /// 16 KiB.
  public var headerLines = 64
  /// Bytes of all bodies that are under way (503 beyond).
  public var bodies = 32 << 20
  /// The same of those whose senders have shown a token: nothing that strangers send takes from it.
  public var trustedBodies = 8 << 20

  /// The defaults.
  public init() {}
}
