import Foundation
import TestSupport

/// Where the store of a drill lives: a directory, or a database with a server of the drill's own.
enum KillGround: Sendable {
  case directory(TemporaryDirectory)
  case postgres(PostgresServer)
  case redis(RedisServer)

  static func prepare(_ kind: DurableStore) async throws -> KillGround {
    switch kind {
    case .fileSystem, .sqlite: .directory(try TemporaryDirectory())
    case .postgres: .postgres(try await .start())
    case .redis: .redis(try await .start())
    }
  }

  func dsn(_ kind: DurableStore) -> String {
    switch self {
    case .directory(let directory): directory.path(kind == .sqlite ? "registry.db" : "state")
    case .postgres(let server): server.dsn()
    case .redis(let server): server.dsn()
    }
  }

  /// Whether there is a server that can be killed.
  var hasServer: Bool { if case .directory = self { false } else { true } }

  func killServer() async throws {
    switch self {
    case .directory: break
    case .postgres(let server): try await server.kill()
    case .redis(let server): try await server.kill()
    }
  }

  func launchServer() async throws {
    switch self {
    case .directory: break
    case .postgres(let server): try await server.launch()
    case .redis(let server): try await server.launch()
    }
  }

  func stop() async throws {
    switch self {
    case .directory: break
    case .postgres(let server): try await server.stop()
    case .redis(let server): try await server.stop()
    }
  }
}
