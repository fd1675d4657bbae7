import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A sudden change of everything") struct MassChangeDetectorTests {
  /// Endpoints by the byte of their keys, and whether each showed a new one.
  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    let probes: [(endpoint: UInt8, isChanged: Bool, at: Int64)]
    /// Under their new keys endpoints belong to other groups; these are those of the first probe.
    var areRenamed = false
    let isMassChange: Bool
    var testDescription: String { name }
  }

  static func changes(_ groups: ClosedRange<UInt8>, at: Int64 = 0) -> [(UInt8, Bool, Int64)] {
    groups.map { ($0, true, at) }
  }

  static func calm(_ groups: ClosedRange<UInt8>, at: Int64 = 0) -> [(UInt8, Bool, Int64)] {
    groups.map { ($0, false, at) }
  }

  static let scenarios: [Scenario] = [
    Scenario(name: "is none while nothing changes", probes: calm(1...9), isMassChange: false),
    Scenario(name: "is none of two", probes: changes(1...2), isMassChange: false),
    Scenario(
      name: "is one of three, where nobody stayed as he was", probes: changes(1...3),
      isMassChange: true),
    Scenario(
      name: "is none of three among ten", probes: changes(1...3) + calm(4...10), isMassChange: false
    ),
    Scenario(
      name: "is one of six among ten", probes: changes(1...6) + calm(7...10), isMassChange: true),
    Scenario(
      name: "is one of six among ten, in whichever order they were probed",
      probes: changes(1...1) + calm(7...10) + changes(2...6), isMassChange: true),
    Scenario(
      name: "does not count who was probed before the first of them",
      probes: calm(4...10) + changes(1...3, at: 60), isMassChange: true),
    Scenario(
      name: "does not count who was calm minutes before, while others changed",
      probes: changes(1...3) + calm(4...15) + changes(4...6, at: 300), isMassChange: true),
    Scenario(
      name: "counts who was calm seconds before",
      probes: changes(1...3) + calm(4...15) + changes(4...6, at: 4), isMassChange: false),
    Scenario(
      name: "counts one endpoint once, however often it changes",
      probes: [(1, true, 0), (1, true, 1), (1, true, 2), (1, true, 3)], isMassChange: false),
    Scenario(
      name: "does not take an endpoint for another one under its published new key",
      probes: changes(1...3) + calm(1...3, at: 4), areRenamed: true, isMassChange: true),
    Scenario(
      name: "is over after the window", probes: changes(1...3) + changes(4...4, at: 601),
      isMassChange: false),
  ]

  @Test("as the rule says", arguments: scenarios)
  func gauge(_ scenario: Scenario) {
    var gauge = MassChangeDetector()
    var changed: Set<UInt8> = []
    for probe in scenario.probes {
      let renamed = scenario.areRenamed && changed.contains(probe.endpoint)
      gauge.note(
        "\(probe.endpoint)", of: [pin(probe.endpoint)] + (renamed ? [pin(200)] : []),
        isChanged: probe.isChanged, at: probe.at)
      if probe.isChanged { changed.insert(probe.endpoint) }
    }
    #expect(gauge.isMassChange == scenario.isMassChange)
  }

  @Test("counts endpoints that share their keys once")
  func shared() {
    var gauge = MassChangeDetector()
    for name in ["a", "b", "c", "d"] { gauge.note(name, of: [pin(1)], isChanged: true, at: 0) }
    #expect(!gauge.isMassChange)
    #expect(gauge.changedEndpoints == ["a", "b", "c", "d"])
  }

  @Test("has others probed with each change, once a second at most")
  func sample() {
    var gauge = MassChangeDetector()
    func note(_ name: UInt8, isChanged: Bool = true, at now: Int64) -> Bool {
      gauge.note("\(name)", of: [pin(name)], isChanged: isChanged, at: now)
    }
    let asked = [
      note(1, at: 0), note(1, at: 1), note(2, at: 1), note(3, at: 1), note(4, at: 2),
      note(9, isChanged: false, at: 3), note(5, at: 3), note(1, at: 601),
    ]
    #expect(asked == [true, false, true, false, true, false, true, true])
    let isAsked = gauge.note("f", of: [], isChanged: true, at: 700)
    #expect(!isAsked)
  }

  @Test("an endpoint without a key is no part of it")
  func firstKeys() {
    var gauge = MassChangeDetector()
    for name in 0..<10 { gauge.note("\(name)", of: [], isChanged: true, at: 0) }
    #expect(!gauge.isMassChange)
  }
}
