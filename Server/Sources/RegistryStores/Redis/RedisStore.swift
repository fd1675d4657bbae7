import SslPinningPlatform

/// A store in Redis (6.2 or newer). See ``RegistryStore`` for the contract.
///
/// - A replacement is one script: the record, its history entries and the message to the others are
///   made together or not at all.
/// - Changes come over a connection of their own (`SUBSCRIBE`). When it was lost, all records may
///   have changed.
/// - The leader holds a key with a random token that Redis forgets after 5 s, and renews it every
///   second. A key that would last longer is no server's: it is given 5 s, too.
/// - A cut network, a hanging server and a restart end in an error within seconds; the next call
///   connects anew.
///
/// Hazards, all of them Redis' own: only with `appendonly yes` and `appendfsync always` is what was
/// acknowledged kept when its machine fails; ``warning`` says what the settings mean. Replication is
/// asynchronous, so a fail-over to a replica may lose the last changes, show readers an older
/// version, and let two servers lead for up to 4 s (compare and swap still keeps records whole).
/// Names are looked up by the system, which may take longer than the time-outs. A `FLUSHALL` takes everything. No Redis Cluster. After an error, whether a replacement
/// was made is unknown; read again.
public final class RedisStore: RegistryStore {
  private let keys: RedisKeys
  private let dsn: RedisDSN
  private let pool: ConnectionPool<RedisConnection>
  private let hub = ChangeHub()
  private let feed = Slot<DatabaseFeed>()
  private let leaderships: RedisLeaderships
  private let lossy = Slot<String>()

  /// Reads where Redis is. It is reached with the first call.
  ///
  /// - Parameter isInsecure: whether clear text may leave this machine.
  /// - Throws: ``StoreError/invalidDSN(reason:hint:)``.
  public init(
    dsn text: String, pool configuration: ConnectionPoolConfiguration = .init(),
    isInsecure: Bool = false
  ) throws(StoreError) {
    let dsn = try RedisDSN(text, isInsecure: isInsecure)
    self.dsn = dsn
    keys = RedisKeys(database: dsn.database)
    pool = ConnectionPool(configuration) { [lossy] () throws(StoreError) in
      let connection = try RedisConnection(dsn)
      lossy.set(try RedisDurability.warning(connection))
      return connection
    }
    leaderships = RedisLeaderships(key: keys.leader) { () throws(StoreError) in
      try RedisConnection(dsn, patience: 1000)
    }
  }

  public var warning: String? { lossy.value }

  public func record(named name: String) async throws(StoreError) -> StoredRecord? {
    try RecordName.check(name)
    return try await pool.run { [dsn] connection throws(StoreError) in
      let fields = try connection.command(
        "HMGET", RedisWord(RedisKeys.record(name)), "version", "bytes"
      ).items
      if fields.allSatisfy({ $0 == .nothing }) { return nil }
      // As the script has it: a number in other digits would be read, and never replaced.
      guard fields.count == 2, let version = fields[0].number, fields[0].text == "\(version)",
        version >= 0, case .bytes(let bytes) = fields[1]
      else { throw .damaged(path: dsn.place, reason: "the key has no version, or no bytes") }
      return StoredRecord(version: version, bytes: bytes)
    }
  }

