import SslPinningRules
import TLSTools

/// The addresses of a name if they do not all show the same keys, and which of them vantage points are asked for.
struct Fleet {
  /// How many addresses a vantage point is asked for at once: with one that it takes itself, and another question for each
  /// kind of key, that stays below what it allows when probes are two seconds apart.
  private static let most = 2

  private let shown: [Endpoint: Set<SPKIPin>]
  /// How often points were asked for an address that shows it, by the key.
  private var questions: [SPKIPin: Int] = [:]

  /// - Parameter shown: the keys of every kind that each address showed; `nil` is made of those that show the same.
  init?(_ shown: [Endpoint: Set<SPKIPin>], after before: Fleet?) {
    guard Set(shown.values).count > 1 else { return nil }
    self.shown = shown
    for pin in shown.values.joined() { questions[pin] = before?.questions[pin] ?? 0 }
  }

  /// The addresses to ask for now: those whose keys were asked for least. So a new key comes before those that were asked
  /// for long, and of a fleet whose keys are all new each has its turn: one question that is answered is enough for a key.
  mutating func ask() -> [Endpoint] {
    var asked: [Endpoint] = []
    let pins = questions.shuffled().sorted { $0.value < $1.value }.map(\.key)
    for pin in pins where asked.count < Self.most {
      let places = shown.filter { $0.value.contains(pin) }.map(\.key)
      guard !places.contains(where: asked.contains), let place = places.randomElement() else {
        continue
      }
      asked.append(place)
    }
    for pin in Set(asked.flatMap { shown[$0] ?? [] }) { questions[pin, default: 0] += 1 }
    return asked
  }
}
