import Foundation
import SslPinningPlatform
import Testing

@Suite("A completion handler is answered exactly once")
struct OneShotTests {
  private final class Heard: Sendable {
    private let values = Locked<[Int]>([])
    var all: [Int] { values.withLock { $0 } }
    func hear(_ value: Int) { values.withLock { $0.append(value) } }
  }

  private let heard = Heard()

  @Test("with the first answer, whatever comes later")
  func first() {
    do {
      let answer = OneShot(otherwise: 0) { heard.hear($0) }
      answer.give(1)
      answer.give(2)
      #expect(heard.all == [1])
    }
    #expect(heard.all == [1])
  }

  @Test("with the closed answer if everybody lets go of it")
  func released() {
    var answer: OneShot<Int>? = OneShot(otherwise: 0) { heard.hear($0) }
    // What an app's delegate does that keeps the handler for a while and then forgets it.
    var kept: [(Int) -> Void] = [{ [answer] in answer?.give($0) }]
    answer = nil
    #expect(heard.all == [])
    kept = []
    #expect(heard.all == [0])
    #expect(kept.isEmpty)
  }

  @Test("however many threads answer")
  func threads() {
    let answer = OneShot(otherwise: 0) { heard.hear($0) }
    DispatchQueue.concurrentPerform(iterations: 64) { answer.give($0 + 1) }
    #expect(heard.all.count == 1)
    #expect(heard.all != [0])
  }

  @Test("also from inside the answer")
  func inside() {
    let again = Locked<OneShot<Int>?>(nil)
    let answer = OneShot(otherwise: 0) { [heard] value in
      heard.hear(value)
      if value < 3 { again.withLock { $0 }?.give(value + 1) }
    }
    again.withLock { $0 = answer }
    answer.give(1)
    again.withLock { $0 = nil }
    #expect(heard.all == [1])
  }
}
