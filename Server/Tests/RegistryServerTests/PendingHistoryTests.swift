import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("History that is to be written")
struct PendingHistoryTests {
  private static let endpoint = "a.example:443"

  private static func entry(
    _ event: String, _ number: UInt8 = 1, at time: Int64 = 100, by who: String = "monitor"
  ) -> HistoryEntry {
    HistoryEntry(time: time, event: event, endpoint: endpoint, pin: pin(number), who: who)
  }

  /// A state with these keys, held ones and staged ones.
  private static func state(
    _ keys: [UInt8] = [], held: [UInt8] = [], staged: [UInt8] = []
  ) -> DocumentState {
    var state = DocumentState()
    var candidates: [SPKIPin: CandidateKey] = [:]
    for number in held {
      let chain = SeenChain(leaf: SeenCertificate(pin: pin(number)), above: [])
      candidates[pin(number)] = CandidateKey(firstSeen: 1, chain: chain)
      candidates[pin(number)]?.reasons = [.manual]
    }
    state.keysByEndpoint[endpoint] = EndpointKeys(
      keys: keys.map { KnownKey(pin: pin($0), firstSeen: 1, lastSeen: 1) }
        + staged.map {
          KnownKey(pin: pin($0), firstSeen: 1, lastSeen: 1, staged: .init(at: 1, by: "ada"))
        }, held: candidates)
    return state
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let entry: HistoryEntry
    let base: DocumentState
    let theirs: DocumentState
    let isTold: Bool

    init(
      _ name: String, _ entry: HistoryEntry, from base: DocumentState, to theirs: DocumentState,
      isTold: Bool
    ) {
      (testDescription, self.entry, self.base) = (name, entry, base)
      (self.theirs, self.isTold) = (theirs, isTold)
    }
  }

  static let scenarios = [
    Scenario(
      "published, and published there", entry("key_published"), from: state(), to: state([1]),
      isTold: true),
    Scenario(
      "published, and another one there", entry("key_published"), from: state(), to: state([2]),
      isTold: false),
    Scenario(
      "published, and it was there before", entry("key_published"), from: state([1]),
      to: state([1]), isTold: false),
    Scenario(
      "first seen, and published there", entry("key_waiting"), from: state(), to: state([1]),
      isTold: true),
    Scenario(
      "first seen, and nothing there", entry("key_waiting"), from: state(), to: state(),
      isTold: false),
    Scenario(
      "held, and held there", entry("key_held"), from: state(), to: state(held: [1]), isTold: true),
    Scenario(
      "held, and published there", entry("key_held"), from: state(), to: state([1]), isTold: true),
    Scenario(
      "held for another reason than before", entry("key_held"), from: state(held: [1]),
      to: state(held: [1]), isTold: false),
    Scenario(
      "held, and nothing there", entry("key_held"), from: state(), to: state(), isTold: false),
    Scenario(
      "in use, and in use there", entry("key_activated"), from: state(staged: [1]), to: state([1]),
      isTold: true),
    Scenario(
      "in use, and staged there", entry("key_activated"), from: state(staged: [1]),
      to: state(staged: [1]), isTold: false),
    Scenario(
      "retired, and gone there", entry("key_retired"), from: state([1, 2]), to: state([2]),
      isTold: true),
    Scenario(
      "retired, and still there", entry("key_retired"), from: state([1, 2]), to: state([1, 2]),
      isTold: false),
    Scenario(
      "denied key seen: each sight counts", entry("denied_key_seen"), from: state(),
      to: state([1]), isTold: false),
    Scenario(
      "published by a person", entry("key_published", by: "ada"), from: state(), to: state([1]),
      isTold: false),
  ]

  @Test("leaves out what another server told, and nothing else", arguments: scenarios)
  func told(_ scenario: Scenario) {
    var pending = PendingHistory()
    pending.append(scenario.entry)
    pending.reconcile(with: [], theirs: scenario.theirs, base: scenario.base)
    #expect(pending.entries == (scenario.isTold ? [] : [scenario.entry]))
  }

  @Test("is in doubt while a write is under way, and from one that failed until it is known")
  func doubt() {
    var pending = PendingHistory()
    let (first, second) = (Self.entry("noted", 1), Self.entry("noted", 2))
    pending.append(first)
    #expect(!pending.isUnsure)
    pending.begin()
    #expect(pending.isUnsure)
    pending.failed()
    #expect(pending.isUnsure && pending.entries == [first])
    pending.append(second)
    // Another one is refused: the first may be why.
    pending.begin()
    pending.refused()
    #expect(pending.isUnsure)
    pending.reconcile(with: [first], theirs: DocumentState(), base: DocumentState())
    #expect(!pending.isUnsure && pending.entries == [second])
    pending.begin()
    pending.failed()
    pending.begin()
    pending.written([second])
    #expect(!pending.isUnsure && pending.entries.isEmpty)
    pending.begin()
    pending.refused()
    #expect(!pending.isUnsure)
  }

  @Test("is not in doubt about a write that fails after another version was found in force")
  func foundMeanwhile() {
    var pending = PendingHistory()
    pending.append(Self.entry("noted"))
    pending.begin()
    pending.reconcile(
      with: [Self.entry("noted")], theirs: DocumentState(), base: DocumentState())
    #expect(pending.entries.isEmpty)
    pending.failed()
    #expect(!pending.isUnsure)
  }

  @Test("keeps an entry that came while others were written, and one that happened twice")
  func meanwhile() {
    var pending = PendingHistory()
    let (first, second) = (Self.entry("noted", 1), Self.entry("noted", 2))
    for entry in [first, first, second] { pending.append(entry) }
    pending.begin()
    pending.written([first])
    #expect(pending.entries == [first, second])
    // What is not there any more, and what was never among them, such as a person's.
    pending.begin()
    pending.written([first, first, Self.entry("noted", 9)])
    #expect(pending.entries == [second])
  }

  @Test("is looked for as far back as clocks of servers may be apart")
  func horizon() {
    var pending = PendingHistory()
    #expect(pending.isBehind(Self.entry("noted")))
    pending.append(Self.entry("noted", at: 10_000))
    pending.append(Self.entry("noted", at: 20_000))
    #expect(!pending.isBehind(Self.entry("noted", at: 6400)))
    #expect(pending.isBehind(Self.entry("noted", at: 6399)))
  }
}
