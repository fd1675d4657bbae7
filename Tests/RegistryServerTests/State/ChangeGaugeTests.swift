import Pinning
import Testing

@testable import RegistryServer

@Suite("A sudden change of everything") struct ChangeGaugeTests {
  /// Endpoints by the byte of their keys, and whether each showed a new one.
  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    let looks: [(group: UInt8, isChanged: Bool, at: Int64)]
    let isSudden: Bool
    var testDescription: String { name }
  }

  static func changes(_ groups: ClosedRange<UInt8>, at: Int64 = 0) -> [(UInt8, Bool, Int64)] {
    groups.map { ($0, true, at) }
  }

  static func calm(_ groups: ClosedRange<UInt8>, at: Int64 = 0) -> [(UInt8, Bool, Int64)] {
    groups.map { ($0, false, at) }
  }

  static let scenarios: [Scenario] = [
    Scenario(name: "is none while nothing changes", looks: calm(1...9), isSudden: false),
    Scenario(name: "is none of two", looks: changes(1...2), isSudden: false),
    Scenario(
      name: "is one of three, where nobody stayed as he was", looks: changes(1...3), isSudden: true),
    Scenario(
      name: "is none of three among ten", looks: changes(1...3) + calm(4...10), isSudden: false),
    Scenario(
      name: "is one of six among ten", looks: changes(1...6) + calm(7...10), isSudden: true),
    Scenario(
      name: "is one of six among ten, in whichever order they were looked at",
      looks: changes(1...1) + calm(7...10) + changes(2...6), isSudden: true),
    Scenario(
      name: "does not count who was looked at before the first of them",
      looks: calm(4...10) + changes(1...3, at: 60), isSudden: true),
    Scenario(
      name: "counts endpoints that share their keys once",
      looks: [(1, true, 0), (1, true, 1), (1, true, 2), (1, true, 3)], isSudden: false),
    Scenario(
      name: "is over after the window", looks: changes(1...3) + changes(4...4, at: 601),
      isSudden: false),
  ]

  @Test("as the rule says", arguments: scenarios)
  func gauge(_ scenario: Scenario) {
    var gauge = ChangeGauge()
    for look in scenario.looks {
      gauge.note([pin(look.group)], isChanged: look.isChanged, at: look.at)
    }
    #expect(gauge.isSudden == scenario.isSudden)
  }

  @Test("has others looked at with each of the first changes, and with none after them")
  func sample() {
    var gauge = ChangeGauge()
    let asked = [1, 1, 2, 3, 4, 5].map { gauge.note([pin($0)], isChanged: true, at: 0) }
    #expect(asked == [true, false, true, true, false, false])
    let others = [
      gauge.note([pin(9)], isChanged: false, at: 0), gauge.note([], isChanged: true, at: 0),
      gauge.note([pin(1)], isChanged: true, at: 601),
    ]
    #expect(others == [false, false, true])
  }

  @Test("an endpoint without a key is no part of it")
  func firstKeys() {
    var gauge = ChangeGauge()
    for _ in 0..<10 { gauge.note([], isChanged: true, at: 0) }
    #expect(!gauge.isSudden)
  }
}
