import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// A denial counts in every document, whichever could take it in when it was made.
@Suite("What documents deny together") struct DenialTests {
  /// What somebody does to one of two documents, at a time by the server's clock.
  enum Step: Sendable {
    case deny(Int, at: Int64)
    case allow(Int, at: Int64)
    /// Both documents tell each other what they deny.
    case share
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    let steps: [Step]
    /// Whether each of them denies the key in the end.
    let isDenied: [Bool]
    var testDescription: String { name }
  }

  static let scenarios: [Scenario] = [
    Scenario(
      name: "what one missed is denied there", steps: [.deny(0, at: 5), .share],
      isDenied: [true, true]),
    Scenario(
      name: "what was allowed again is not", steps: [.deny(0, at: 5), .allow(0, at: 6), .share],
      isDenied: [false, false]),
    Scenario(
      name: "what one allowed since is denied by none of them, however late it is told",
      steps: [.deny(0, at: 5), .share, .allow(0, at: 7), .share], isDenied: [false, false]),
    Scenario(
      name: "a denial of the second after it counts, also where both know the allowance",
      steps: [
        .deny(0, at: 5), .share, .allow(0, at: 5), .share, .deny(0, at: 5), .share,
      ],
      isDenied: [true, true]),
    Scenario(
      name: "of the same second the allowance counts",
      steps: [.deny(0, at: 5), .share, .allow(0, at: 5), .share], isDenied: [false, false]),
    Scenario(
      name: "a denial after that does",
      steps: [
        .deny(0, at: 5), .share, .allow(0, at: 7), .allow(1, at: 7), .deny(1, at: 8), .share,
      ],
      isDenied: [true, true]),
    Scenario(
      name: "in the same second, too",
      steps: [.deny(0, at: 5), .allow(0, at: 5), .deny(0, at: 5), .share], isDenied: [true, true]),
    Scenario(
      name: "under a clock that was set back, the last word counts: a denial",
      steps: [.deny(0, at: 500), .share, .allow(0, at: 500), .deny(0, at: 9), .share],
      isDenied: [true, true]),
    Scenario(
      name: "under a clock that was set back, the last word counts: an end of it",
      steps: [.deny(0, at: 500), .allow(0, at: 9), .share], isDenied: [false, false]),
  ]

  @Test("are united, and the last word of people counts", arguments: scenarios)
  func shared(_ scenario: Scenario) throws {
    var states = [DocumentStateTests.settled(), DocumentStateTests.settled()]
    // Signed long after all of this, as by a clock that was ahead.
    for index in states.indices { states[index].signed = 1_000_000 }
    var shared = SharedDenials()
    for step in scenario.steps {
      switch step {
      case .deny(let index, let at):
        _ = try states[index].deny(
          pin(9), configured: [], force: false, .init(who: "ada", at: at, why: "stolen"))
      case .allow(let index, let at):
        _ = try states[index].allow(pin(9), .init(who: "ada", at: at, why: "found"))
      case .share:
        for _ in 0..<2 {
          for index in states.indices {
            shared.enter(states[index])
            _ = states[index].takeOver(shared, at: 2_000_000)
          }
        }
      }
      // As after a restart.
      states = try states.map { try DocumentState(decoding: $0.encoded, file: "a.json") }
    }
    #expect(states.map { $0.deniedPins.contains(pin(9)) } == scenario.isDenied)
  }
}