  public func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    try RecordName.check(name)
    return try await pool.run { [keys] connection throws(StoreError) in
      let answer = try connection.run(
        RedisScripts.replace, keys: [RedisKeys.record(name), RedisKeys.history(name)],
        ["\(version)", RedisWord(bytes), "\(keys.channel)", "\(name)"] + history.map(RedisWord.init)
      )
      // Counted here: Lua's numbers are exact up to 2^53.
      if case .integer = answer {
        return .replaced(version: try StoredRecord.number(after: version, of: name))
      }
      return .conflict(version: answer.number ?? 0)
    }
  }

  public func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] {
    try RecordName.check(name)
    return try await pool.run { connection throws(StoreError) in
      let items = try connection.run(
        RedisScripts.history, keys: [RedisKeys.history(name), RedisKeys.forgotten(name)],
        ["\(before ?? .max)", "\(max(0, limit))"]
      ).items
      return Self.entries(items)
    }
  }

  /// The entries of a page, newest first: none if their numbers are such as no server gave.
  ///
  /// - Parameter items: the number of the first one, and the entries, oldest first.
  static func entries(_ items: [RedisReply]) -> [StoredEntry] {
    guard let first = items.first?.number, first > 0,
      !first.addingReportingOverflow(Int64(items.count)).overflow
    else { return [] }
    return items.dropFirst().enumerated().reversed().map { index, item in
      guard case .bytes(let bytes) = item else {
        return StoredEntry(number: first + Int64(index), bytes: [])
      }
      return StoredEntry(number: first + Int64(index), bytes: bytes)
    }
  }

  public func forgetHistory(of name: String, through number: Int64) async throws(StoreError) {
    try RecordName.check(name)
    _ = try await pool.run { connection throws(StoreError) in
      try connection.run(
        RedisScripts.forget, keys: [RedisKeys.history(name), RedisKeys.forgotten(name)],
        ["\(number)"]
      ).number
    }
  }

  public func changes() -> AsyncStream<String> {
    let stream = hub.stream()
    guard !hub.isFinished else { return stream }
    feed.setIfEmpty {
      DatabaseFeed(hub: hub) { [dsn] () throws(StoreError) in try RedisListener(dsn) }
    }
    return stream
  }

  public func lead() async throws(StoreError) -> (any StoreLeadership)? {
    guard !hub.isFinished else { throw .closed }
    return try await leaderships.take()
  }

  public func close() async {
    hub.finish()
    feed.take()?.stop()
    pool.close()
    await leaderships.close()
  }
}

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

  /// How many entries came before the first of the list.
  static func forgotten(_ name: String) -> String { "ssl-pinning:forgotten:{\(name)}" }
}

/// What Redis does in one step: nobody sees a part of it, and it is kept as a whole or not at all
/// (its log has it between MULTI and EXEC).
enum RedisScripts {
  /// Keys: record, history. Arguments: version, bytes, channel, name, and entries. A replacement of version 0 takes the place of
  /// what is no record. What is no history goes with any: Redis undoes nothing, so an entry that cannot be appended would come after
  /// the record was written.
  ///
  /// - Returns: the new version as an integer, or the one in force as a string.
  static let replace = """
    local kind, version, isRecord = redis.call('TYPE', KEYS[1])['ok'], '0', false
    if kind == 'hash' then
      version = redis.call('HGET', KEYS[1], 'version') or ''
      isRecord = (version == '0' or string.match(version, '^[1-9]%d*$'))
        and redis.call('HEXISTS', KEYS[1], 'bytes') == 1
        and (#version < 19 or #version == 19 and version <= '9223372036854775807')
    end
    if kind ~= 'none' and not isRecord then
      if ARGV[1] ~= '0' then return redis.error_reply('WRONGTYPE the key is no record') end
      redis.call('DEL', KEYS[1])
      version = '0'
    end
    if version ~= ARGV[1] then return version end
    local past = redis.call('TYPE', KEYS[2])['ok']
    if past ~= 'none' and past ~= 'list' then redis.call('DEL', KEYS[2]) end
    local new = redis.call('HINCRBY', KEYS[1], 'version', 1)
    redis.call('HSET', KEYS[1], 'bytes', ARGV[2])
    for i = 5, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
    redis.call('PUBLISH', ARGV[3], ARGV[4])
    return new
    """

  /// How many entries came before the first of the list. Whoever can write to Redis writes anything there. What no server wrote
  /// counts as none: Lua's numbers are exact up to 2^53, and beyond 2^63 none can be answered.
  private static let gone = """
    local gone = tonumber(redis.call('GET', KEYS[2]) or '0')
    if not gone or gone < 0 or gone > 2^53 - redis.call('LLEN', KEYS[1]) or gone % 1 ~= 0 then
      gone = 0
    end
    """

