import TestSupport
import Testing

@Suite("The databases of the tests") struct DatabaseServerTests {
  @Test("PostgreSQL flushes what it acknowledged, and is whole again after it was killed")
  func postgres() async throws {
    let server = try await PostgresServer.shared.value
    let name = try await server.makeDatabase()
    #expect(try await server.run("SHOW fsync", in: name) == "on\n")
    let own = try await PostgresServer.start()
    try await own.run("CREATE TABLE t (a int)")
    try await own.kill()
    try await own.launch()
    #expect(try await own.run("SELECT count(*) FROM t") == "0\n")
    try await own.stop()
  }

  @Test("Redis flushes what it acknowledged, and is whole again after it was killed")
  func redis() async throws {
    let server = try await RedisServer.shared.value
    #expect(try await server.run("CONFIG", "GET", "appendfsync") == "appendfsync\nalways\n")
    let own = try await RedisServer.start()
    try await own.run("SET", "a", "b")
    try await own.kill()
    try await own.launch()
    #expect(try await own.run("GET", "a") == "b\n")
    try await own.stop()
  }
}
