import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("A pool of connections") struct ConnectionPoolTests {
  private final class Line: DatabaseConnection {
    let number: Int
    let broken = Locked(false)
    var isUsable: Bool { !broken.withLock { $0 } }
    init(_ number: Int) { self.number = number }
  }

  private let opened = Locked<[Line]>([])

  private func pool(_ configuration: ConnectionPoolConfiguration) -> ConnectionPool<Line> {
    // Beside load, forty calls in a row take longer than a server would wait.
    ConnectionPool(configuration, patience: 600_000) { [opened] in
      opened.withLock { lines in
        lines.append(Line(lines.count))
        return lines[lines.count - 1]
      }
    }
  }

  @Test("uses a connection again, and another one once it broke")
  func reuse() async throws {
    let pool = pool(.init())
    #expect(try await pool.run { $0.number } == 0)
    #expect(try await pool.run { $0.number } == 0)
    opened.withLock { $0[0].broken.withLock { $0 = true } }
    #expect(try await pool.run { $0.number } == 1)
    await #expect(throws: StoreError.busy) {
      try await pool.run { line throws(StoreError) -> Int in
        line.broken.withLock { $0 = true }
        throw .busy
      }
    }
    #expect(try await pool.run { $0.number } == 2)
    // An error alone says nothing against the connection.
    await #expect(throws: StoreError.busy) {
      try await pool.run { _ throws(StoreError) -> Int in throw .busy }
    }
    #expect(try await pool.run { $0.number } == 2)
  }

  @Test("opens so many at a time and lets the others wait", arguments: [1, 3])
  func limit(_ most: Int) async throws {
    let pool = pool(ConnectionPoolConfiguration(maxOpen: most))
    let inside = Locked((now: 0, most: 0))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<40 {
        group.addTask {
          try await pool.run { _ in
            inside.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            inside.withLock { $0.now -= 1 }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(inside.withLock { $0.most } <= most)
    #expect(opened.withLock { $0.count } <= most)
  }

  @Test("gives up waiting for a place, and keeps the order of those who wait")
  func turnstile() async {
    let turnstile = AsyncSemaphore(places: 1)
    #expect(await turnstile.enter(within: 0))
    #expect(await !turnstile.enter(within: 1))
    async let waiting = turnstile.enter(within: 60_000)
    turnstile.leave()
    #expect(await waiting)
    #expect(await !turnstile.enter(within: 1))
    turnstile.leave()
    #expect(await turnstile.enter(within: 0))
    for _ in 0..<100 { #expect(await AsyncSemaphore(places: 0).enter(within: 0)) }
  }

  @Test("has no connection once it is closed")
  func closing() async throws {
    let pool = pool(.init())
    #expect(try await pool.run { $0.number } == 0)
    pool.close()
    await #expect(throws: StoreError.closed) { try await pool.run { $0.number } }
  }

  @Test("keeps idle connections as long, and as many, as it was told")
  func idle() {
    let start = ContinuousClock.now
    var idle = IdleConnections<String>(
      ConnectionPoolConfiguration(maxOpen: 0, maxIdle: 2, maxIdleTime: 1000, maxLifetime: 5000))
    func aged(_ name: String) -> IdleConnections<String>.Aged { .init(name, opened: start) }
    #expect(idle.put(aged("a"), at: start).isEmpty)
    #expect(idle.put(aged("b"), at: start + .milliseconds(500)).isEmpty)
    #expect(idle.put(aged("c"), at: start + .milliseconds(600)) == ["a"])
    #expect(idle.take()?.connection == "c")
    #expect(idle.expired(at: start + .milliseconds(1499)).isEmpty)
    #expect(idle.expired(at: start + .milliseconds(1500)) == ["b"])
    // Used all the time, and too old all the same.
    #expect(idle.put(aged("d"), at: start + .milliseconds(4999)).isEmpty)
    #expect(idle.take()?.connection == "d")
    #expect(idle.put(aged("d"), at: start + .milliseconds(5000)) == ["d"])
    #expect(idle.count == 0)
    var endless = IdleConnections<String>(
      ConnectionPoolConfiguration(maxOpen: 0, maxIdle: 1, maxIdleTime: 0, maxLifetime: 0))
    #expect(endless.put(aged("e"), at: start + .seconds(1_000_000)).isEmpty)
    var none = IdleConnections<String>(ConnectionPoolConfiguration(maxIdle: 0))
    #expect(none.put(aged("f"), at: start) == ["f"])
  }
}
