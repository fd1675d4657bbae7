import Testing

@testable import SslPinning

@Suite("Whom a refresh asks")
struct RegistryRoundTests {
  enum Step: Sendable {
    case second(Int)
    case newer(Int)
    case none(Int)
    case failed(Int)
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    var name: String
    var places = 3
    var isAnew = false
    var steps: [Step]
    /// Who was asked after each step; -1: nobody.
    var next: [Int]
    var isOver: Bool
    var testDescription: String { name }
  }

  static let scenarios: [Scenario] = [
    .init(name: "a registry that has nothing newer", steps: [.none(0)], next: [-1], isOver: true),
    .init(
      name: "a registry that has something newer", steps: [.newer(0)], next: [-1], isOver: true),
    .init(
      name: "a registry that fails, alone", places: 1, steps: [.failed(0)], next: [-1], isOver: true
    ),
    .init(
      name: "a registry that fails", steps: [.failed(0), .failed(1), .failed(2)], next: [1, 2, -1],
      isOver: true),
    .init(
      name: "a mirror that has nothing newer leaves the next one to be asked",
      steps: [.failed(0), .none(1)], next: [1, 2], isOver: false),
    .init(
      name: "a registry that is late: who was asked meanwhile is not asked twice",
      steps: [.second(0), .failed(0), .second(1), .none(1), .newer(2)], next: [1, -1, 2, -1, -1],
      isOver: true),
    .init(
      name: "a second that is over for one who was passed already",
      steps: [.second(0), .second(0), .failed(1)], next: [1, -1, 2], isOver: false),
    .init(
      name: "a registry that says late that there is nothing newer ends it",
      steps: [.second(0), .second(1), .none(0)], next: [1, 2, -1], isOver: true),
    .init(
      name: "a mirror that brings something newer leaves the next one to be asked",
      steps: [.second(0), .newer(1)], next: [1, 2], isOver: false),
    .init(
      name: "the registry ends it with something newer, whatever a mirror has brought",
      steps: [.second(0), .newer(1), .newer(0), .second(2)], next: [1, 2, -1, -1], isOver: true),
    .init(
      name: "after a refusal, nothing newer is no reason not to ask the next", isAnew: true,
      steps: [.none(0), .none(1), .none(2)], next: [1, 2, -1], isOver: true),
    .init(
      name: "after a refusal, a mirror's something newer leaves the next one to be asked",
      isAnew: true, steps: [.none(0), .newer(1), .newer(2)], next: [1, 2, -1], isOver: true),
    .init(
      name: "after a refusal, something newer of the registry ends it", isAnew: true,
      steps: [.newer(0)], next: [-1], isOver: true),
    .init(
      name: "nobody is asked once it is over", steps: [.newer(0), .second(0), .failed(1)],
      next: [-1, -1, -1], isOver: true),
  ]

  @Test("goes as the table says", arguments: scenarios)
  func table(_ scenario: Scenario) {
    var round = RegistryRound(places: scenario.places, isAnew: scenario.isAnew)
    var next: [Int] = []
    for step in scenario.steps {
      let asked =
        switch step {
        case .second(let place): round.secondPassed(for: place)
        case .newer(let place): round.answer(.newer, of: place)
        case .none(let place): round.answer(.nothingNewer, of: place)
        case .failed(let place): round.answer(.failed, of: place)
        }
      next.append(asked ?? -1)
    }
    #expect(next == scenario.next)
    #expect(round.isOver == scenario.isOver)
  }
}
