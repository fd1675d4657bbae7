import SslPinningRules
import TLSTools

/// The addresses of a name if they do not all show the same keys, and which of them vantage points are asked for.
///
/// - One question is for a new key, if there is one: it is not listed before points have seen it. A key has three of those, and
///   one that comes and goes is not new again.
/// - All others are for the address that was not asked for longest: a key that is listed must not be taken for gone because
///   others are asked for.
struct Fleet {
  /// How many addresses a vantage point is asked for at once. With the one that it takes itself, and two kinds of key, that is
  /// six questions a probe: a dozen documents of one host may ask so every four seconds before a point refuses (429).
  private static let most = 2
  /// How many questions a new key has.
  private static let first = 3
  /// How many keys are remembered that are not shown now.
  private static let mostRemembered = 256

  private let shown: [Endpoint: Set<SPKIPin>]
  /// How often points were asked for an address that showed it, by the key.
  private var questions: [SPKIPin: Int] = [:]
  /// In which probe an address was asked for last.
  private var last: [Endpoint: Int] = [:]
  private var probes = 0

  /// - Parameter shown: the keys of every kind that each address showed; `nil` is made of those that show the same.
  init?(_ shown: [Endpoint: Set<SPKIPin>], after before: Fleet?) {
    guard Set(shown.values).count > 1 else { return nil }
    self.shown = shown
    if let before {
      let isFull = before.questions.count > Self.mostRemembered
      let now = Set(shown.values.joined())
      questions = isFull ? before.questions.filter { now.contains($0.key) } : before.questions
      last = before.last.filter { shown[$0.key] != nil }
      probes = before.probes + 1
    }
  }

  /// The addresses to ask for now.
  mutating func ask() -> [Endpoint] {
    func newest(_ place: Endpoint) -> Int {
      (shown[place] ?? []).map { questions[$0] ?? 0 }.min() ?? Self.first
    }
    let places = shown.keys.shuffled().sorted { last[$0] ?? -1 < last[$1] ?? -1 }
    let new = places.filter { newest($0) < Self.first }.min { newest($0) < newest($1) }
    let asked = ([new].compactMap(\.self) + places.filter { $0 != new }).prefix(Self.most)
    for place in asked { last[place] = probes }
    for pin in Set(asked.flatMap { shown[$0] ?? [] }) { questions[pin, default: 0] += 1 }
    return Array(asked)
  }
}
