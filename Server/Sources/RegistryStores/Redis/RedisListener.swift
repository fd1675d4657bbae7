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
