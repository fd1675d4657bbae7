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
    var endpointKeys = AnswerLedger()
    for (version, replica) in [(1, 0), (2, 0), (1, 1), (3, 0), (3, 1), (3, 0)] {
      endpointKeys.enter(
        reading(Int64(version), 1...version), from: replica,
        at: start + .milliseconds(10 * version + replica))
    }
    #expect(endpointKeys.backwards + endpointKeys.twice + endpointKeys.dropped == 0)
    #expect(endpointKeys.versions == 3)
    #expect(endpointKeys.published == [key(1), key(2), key(3)])
    #expect(endpointKeys.keys(of: 1) == [key(1), key(2), key(3)])
    // The second replica never showed version 2.
    #expect(
      endpointKeys.delays(among: 2, since: start).sorted() == [.milliseconds(1), .milliseconds(1)])
    #expect(endpointKeys.delays(among: 2, since: start + .milliseconds(20)).count == 1)
  }

  @Test("is not where a replica goes back")
  func backwards() {
    var endpointKeys = AnswerLedger()
    for version in [1, 2, 1] as [Int64] {
      endpointKeys.enter(reading(version, 1...Int(version)), from: 0, at: start)
    }
    #expect(endpointKeys.backwards == 1 && endpointKeys.twice == 0 && endpointKeys.dropped == 0)
    #expect(endpointKeys.keys(of: 0) == [key(1), key(2)])
  }

  @Test("is not where one number has two documents, at whichever replica")
  func twice() {
    var endpointKeys = AnswerLedger()
    endpointKeys.enter(reading(1, 1...1, bytes: 7), from: 0, at: start)
    endpointKeys.enter(reading(1, 1...1, bytes: 8), from: 1, at: start)
    #expect(endpointKeys.twice == 1 && endpointKeys.backwards == 0 && endpointKeys.versions == 1)
  }

  @Test("is not where a document lacks a key of an older one, in whatever order they are read")
  func dropped() {
    var endpointKeys = AnswerLedger()
    endpointKeys.enter(reading(1, 1...2), from: 0, at: start)
    endpointKeys.enter(reading(2, 2...3), from: 0, at: start)
    #expect(endpointKeys.dropped == 1)
    var late = AnswerLedger()
    late.enter(reading(2, 2...3), from: 0, at: start)
    late.enter(reading(1, 1...2), from: 1, at: start)
    #expect(late.dropped == 1 && late.backwards == 0)
  }
}
