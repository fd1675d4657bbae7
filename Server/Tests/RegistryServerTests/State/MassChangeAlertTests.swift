import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// Every key that nobody announced is named by an alert, however many others there are.
@Suite("An alert names each key that nobody announced") struct MassChangeAlertTests {
  private static let start: Int64 = 1_780_000_000

  /// Endpoints `e0`, `e1` and so on, each with a key that was published before.
  private static func state(_ count: UInt8) -> DocumentState {
    var state = DocumentState()
    for index in 0..<count {
      state.keysByEndpoint["e\(index)"] = EndpointKeys(keys: [
        KnownKey(pin: pin(index), firstSeen: start - 90_000, lastSeen: start)
      ])
    }
    return state
  }

  /// What a probe leads to that publishes a key, while these endpoints change at once.
  private static func publish(
    _ key: UInt8, at index: Int, among changed: [Int] = [], _ now: Int64,
    in state: inout DocumentState
  ) {
    let id = "e\(index)"
    let event = KeyEvent.published(pin(key), isFirst: false)
    state.keysByEndpoint[id]?.candidates[pin(key)] = CandidateKey(
      firstSeen: now, chain: SeenChain(leaf: SeenCertificate(pin: pin(key))))
    state.keysByEndpoint[id]?.publish(pin(key), at: now, isUnannounced: true)
    _ = state.noteAlerts(of: [event], at: id, failures: 0, now: now)
    _ = state.noteMassChange(
      of: [event], among: changed.map { "all.json e\($0)" }, in: "all.json", now: now)
  }

  private static func isNamed(_ key: UInt8, _ state: DocumentState) -> Bool {
    state.alerts.values.joined().contains {
      $0.pin == pin(key) || $0.message.contains(pin(key).base64)
    }
  }

