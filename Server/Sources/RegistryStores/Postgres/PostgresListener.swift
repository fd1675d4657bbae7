/// A connection that hears of replacements.
final class PostgresListener: ChangeSource {
  private let connection: PostgresConnection

  init(_ dsn: PostgresDSN, channel: String) throws(StoreError) {
    connection = try PostgresConnection(dsn)
    try connection.execute("LISTEN \(channel)")
  }

  var socket: Int32 { connection.socket }

  func names() throws(StoreError) -> [String] { try connection.notifications() }

  func probe() throws(StoreError) { try connection.execute("SELECT 1") }
}
