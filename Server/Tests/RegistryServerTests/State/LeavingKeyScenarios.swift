import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// What an endpoint shows one after the other, and which keys are published in the end.
extension LeavingKeyTests {
  typealias View = LedgerBench.View

  /// Probes that show the same, one after the other.
  struct Stretch: Sendable {
    let view: View
    var times = 1
    var pause: Int64 = 60

    init(_ view: View, _ times: Int = 1, every pause: Int64 = 60) {
      (self.view, self.times, self.pause) = (view, times, pause)
    }
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    var points: [String] = []
    var isUnion = false
    let steps: [Stretch]
    /// The published keys in the end.
    let keys: Set<UInt8>
    /// The keys that somebody was told of: nobody knows whether they are gone.
    var told: Set<UInt8> = []
    var testDescription: String { name }
  }

  static let here = LedgerBench.here
  static let day = 24 * 60

  /// What two addresses show to this server.
  static func at(_ a: LedgerBench.Answer, _ b: LedgerBench.Answer) -> View {
    [(here, "a", a), (here, "b", b)]
  }

  /// What an endpoint with one key shows.
  static func one(_ key: UInt8) -> View { [(here, "", .key(key))] }

  /// What this server and Oslo see at one address.
  static func from(_ direct: LedgerBench.Answer, oslo: LedgerBench.Answer) -> View {
    [(here, "a", direct), ("oslo", "", oslo)]
  }

  static let three = ["oslo", "rome", "bern"]

  /// What this server sees at one address, and all three points.
  static func everywhere(
    _ direct: LedgerBench.Answer, points: LedgerBench.Answer
  ) -> View {
    [(here, "a", direct)] + three.map { ($0, "", points) }
  }

  /// A new key, shown to this server and to all three points for less than half a minute.
  static let seenByAll = [
    Stretch(everywhere(.key(1), points: .key(1)), 3),
    Stretch(everywhere(.key(9), points: .key(9)), 12, every: 2),
  ]