  @Test("after a mass change, too")
  func afterMassChange() {
    var state = Self.state(10)
    for index in 0..<2 { Self.publish(100, at: index, Self.start + 10, in: &state) }
    for index in 2..<8 {
      Self.publish(
        UInt8(100 + index), at: index, among: Array(0..<8), Self.start + 60 + Int64(index),
        in: &state)
    }
    #expect(state.alerts.values.joined().map(\.kind) == [.massChange])
    let all = [100, 102, 103, 104, 105, 106, 107] as [UInt8]
    for key in all { #expect(Self.isNamed(key, state), "\(key)") }
    Self.publish(200, at: 9, Self.start + 720, in: &state)
    for key in all + [200] { #expect(Self.isNamed(key, state), "\(key)") }
    #expect(state.alerts["e9"]?.map(\.kind) == [.unannouncedKey])
  }

  @Test("of an endpoint that is not among those that changed at once")
  func besideMassChange() {
    var state = Self.state(5)
    Self.publish(200, at: 4, Self.start, in: &state)
    for index in 0..<3 {
      Self.publish(UInt8(100 + index), at: index, among: [0, 1, 2], Self.start + 10, in: &state)
    }
    #expect(state.alerts["e4"]?.map(\.pin) == [pin(200)])
    for key in [100, 101, 102, 200] as [UInt8] { #expect(Self.isNamed(key, state), "\(key)") }
  }

  @Test("for a day since the newest")
  func renewed() {
    var state = Self.state(6)
    let later = Self.start + 23 * 3600
    for index in 0..<3 {
      Self.publish(UInt8(100 + index), at: index, among: [0, 1, 2], Self.start, in: &state)
    }
    for index in 3..<6 {
      Self.publish(UInt8(100 + index), at: index, among: [3, 4, 5], later, in: &state)
    }
    #expect(state.alerts[""]?.map(\.since) == [later])
    for key in UInt8(100)..<106 { #expect(Self.isNamed(key, state), "\(key)") }
    _ = state.noteMassChange(of: [], among: [], in: "all.json", now: later + 23 * 3600)
    #expect(state.alerts[""]?.map(\.kind) == [.massChange])
    _ = state.noteMassChange(of: [], among: [], in: "all.json", now: later + 25 * 3600)
    #expect(state.alerts[""] == nil)
  }

  @Test("until the last of them was decided about")
  func decided() {
    var state = Self.state(4)
    for index in 0..<3 {
      Self.publish(UInt8(100 + index), at: index, among: [0, 1, 2], Self.start, in: &state)
    }
    var waiting = CandidateKey(
      firstSeen: Self.start, chain: SeenChain(leaf: SeenCertificate(pin: pin(103))))
    waiting.reasons = [.newIssuer]
    state.keysByEndpoint["e3"]?.candidates[pin(103)] = waiting
    func isTold() -> Bool {
      _ = state.noteMassChange(of: [], among: [], in: "all.json", now: Self.start + 60)
      return state.alerts[""]?.map(\.kind) == [.massChange]
    }
    for index in 0..<3 {
      #expect(isTold())
      // A denied key stays where it is.
      guard index > 0 else {
        state.denied.append(
          DocumentState.Denial(pin: pin(100), at: Self.start, by: "ada", why: "not ours"))
        continue
      }
      state.keysByEndpoint["e\(index)"]?.keys = [
        KnownKey(pin: pin(UInt8(100 + index)), firstSeen: Self.start, lastSeen: Self.start)
      ]
    }
    #expect(isTold(), "one is held")
    state.keysByEndpoint["e3"]?.candidates = [:]
    #expect(!isTold())
  }

  @Test("by one of its own where the list is full")
  func beyondTheList() {
    var state = DocumentState()
    let count = DocumentState.mostListed + 5
    for index in 0..<count {
      state.keysByEndpoint["e\(index)"] = EndpointKeys(keys: [
        KnownKey(pin: pin(1), firstSeen: 0, lastSeen: Self.start)
      ])
    }
    for index in 0..<count {
      Self.publish(2, at: index, among: Array(0..<count), Self.start, in: &state)
    }
    let kinds = state.alerts.values.joined().map(\.kind)
    #expect(kinds.count { $0 == .unannouncedKey } == 5)
    #expect(kinds.count { $0 == .massChange } == 1)
  }

  @Test("and one that was withdrawn a day ago is withdrawn again: both are told for a day")
  func withdrawnAgain() {
    var state = Self.state(1)
    _ = state.noteAlerts(of: [.withdrawn(pin(9))], at: "e0", failures: 0, now: Self.start)
    let later = Self.start + 23 * 3600
    let isNew = state.noteAlerts(of: [.withdrawn(pin(9))], at: "e0", failures: 0, now: later)
    #expect(isNew)
    #expect(state.alerts["e0"]?.map(\.since) == [later])
  }

  /// What is told of a document with one endpoint that shows a key that nobody announced.
  private static func told(
    _ key: UInt8, in file: String, at since: Int64, isMassChange: Bool
  ) -> [Condition] {
    var state = state(1)
    publish(key, at: 0, among: isMassChange ? [0] : [], since, in: &state)
    return Condition.alerts(of: state, [:], in: file)
  }

  @Test("that is one for all documents, and for those that changed in the ten minutes before")
  func acrossDocuments() throws {
    let told =
      Self.told(100, in: "a.json", at: Self.start - 540, isMassChange: false)
      + Self.told(101, in: "b.json", at: Self.start, isMassChange: true)
      + Self.told(102, in: "c.json", at: Self.start + 60, isMassChange: true)
      + Self.told(103, in: "d.json", at: Self.start - 601, isMassChange: false)
      + Self.told(104, in: "e.json", at: Self.start + 61, isMassChange: false)
    let all = told.withOneMassChange
    #expect(
      all.map(\.kind) == [.alert(.unannouncedKey), .alert(.unannouncedKey), .alert(.massChange)])
    #expect(all.map(\.file) == ["d.json", "e.json", ""])
    let change = try #require(all.last)
    #expect(change.since == Self.start + 60)
    for key in 100...102 as ClosedRange<UInt8> {
      #expect(change.message.contains("e0 \(pin(key).base64)"))
    }
    for file in ["a", "b", "c"] { #expect(change.message.contains("\(file).json e0")) }
    // One that is alone says it itself.
    #expect(Array(told[1...1]).withOneMassChange.map(\.file) == ["b.json"])
  }

  @Test("that is told again of a key that joins it in the same second, in one document as well")
  func joinedAfterTheLook() {
    var (state, queue) = (Self.state(4), NotificationQueue())
    func told(at now: Int64) -> [String] {
      queue.observe(Condition.alerts(of: state, [:], in: "all.json"), at: now)
      let taken = queue.take(ticks: 0)
      queue.finished(isDelivered: true, ticks: 0)
      return taken.map(\.condition.message)
    }
    for index in 0..<3 {
      Self.publish(UInt8(100 + index), at: index, among: [0, 1, 2], Self.start, in: &state)
    }
    #expect(told(at: Self.start).count == 1)
    Self.publish(103, at: 3, among: [0, 1, 2, 3], Self.start, in: &state)
    let again = told(at: Self.start + NotificationQueue.joining)
    #expect(again.count == 1 && again.allSatisfy { $0.contains("e3 \(pin(103).base64)") })
    #expect(told(at: Self.start + 60) == [])
  }

  @Test("that is one for as many documents as it has room to list, and their own for the others")
  func beyondTheRoom() {
    let count = DocumentState.mostListed + 5
    let told = (0..<count).flatMap {
      Self.told(100, in: "\($0 + 1000).json", at: Self.start, isMassChange: true)
    }
    let all = told.withOneMassChange
    #expect(all.count { $0.file.isEmpty } == 1)
    #expect(
      all.map(\.file).filter { !$0.isEmpty } == (count - 5..<count).map { "\($0 + 1000).json" })
  }

  @Test("also after another server wrote")
  func merged() {
    let base = Self.state(3)
    var before = base
    Self.publish(100, at: 0, among: [0, 1, 2], Self.start, in: &before)
    var own = before
    Self.publish(101, at: 1, among: [0, 1, 2], Self.start + 50, in: &own)
    let merged = own.merging(before, base: before)
    #expect(merged.alerts[""]?.map(\.since) == [Self.start + 50])
    #expect(Self.isNamed(100, merged) && Self.isNamed(101, merged))
  }
}