  /// Keys: history, forgotten. Arguments: the number to stop before, and how many entries.
  ///
  /// - Returns: the number of the first entry, and the entries, oldest first.
  static let history = """
    \(gone)
    local last = math.min(gone + redis.call('LLEN', KEYS[1]), tonumber(ARGV[1]) - 1)
    local first = math.max(gone + 1, last - tonumber(ARGV[2]) + 1)
    if first > last then return {} end
    local entries = redis.call('LRANGE', KEYS[1], first - gone - 1, last - gone - 1)
    table.insert(entries, 1, first)
    return entries
    """

  /// Keys: history, forgotten. Argument: the last number to forget.
  static let forget = """
    \(gone)
    local count = math.min(tonumber(ARGV[1]) - gone, redis.call('LLEN', KEYS[1]) - 1)
    if count < 1 then return 0 end
    redis.call('LTRIM', KEYS[1], count, -1)
    redis.call('SET', KEYS[2], gone + count)
    return count
    """

  /// Key: leader. Arguments: token, milliseconds. A key that lasts for longer, or for ever, would keep everybody from leading.
  /// A user who may not look is told that another one leads, as before a key's end counted.
  static let take = """
    if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
    local left = redis.pcall('PTTL', KEYS[1])
    if type(left) == 'number' and (left < 0 or left > tonumber(ARGV[2])) then
      redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
    end
    return 0
    """

  /// Key: leader. Arguments: token, milliseconds.
  static let renew = """
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
    """

  /// Key: leader. Argument: token.
  static let resign = """
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    return redis.call('DEL', KEYS[1])
    """
}

/// A connection that hears of replacements.
final class RedisListener: ChangeSource {
  private let connection: RedisConnection
  private var heard: [String] = []

  init(_ dsn: RedisDSN) throws(StoreError) {
    connection = try RedisConnection(dsn)
    try connection.command("SUBSCRIBE", RedisWord(RedisKeys(database: dsn.database).channel))
  }

  var socket: Int32 { connection.socket }

  func names() throws(StoreError) -> [String] {
    for reply in try connection.received() { note(reply) }
    defer { heard = [] }
    return heard
  }

  func probe() throws(StoreError) {
    try connection.send("PING")
    while true {
      let reply = try connection.receive()
      if reply.items.first?.text == "pong" { return }
      note(reply)
    }
  }

  private func note(_ reply: RedisReply) {
    let items = reply.items
    if items.count == 3, items[0].text == "message", let name = items[2].text { heard.append(name) }
  }
}

/// What Redis' own settings make of "acknowledged means kept".
enum RedisDurability {
  /// Asks Redis, and says what is not kept; `nil` where all is.
  static func warning(_ connection: RedisConnection) throws(StoreError) -> String? {
    var settings: [String: String] = [:]
    for name in ["appendonly", "appendfsync", "maxmemory", "maxmemory-policy"] {
      do throws(StoreError) {
        let pair = try connection.command("CONFIG", "GET", RedisWord(name)).items
        if pair.count == 2 { settings[name] = pair[1].text }
      } catch {
        if case .unreachable = error { throw error }
      }
    }
    return warning(settings)
  }

  static func warning(_ settings: [String: String]) -> String? {
    var losses: [String] = []
    switch (settings["appendonly"], settings["appendfsync"]) {
    case (nil, _), (_, nil):
      losses.append("whether it keeps what it acknowledged, it does not say (CONFIG GET)")
    case ("yes", "always"): break
    case ("yes", "everysec"):
      losses.append("up to two seconds of acknowledged changes are lost when its machine fails")
    case ("yes", _):
      losses.append("acknowledged changes are lost when its machine fails (appendfsync no)")
    default: losses.append("acknowledged changes are lost when it ends (appendonly no)")
    }
    let policy = settings["maxmemory-policy"] ?? "noeviction"
    if settings["maxmemory"] ?? "0" != "0", policy.hasPrefix("allkeys") {
      losses.append("it drops records when its memory is full (maxmemory-policy \(policy))")
    }
    guard !losses.isEmpty else { return nil }
    return "Redis: " + losses.joined(separator: "; ")
      + "; hint: appendonly yes, appendfsync always, maxmemory-policy noeviction"
  }
}
