import Testing

@testable import RegistryServer

@Suite("A vantage point that is silent is not waited for") struct SilentRoutesTests {
  private var silent = SilentRoutes()

  private func hurried(at now: Int64, to endpoint: String = "a") -> Set<Int> {
    Set(silent.routes(to: endpoint, of: 0..<3, at: now).keys)
  }

  @Test("for a minute, then it has its time again; one answer, and it has it at once")
  mutating func minute() {
    silent.note(1, to: "a", .silent, wasHurried: false, at: 1000)
    silent.note(2, to: "a", .heard, wasHurried: false, at: 1000)
    #expect(hurried(at: 1000) == [1])
    #expect(hurried(at: 1000, to: "b") == [1])
    // What a hurried probe comes to does not lengthen the minute: a slow point would never be back.
    silent.note(1, to: "a", .silent, wasHurried: true, at: 60_000)
    #expect(hurried(at: 60_999) == [1])
    #expect(hurried(at: 61_000) == [])
    silent.note(1, to: "a", .silent, wasHurried: false, at: 61_000)
    #expect(hurried(at: 61_000) == [1])
    silent.note(1, to: "b", .heard, wasHurried: true, at: 62_000)
    #expect(hurried(at: 62_000) == [])
  }

  @Test("an endpoint of which nothing comes through its tunnels hurries it for no other endpoint")
  mutating func emptyTunnel() {
    silent.note(1, to: "a", .heard, wasHurried: false, at: 1000)
    silent.note(1, to: "b", .empty, wasHurried: false, at: 2000)
    #expect(hurried(at: 2000, to: "b") == [1])
    #expect(hurried(at: 2000) == [])
    #expect(hurried(at: 62_000, to: "b") == [])
    // Nothing was heard through it for a minute: it may well be the point.
    silent.note(1, to: "b", .empty, wasHurried: false, at: 62_000)
    #expect(hurried(at: 62_000) == [1])
  }

  @Test("for as long as usual, but for twice what its last answer took: far points have their time")
  mutating func far() {
    silent.note(1, to: "a", .heard, in: 1700, wasHurried: false, at: 1000)
    silent.note(1, to: "b", .heard, in: 300, wasHurried: false, at: 1500)
    silent.note(1, to: "a", .empty, wasHurried: false, at: 2000)
    #expect(silent.routes(to: "a", of: 0..<3, at: 2000) == [1: 3400])
    silent.note(1, to: "b", .silent, wasHurried: false, at: 3000)
    #expect(silent.routes(to: "b", of: 0..<3, at: 3000) == [1: 1000])
    // Of one that it has not been to, what it took last.
    #expect(silent.routes(to: "c", of: 0..<3, at: 3000) == [1: 1000])
  }
}
