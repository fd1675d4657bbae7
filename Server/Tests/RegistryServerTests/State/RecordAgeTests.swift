import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

@Suite("The age of a record") struct RecordAgeTests {
  @Test("is told by how often the store went back, and then by the version")
  func order() {
    let ages = [(0, 0), (0, 1), (0, 9), (1, 1), (1, 2), (2, 1)].map {
      RecordAge(returns: $0.0, version: $0.1)
    }
    for (index, one) in ages.enumerated() {
      for (place, other) in ages.enumerated() { #expect((one < other) == (index < place)) }
    }
    #expect(RecordAge(returns: 1, version: 5).nextReturns == 2)
    #expect(RecordAge(returns: .max, version: 1).nextReturns == RecordAge.mostReturns)
  }

  /// A record that was read while the answer to a write was on its way, and what becomes of the write: it was made
  /// under version 3 of a store that had gone back once.
  struct Overtaking: Sendable {
    let read: (returns: Int64, version: Int64)
    let outcome: RecordInForce.Outcome
    let known: Int64
  }

  static let overtakings = [
    Overtaking(read: (1, 2), outcome: .inForce, known: 3),
    Overtaking(read: (0, 9), outcome: .inForce, known: 3),
    Overtaking(read: (1, 3), outcome: .inPlaceOfAnother, known: 3),
    Overtaking(read: (1, 4), outcome: .overtaken, known: 4),
    Overtaking(read: (2, 1), outcome: .lost, known: 1),
  ]

  @Test(
    "tells whether a write whose answer comes late is in force; what is known is never taken back",
    arguments: overtakings)
  func late(_ overtaking: Overtaking) {
    func state(_ returns: Int64) -> DocumentState {
      var state = DocumentState()
      state.returns = returns
      return state
    }
    var record = RecordInForce()
    var read = DocumentRecord()
    read.state = state(overtaking.read.returns)
    (read.version, read.bytes) = (overtaking.read.version, [1])
    record.advance(to: read)
    #expect(record.note(state(1), version: 3, bytes: [2]) == overtaking.outcome)
    #expect(record.version == overtaking.known)
    #expect(
      record.newest
        == max(
          RecordAge(returns: 1, version: 3),
          RecordAge(returns: overtaking.read.returns, version: overtaking.read.version)))
  }
}

/// What people decided about one key, in the records of two servers.
@Suite("Denials of two records") struct UnitedDenialTests {
  /// How often people decided about the key: after an odd number it is denied.
  struct Scenario: Sendable, CustomTestStringConvertible {
    let own: Int
    let theirs: Int

    var testDescription: String { "\(own) decisions here, \(theirs) there" }
    var denied: Set<SPKIPin> { max(own, theirs).isMultiple(of: 2) ? [] : [pin(9)] }
  }

  static let scenarios = (0...4).flatMap { own in
    (0...4).map { Scenario(own: own, theirs: $0) }
  }

  /// After so many decisions, made by a clock that stands still.
  private static func state(after decisions: Int) throws -> DocumentState {
    var state = DocumentStateTests.settled()
    for number in 0..<decisions {
      if number.isMultiple(of: 2) {
        _ = try state.deny(
          pin(9), configured: DocumentStateTests.endpoints, force: false, DocumentStateTests.request
        )
      } else {
        _ = try state.allow(pin(9), DocumentStateTests.request)
      }
    }
    return state
  }

  @Test("are united by the last decision, whichever record has it", arguments: scenarios)
  func united(_ scenario: Scenario) throws {
    let own = try Self.state(after: scenario.own)
    let theirs = try Self.state(after: scenario.theirs)
    for base in [DocumentState(), own, theirs] {
      let merged = own.merging(theirs, base: base)
      #expect(merged.deniedPins == scenario.denied)
      #expect(merged.denied.count == scenario.denied.count)
      let read = try DocumentState(decoding: merged.encoded, file: "")
      #expect(read.denied == merged.denied && read.allowed == merged.allowed)
    }
    #expect(own.goingOn(from: theirs, after: RecordAge(), []).deniedPins == scenario.denied)
    var changed = own
    let isChanged = [theirs, theirs, own].map { changed.uniteDenials(with: $0) }
    #expect(isChanged == [scenario.theirs > scenario.own, false, false])
  }

  @Test("take what waited for a decision about the key with them")
  func waiting() throws {
    var own = try DocumentStateTests.full()
    var theirs = own
    _ = try theirs.deny(
      pin(7), configured: DocumentStateTests.endpoints, force: true, DocumentStateTests.request)
    let merged = theirs.merging(own, base: own)
    #expect(merged.deniedPins.contains(pin(7)))
    #expect(merged.keysByEndpoint[DocumentStateTests.a]?.candidates[pin(7)] == nil)
    own.uniteDenials(with: theirs)
    #expect(own.keysByEndpoint[DocumentStateTests.a]?.candidates[pin(7)] == nil)
  }

  @Test("are in no record whose count of losses is none")
  func misread() throws {
    let good = String(decoding: try Self.state(after: 3).encoded, as: UTF8.self)
    for bad in ["-1", "2e12", "\"1\"", "1.5"] {
      let text = good.replacing("\"removed\"", with: "\"returns\":\(bad),\"removed\"")
      #expect(text != good)
      #expect(throws: StoreError.self, "\(bad)") {
        try DocumentState(decoding: [UInt8](text.utf8), file: "")
      }
    }
  }
}
