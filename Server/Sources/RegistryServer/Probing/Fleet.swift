import SslPinningRules
import TLSTools

/// The addresses of a name if they do not all show the same keys, and which of them vantage points are asked for.
///
/// - One question is for a new key, if there is one: it is not listed before points have seen it. A key has three of those, and
///   one that comes and goes is not new again.
/// - Another is for the address that was not asked for longest: a key that is listed must not be taken for gone because
///   others are asked for.
/// - A third is for an address that points alone reach, if they told of one: its key is new to all but the point that came there
///   by chance. The points have their turns, so that one that lies cannot keep the others' from being asked for. Nobody gets
///   anywhere by telling: a point dials what the name leads to where it is.
struct Fleet {
  /// An address, and the keys there.
  struct Told {
    let place: Endpoint
    /// From where it was reached.
    let route: Int
    var keys: Set<SPKIPin>
    /// How many probes ago.
    var age = 0

    func isOfSamePlace(as other: Told) -> Bool { (place, route) == (other.place, other.route) }
  }

  /// A key at the addresses that this server reaches itself, or at those of which one point told.
  private struct Shown: Hashable {
    let key: SPKIPin
    let route: Int
  }

  /// The route of this server itself.
  private static let own = 0
  /// How many addresses of those that this server reaches a vantage point is asked for at once. With the one that points alone
  /// reach, the one that it takes itself, and two kinds of key, that is eight questions a probe: a dozen documents of one host
  /// may ask so every five seconds before a point refuses (429).
  private static let most = 2
  /// How many addresses are remembered of which one point told.
  private static let mostTold = 16
  /// For how many probes.
  private static let longestTold = 100
  /// How many questions a new key has.
  private static let first = 3
  /// How many keys are remembered that are not shown now.
  private static let mostRemembered = 256

  private let shown: [Endpoint: Set<SPKIPin>]
  private let told: [Told]
  /// How often points were asked for an address that showed it, by the key.
  private var questions: [Shown: Int] = [:]
  /// In which probe an address was asked for last.
  private var last: [Endpoint: Int] = [:]
  /// In which probe an address was asked for of which a point told, by its route.
  private var turns: [Int: Int] = [:]
  private var probes = 0

  /// - Parameters:
  ///   - shown: the keys of every kind that each address showed here; `nil` if nothing was seen from here now.
  ///   - told: of what points told now.
  ///   - before: what is known of that name.
  /// - Returns: `nil` if all show the same.
  init?(_ shown: [Endpoint: Set<SPKIPin>]?, told: [Told] = [], after before: Fleet?) {
    let shown = shown ?? before?.shown ?? [:]
    self.shown = shown
    // What shows a key that all have which this server reaches is no more than one of them.
    let common = shown.values.reduce(shown.values.first ?? []) { $0.intersection($1) }
    let earlier = (before?.told ?? []).map { word in
      var word = word
      word.age += 1
      return word
    }
    let hidden = (told + earlier.filter { old in !told.contains(where: old.isOfSamePlace) })
      .filter { word in
        word.age < Self.longestTold && !word.keys.isSubset(of: common)
          && !shown.keys.contains { $0.leads(to: word.place) }
      }
    self.told = Dictionary(grouping: hidden, by: \.route).values.flatMap {
      $0.sorted { $0.age < $1.age }.prefix(Self.mostTold)
    }
    guard Set(shown.values).union(self.told.map(\.keys)).count > 1 else { return nil }
    guard let before else { return }
    questions = before.questions
    if questions.count > Self.mostRemembered {
      let now = Set(shown.values.joined()).union(self.told.flatMap(\.keys))
      questions = questions.filter { now.contains($0.key.key) }
    }
    let places = Set(shown.keys).union(self.told.map(\.place))
    last = before.last.filter { places.contains($0.key) }
    turns = before.turns
    probes = before.probes + 1
  }

  /// The addresses to ask for now.
  mutating func ask() -> [Endpoint] {
    let own = inTurn(shown.map { Told(place: $0, route: Self.own, keys: $1) })
    let routes = Set(told.map(\.route)).shuffled()
    let route = routes.min { turns[$0] ?? -1 < turns[$1] ?? -1 }
    let others = inTurn(told.filter { $0.route == route })
    if let route { turns[route] = probes }
    let asked = own.prefix(Self.most) + others.prefix(1)
    for word in asked { last[word.place] = probes }
    // One question is enough for all that told of the place.
    let places = Set(asked.map(\.place))
    for shown in Set((asked + told.filter { places.contains($0.place) }).flatMap(shownKeys)) {
      questions[shown, default: 0] += 1
    }
    return asked.map(\.place)
  }

  private func shownKeys(_ word: Told) -> [Shown] {
    word.keys.map { Shown(key: $0, route: word.route) }
  }

  /// One with a new key if there is one, and then those that were not asked for longest.
  private func inTurn(_ words: [Told]) -> [Told] {
    func newest(_ word: Told) -> Int {
      shownKeys(word).map { questions[$0] ?? 0 }.min() ?? Self.first
    }
    var words = words.shuffled().sorted { last[$0.place] ?? -1 < last[$1.place] ?? -1 }
    let new = words.indices.filter { newest(words[$0]) < Self.first }
    if let first = new.min(by: { newest(words[$0]) < newest(words[$1]) }) {
      words.insert(words.remove(at: first), at: 0)
    }
    return words
  }
}
