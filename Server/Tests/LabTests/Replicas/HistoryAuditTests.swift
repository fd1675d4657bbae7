import RegistryServer
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import ssl_pinning_lab

@Suite("What a history says of the keys that were shown")
struct HistoryAuditTests {
  private static func pin(_ byte: UInt8) -> SPKIPin? {
    SPKIPin(digest: [UInt8](repeating: byte, count: 32))
  }

  private static func entry(_ event: String, _ byte: UInt8, at time: Int64 = 1) -> HistoryEntry {
    HistoryEntry(
      time: time, event: event, endpoint: "a.test:443 at 127.0.0.1", pin: pin(byte), who: "monitor")
  }

  private static func key(_ byte: UInt8) -> ListedKey {
    ListedKey(host: "a.test", pin: pin(byte)?.base64 ?? "")
  }

  @Test("each once")
  func once() {
    let audit = HistoryAudit(
      [
        Self.entry("key_waiting", 1), Self.entry("key_published", 1),
        Self.entry("key_published", 2),
      ],
      shown: [Self.key(1), Self.key(2)])
    #expect(audit.twice.isEmpty && audit.lost.isEmpty && audit.invented.isEmpty)
    #expect(audit.repeated.isEmpty)
  }

  @Test("one twice, to the letter or at another time")
  func twice() {
    let letter = HistoryAudit(
      [Self.entry("key_published", 1), Self.entry("key_published", 1)], shown: [Self.key(1)])
    #expect(letter.twice == [Self.key(1)] && letter.repeated.count == 1)
    let later = HistoryAudit(
      [Self.entry("key_published", 1), Self.entry("key_published", 1, at: 2)], shown: [Self.key(1)])
    #expect(later.twice == [Self.key(1)] && later.repeated.isEmpty)
    let waiting = HistoryAudit(
      [Self.entry("key_waiting", 1), Self.entry("key_waiting", 1), Self.entry("key_published", 1)],
      shown: [Self.key(1)])
    #expect(waiting.twice.isEmpty && waiting.repeated.count == 1)
  }

  @Test("one never, and one that nobody showed")
  func lost() {
    let audit = HistoryAudit(
      [Self.entry("key_waiting", 1), Self.entry("key_published", 3)], shown: [Self.key(1)])
    #expect(audit.lost == [Self.key(1)] && audit.invented == [Self.key(3)])
  }
}
