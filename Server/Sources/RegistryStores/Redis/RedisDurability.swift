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
