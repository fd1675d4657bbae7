import Testing

@testable import RegistryServer

@Suite("A vantage point that is silent is not waited for") struct SilentRoutesTests {
  @Test("for a minute, then it has its time again; one answer, and it has it at once")
  func minute() {
    var silent = SilentRoutes()
    silent.note(1, isSilent: true, wasHurried: false, at: 1000)
    silent.note(2, isSilent: false, wasHurried: false, at: 1000)
    #expect(silent.routes(at: 1000) == [1])
    // What a hurried probe comes to does not lengthen the minute: a slow point would never be back.
    silent.note(1, isSilent: true, wasHurried: true, at: 60_000)
    #expect(silent.routes(at: 60_999) == [1])
    #expect(silent.routes(at: 61_000) == [])
    silent.note(1, isSilent: true, wasHurried: false, at: 61_000)
    #expect(silent.routes(at: 61_000) == [1])
    silent.note(1, isSilent: false, wasHurried: true, at: 62_000)
    #expect(silent.routes(at: 62_000) == [])
  }
}
