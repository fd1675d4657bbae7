import RegistryServer
import RegistryStores
import TestSupport

/// One kind of store. The contract is tested over each.
enum StoreKind: String, CaseIterable, Sendable {
  case memory
  case sqlite
  case fileSystem
  case postgres
  case redis

  /// Those that several servers can share, and that a restart does not empty.
  static let shared: [StoreKind] = allCases.filter { $0 != .memory }

  /// Somewhere that nobody has kept anything yet.
  func place() async throws -> StorePlace {
    switch self {
    case .memory:
      let store = MemoryStore()
      return StorePlace { store }
    case .sqlite:
      let directory = try TemporaryDirectory()
      return StorePlace(directory) { try SQLiteStore(path: directory.path("state/registry.db")) }
    case .fileSystem:
      let directory = try TemporaryDirectory()
      return StorePlace(directory) { try FileSystemStore(directory: directory.path("state")) }
    case .postgres:
      let server = try await PostgresServer.shared.value
      let dsn = server.dsn(try await server.makeDatabase())
      return StorePlace(server) { try PostgresStore(dsn: dsn) }
    case .redis:
      let server = try await RedisServer.shared.value
      let dsn = server.dsn(server.makeDatabase())
      return StorePlace(server) { try RedisStore(dsn: dsn) }
    }
  }
}

/// A store of a test that remembers all.
protocol WholeHistoryStore: RegistryStore {}

extension WholeHistoryStore {
  func forgetHistory(of name: String, through number: Int64) {}
}

/// Where stores of one test are opened: one handle, or several as by several servers.
final class StorePlace: Sendable {
  private let ground: (any Sendable)?
  private let make: @Sendable () throws -> any RegistryStore

  /// - Parameter ground: what must not go before the stores.
  init(
    _ ground: (any Sendable)? = nil, make: @escaping @Sendable () throws -> any RegistryStore
  ) {
    self.ground = ground
    self.make = make
  }

  /// Opens a handle.
  func open() throws -> any RegistryStore { try make() }
}
