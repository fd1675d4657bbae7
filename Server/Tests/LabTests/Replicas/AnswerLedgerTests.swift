import SslPinningRules
import Testing

@testable import ssl_pinning_lab

@Suite("What replicas answered")
struct AnswerLedgerTests {
  private let start = ContinuousClock.now

  private func key(_ number: Int) -> ListedKey { ListedKey(host: "a", pin: "\(number)") }

  private func reading(_ version: Int64, _ keys: ClosedRange<Int>, bytes: UInt8? = nil)
    -> AnswerLedger.Reading
  {
    .init(
      number: .init(epoch: 0, version: version), bytes: [bytes ?? UInt8(version)],
      keys: Set(keys.map(key)))
  }

  @Test("is in order where each replica goes forward, one of them later than the other")
  func inOrder() {
    var ledger = AnswerLedger()
    for (version, replica) in [(1, 0), (2, 0), (1, 1), (3, 0), (3, 1), (3, 0)] {
      ledger.enter(
        reading(Int64(version), 1...version), from: replica,
        at: start + .milliseconds(10 * version + replica))
    }
    #expect(ledger.backwards + ledger.twice + ledger.dropped == 0)
    #expect(ledger.versions == 3)
    #expect(ledger.published == [key(1), key(2), key(3)])
    #expect(ledger.keys(of: 1) == [key(1), key(2), key(3)])
    // The second replica never showed version 2.
    #expect(
      ledger.delays(among: 2, since: start).sorted() == [.milliseconds(1), .milliseconds(1)])
    #expect(ledger.delays(among: 2, since: start + .milliseconds(20)).count == 1)
  }

  @Test("is not where a replica goes back")
  func backwards() {
    var ledger = AnswerLedger()
    for version in [1, 2, 1] as [Int64] {
      ledger.enter(reading(version, 1...Int(version)), from: 0, at: start)
    }
    #expect(ledger.backwards == 1 && ledger.twice == 0 && ledger.dropped == 0)
    #expect(ledger.keys(of: 0) == [key(1), key(2)])
  }

  @Test("is not where one number has two documents, at whichever replica")
  func twice() {
    var ledger = AnswerLedger()
    ledger.enter(reading(1, 1...1, bytes: 7), from: 0, at: start)
    ledger.enter(reading(1, 1...1, bytes: 8), from: 1, at: start)
    #expect(ledger.twice == 1 && ledger.backwards == 0 && ledger.versions == 1)
  }

  @Test("is not where a document lacks a key of an older one, in whatever order they are read")
  func dropped() {
    var ledger = AnswerLedger()
    ledger.enter(reading(1, 1...2), from: 0, at: start)
    ledger.enter(reading(2, 2...3), from: 0, at: start)
    #expect(ledger.dropped == 1)
    var late = AnswerLedger()
    late.enter(reading(2, 2...3), from: 0, at: start)
    late.enter(reading(1, 1...2), from: 1, at: start)
    #expect(late.dropped == 1 && late.backwards == 0)
  }
}
