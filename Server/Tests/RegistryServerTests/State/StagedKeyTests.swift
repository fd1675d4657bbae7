import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A staged key") struct StagedKeyTests {
  private static let rule = ConfirmationRule(looks: 3, window: 600, grace: 7200)
  private static let staging = KnownKey.Staging(at: 5, by: "ada", note: "the next one")

  private func ledger() -> DomainLedger {
    var ledger = DomainLedger(keys: [KnownKey(pin: pin(1), firstSeen: 0, lastSeen: 0)])
    ledger.stage(pin(2), Self.staging)
    return ledger
  }

  @Test("is published at once, and stands as staged")
  func published() {
    let ledger = ledger()
    #expect(ledger.keys.map(\.pin) == [pin(1), pin(2)])
    #expect(ledger.keys.map(\.state) == [.active, .staged])
  }

  @Test("is in use with the first look that shows it: nobody has to confirm what was announced")
  func activated() {
    var ledger = ledger()
    #expect(ledger.enter(.accepted(pin(2)), at: 10, rule: Self.rule) == [.activated(pin(2))])
    #expect(ledger.keys.map(\.state) == [.retiring, .active])
    #expect(ledger.enter(.accepted(pin(2)), at: 11, rule: Self.rule) == [])
  }

  @Test("stays however long nobody shows it")
  func stays() {
    var ledger = ledger()
    for hour in 1...1000 {
      _ = ledger.enter(.accepted(pin(1)), at: Int64(hour) * 3600, rule: Self.rule)
    }
    #expect(ledger.keys.map(\.state) == [.active, .staged])
  }

  @Test("is no key that would let the last one in use go")
  func lastKey() {
    var ledger = ledger()
    for hour in 1...20 {
      _ = ledger.enter(.accepted(pin(9)), at: Int64(hour) * 3000, rule: Self.rule)
    }
    #expect(ledger.keys.map(\.pin) == [pin(1), pin(2)])
  }

  @Test("makes the first key that is seen a changed one")
  func aloneOnTheList() {
    var ledger = DomainLedger()
    ledger.stage(pin(2), Self.staging)
    #expect(
      ledger.enter(.accepted(pin(3)), at: 10, rule: Self.rule)
        == [.waiting(pin(3), looks: 1, needed: 3)])
  }
}
