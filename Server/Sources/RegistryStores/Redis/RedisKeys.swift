/// The names that a store has in Redis. All begin with `ssl-pinning:`; whatever else a database
/// holds is left alone.
struct RedisKeys {
  /// Messages are for all databases of a server, so the number is in the name.
  let channel: String
  let leader = "ssl-pinning:leader"

  init(database: Int) { channel = "ssl-pinning:\(database):changes" }

  /// A hash of `version` and `bytes`.
  static func record(_ name: String) -> String { "ssl-pinning:record:{\(name)}" }

  /// A list, oldest entry first.
  static func history(_ name: String) -> String { "ssl-pinning:history:{\(name)}" }
}
