/// What Redis does in one step: nobody sees a part of it, and it is kept as a whole or not at all
/// (its log has it between MULTI and EXEC).
enum RedisScripts {
  /// Keys: record, history. Arguments: version, bytes, channel, name, and entries.
  ///
  /// - Returns: the new version as an integer, or the one in force as a string.
  static let replace = """
    local version = redis.call('HGET', KEYS[1], 'version') or '0'
    if version ~= ARGV[1] then return version end
    local new = redis.call('HINCRBY', KEYS[1], 'version', 1)
    redis.call('HSET', KEYS[1], 'bytes', ARGV[2])
    for i = 5, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
    redis.call('PUBLISH', ARGV[3], ARGV[4])
    return new
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