  static let scenarios: [Scenario] = [
    Scenario(
      name: "stays for however long the only address that shows it is down",
      steps: [
        Stretch(at(.key(1), .key(2)), 4), Stretch(at(.key(1), .silent), 8 * day),
      ], keys: [1, 2], told: [2]),
    Scenario(
      name: "stays for however long the address shows a chain that proves nothing",
      steps: [
        Stretch(at(.key(1), .key(2)), 90), Stretch(at(.key(1), .refused), 8 * day),
      ], keys: [1, 2], told: [2]),
    Scenario(
      name: "has its whole grace time left when the address answers with another one",
      steps: [
        Stretch(at(.key(1), .key(2)), 90), Stretch(at(.key(1), .silent), 8 * day),
        Stretch(at(.key(1), .key(1)), 7 * day - 1),
      ], keys: [1, 2], told: [2]),
    Scenario(
      name: "leaves after that",
      steps: [
        Stretch(at(.key(1), .key(2)), 90), Stretch(at(.key(1), .silent), 8 * day),
        Stretch(at(.key(1), .key(1)), 7 * day + 2),
      ], keys: [1], told: [2]),
    Scenario(
      name: "leaves although an address goes down that showed another one for a day",
      steps: [
        Stretch(at(.key(1), .key(1)), 90), Stretch(at(.key(2), .key(2)), day + 10),
        Stretch(at(.key(2), .silent), 6 * day + 10),
      ], keys: [2]),
    Scenario(
      name: "leaves although the name has an address that never answered",
      steps: [
        Stretch(at(.key(1), .silent), 90), Stretch(at(.key(2), .silent), 7 * day + 10),
      ], keys: [2]),
    Scenario(
      name: "leaves if the name has its address no more",
      steps: [
        Stretch(at(.key(1), .key(2)), 90), Stretch([(here, "a", .key(1))], 7 * day + 2),
      ], keys: [1]),
    Scenario(
      name: "of a region stays while its vantage point is silent",
      points: ["oslo"], isUnion: true,
      steps: [
        Stretch(from(.key(1), oslo: .key(2)), 90), Stretch(from(.key(1), oslo: .silent), 8 * day),
      ], keys: [1, 2], told: [2]),
    Scenario(
      name: "of a region stays while its vantage point is silent that showed it for two minutes",
      points: ["oslo"], isUnion: true,
      steps: [
        Stretch(from(.key(1), oslo: .key(2)), 90),
        Stretch(from(.key(1), oslo: .key(3)), 60, every: 2),
        Stretch(from(.key(1), oslo: .silent), 8 * day, every: 20),
      ], keys: [1, 2, 3], told: [3]),
    Scenario(
      name: "of a region stays though this server saw it, too, while the vantage point is silent",
      points: ["oslo"], isUnion: true,
      steps: [
        Stretch(from(.key(1), oslo: .key(1)), 90), Stretch(from(.key(2), oslo: .silent), 8 * day),
      ], keys: [1, 2], told: [1]),
    Scenario(
      name: "that this server saw leaves though a vantage point is silent",
      points: ["oslo"],
      steps: [
        Stretch(from(.key(1), oslo: .key(1)), 90),
        Stretch(from(.key(2), oslo: .silent), 7 * day + 10),
      ], keys: [2]),
    Scenario(
      name: "that a silent vantage point alone saw stays",
      points: ["oslo", "rome", "bern"],
      steps: [
        Stretch([(here, "a", .silent), ("oslo", "", .key(1)), ("rome", "", .key(1))], 90),
        Stretch([(here, "a", .key(2)), ("oslo", "", .silent), ("rome", "", .silent)], 8 * day),
      ], keys: [1, 2], told: [1]),
    Scenario(
      name: "that a vantage point alone saw leaves if that is no longer configured",
      points: [],
      steps: [
        Stretch(from(.key(1), oslo: .key(2)), 90),
        Stretch(from(.key(1), oslo: .silent), 7 * day + 10),
      ], keys: [1]),
    Scenario(
      name: "and was a moment's is withdrawn though another address never answers",
      steps: [
        Stretch(at(.key(1), .silent), 3), Stretch(at(.key(9), .silent), 12, every: 2),
        Stretch(at(.key(1), .silent), 32, every: 20),
      ], keys: [1]),
    Scenario(
      name: "and was a moment's stays while its address is silent, and that is told",
      steps: [
        Stretch(at(.key(1), .key(1)), 3), Stretch(at(.key(1), .key(9)), 12, every: 2),
        Stretch(at(.key(1), .silent), 90, every: 20),
      ], keys: [1, 9], told: [9]),
    Scenario(
      name:
        "and was a moment's is withdrawn though a vantage point shows a chain that proves nothing",
      points: ["oslo", "rome", "bern"],
      steps: [
        Stretch(from(.key(1), oslo: .key(1)), 3),
        Stretch(from(.key(9), oslo: .key(9)), 12, every: 2),
        Stretch(from(.key(1), oslo: .refused), 32, every: 20),
      ], keys: [1]),
    Scenario(
      name:
        "and that a quorum has seen stays while the points are cut off, whatever this server is led to",
      points: three,
      steps: seenByAll + [Stretch(everywhere(.key(1), points: .silent), 450, every: 20)],
      keys: [1, 9], told: [9]),
    Scenario(
      name: "and that a quorum has seen stays while the points are shown what proves nothing",
      points: three,
      steps: seenByAll + [Stretch(everywhere(.key(1), points: .refused), 450, every: 20)],
      keys: [1, 9], told: [9]),
    Scenario(
      name: "and that a quorum has seen stays while fewer than a quorum answer without it",
      points: three,
      steps: seenByAll + [
        Stretch(
          [
            (here, "a", .key(1)), ("oslo", "", .key(1)), ("rome", "", .silent),
            ("bern", "", .silent),
          ], 450, every: 20)
      ], keys: [1, 9], told: [9]),
    Scenario(
      name: "and that a quorum has seen is withdrawn once a quorum answers without it",
      points: three,
      steps: seenByAll + [
        Stretch(everywhere(.key(1), points: .silent), 60, every: 20),
        Stretch(
          [
            (here, "a", .key(1)), ("oslo", "", .key(1)), ("rome", "", .key(1)),
            ("bern", "", .silent),
          ], 32, every: 20),
      ], keys: [1], told: [9]),
    Scenario(
      name:
        "and that no quorum saw, but a middleman's one point, is withdrawn while all are cut off",
      points: three,
      steps: [
        Stretch(everywhere(.key(1), points: .key(1)), 3),
        Stretch(
          [
            (here, "a", .key(9)), ("oslo", "", .key(9)), ("rome", "", .silent),
            ("bern", "", .silent),
          ], 12, every: 2),
        Stretch(everywhere(.key(1), points: .silent), 32, every: 20),
      ], keys: [1]),
    Scenario(
      name: "and that a quorum saw an hour before this server alone did is withdrawn",
      points: three,
      steps: seenByAll + [
        Stretch(everywhere(.key(1), points: .silent), 190, every: 20),
        Stretch(everywhere(.key(9), points: .silent)),
        Stretch(everywhere(.key(1), points: .silent), 230, every: 20),
      ], keys: [1], told: [9]),
    Scenario(
      name: "and was a moment's stays beside a key that took its place, however long that is shown",
      steps: [
        Stretch(one(1)), Stretch(one(9), 6, every: 2), Stretch(one(2), day),
      ], keys: [1, 2, 9], told: [9]),
    Scenario(
      name: "and was a moment's leaves after its grace time then",
      steps: [
        Stretch(one(1)), Stretch(one(9), 6, every: 2), Stretch(one(2), 7 * day + 10),
      ], keys: [2], told: [9]),
    Scenario(
      name:
        "and was new stays beside a younger key that nobody announced, for however long that is shown",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), 5), Stretch(one(9), 1000, every: 20),
      ], keys: [1, 2, 9], told: [2]),
    Scenario(
      name: "and was new for most of an hour stays beside a younger key that nobody announced",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), 50), Stretch(one(9), 1620, every: 20),
      ], keys: [1, 2, 9], told: [2]),
    Scenario(
      name: "and was new stays beside an older key that had left before it came",
      steps: [
        Stretch(one(1), 90), Stretch(one(9), 63), Stretch(one(1), 3 * day),
        Stretch(one(2), 3, every: 2), Stretch(one(2), 2), Stretch(one(9), 1000, every: 20),
      ], keys: [1, 2, 9], told: [2]),
    Scenario(
      name: "and was a moment's is withdrawn beside an older key that nobody announced either",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), day), Stretch(one(9), 6, every: 2),
        Stretch(one(2), 40, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name: "and was a moment's is withdrawn beside a key that was a few minutes old when it came",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), 5), Stretch(one(9), 6, every: 2),
        Stretch(one(2), 40, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name:
        "and was the second of a moment's is withdrawn beside the key that the first one interrupted",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), day), Stretch(one(8), 6, every: 2),
        Stretch(one(8), 5, every: 900), Stretch(one(9), 6, every: 2),
        Stretch(one(2), 1200, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name:
        "and was a moment's is withdrawn, though whoever showed it kept this server away before",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), day), Stretch(one(8), 1),
        Stretch(one(9), 1, every: 601), Stretch(one(9), 5, every: 2),
        Stretch(one(2), 40, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name: "and was new stays beside an older key whose other address has been silent for days",
      steps: [
        Stretch(at(.key(1), .key(1)), 90), Stretch(at(.key(9), .key(9)), 63),
        Stretch(at(.silent, .key(1)), 3 * day), Stretch(at(.silent, .key(2)), 5),
        Stretch(at(.silent, .key(9)), 1000, every: 20),
      ], keys: [1, 2, 9], told: [2]),
    Scenario(
      name: "and was a moment's is withdrawn where the older one had been missed for some minutes",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), day), Stretch(one(1), 15),
        Stretch(one(9), 6, every: 2), Stretch(one(2), 40, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name: "and was shown for a moment now and then leaves soon after the last one",
      steps: [
        Stretch([(here, "", .key(1))]), Stretch([(here, "", .key(9))], 3, every: 2),
        Stretch([(here, "", .key(1))], 26, every: 20), Stretch([(here, "", .key(9))], every: 16),
        Stretch([(here, "", .key(1))], 152, every: 20), Stretch([(here, "", .key(9))], every: 10),
        Stretch([(here, "", .key(1))], 152, every: 20), Stretch([(here, "", .key(9))], every: 10),
        Stretch([(here, "", .key(1))], 211, every: 20),
      ], keys: [1]),
  ]
}
