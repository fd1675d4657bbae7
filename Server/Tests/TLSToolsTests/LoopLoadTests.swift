import Testing

@testable import TLSTools

@Suite("How busy a probe's thread was") struct LoopLoadTests {
  @Test("is heavy from a quarter of the time on, also within a turn")
  func quarter() {
    let start = ContinuousClock.now
    var load = LoopLoad()
    let idle = load.reading(at: start)
    #expect(!load.isHeavy(since: idle, at: start + .seconds(1)))
    load.beginTurn(at: start + .seconds(1))
    #expect(!load.isHeavy(since: idle, at: start + .milliseconds(1300)))
    #expect(load.isHeavy(since: idle, at: start + .milliseconds(1400)))
    load.endTurn(at: start + .seconds(2))
    #expect(load.isHeavy(since: idle, at: start + .seconds(4)))
    #expect(!load.isHeavy(since: idle, at: start + .milliseconds(4100)))
    let later = load.reading(at: start + .seconds(5))
    #expect(!load.isHeavy(since: later, at: start + .seconds(6)))
  }
}
