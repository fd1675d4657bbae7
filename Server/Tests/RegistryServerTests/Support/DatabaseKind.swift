import RegistryServer
import RegistryStores
import TestSupport

/// One kind of database, with a server of the test's own that it may stop, kill and hang.
enum DatabaseKind: String, CaseIterable, Sendable {
  case postgres
  case redis

  func start() async throws -> any DatabaseUnderTest {
    switch self {
    case .postgres: try await PostgresServer.start()
    case .redis: try await RedisServer.start()
    }
  }
}

/// A database's server as the tests of outages use it.
protocol DatabaseUnderTest: Sendable {
  func launch() async throws
  func stop() async throws
  func kill() async throws
  func suspend(_ isSuspended: Bool)
  func open() throws -> any RegistryStore
  /// Ends every connection and keeps running.
  func dropConnections() async throws
}

extension PostgresServer: DatabaseUnderTest {
  func open() throws -> any RegistryStore { try PostgresStore(dsn: dsn()) }

  func dropConnections() async throws {
    try await run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        + " WHERE application_name = 'ssl-pinning'")
  }
}

extension RedisServer: DatabaseUnderTest {
  func open() throws -> any RegistryStore { try RedisStore(dsn: dsn()) }

  func dropConnections() async throws {
    try await run("CLIENT", "KILL", "TYPE", "normal")
    try await run("CLIENT", "KILL", "TYPE", "pubsub")
  }
}
