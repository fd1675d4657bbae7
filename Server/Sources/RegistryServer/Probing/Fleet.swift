import SslPinningRules
import TLSTools

/// The addresses of a name if they do not all show the same keys, and which of them vantage points are asked for.
struct Fleet {
  /// How many addresses a vantage point is asked for at once: with one that it takes itself, and another question for each
  /// kind of key, that stays below what it allows when probes are two seconds apart.
  private static let most = 2
  /// How many questions a new key has before those that have long been asked for.
  private static let first = 3

  /// How often points were asked for an address that shows a key, and in which probe last.
  private struct Turn {
    var questions = 0
    var last = 0
  }

  private let shown: [Endpoint: Set<SPKIPin>]
  private var turns: [SPKIPin: Turn] = [:]
  private var probes = 0

  /// - Parameter shown: the keys of every kind that each address showed; `nil` is made of those that show the same.
  init?(_ shown: [Endpoint: Set<SPKIPin>], after before: Fleet?) {
    guard Set(shown.values).count > 1 else { return nil }
    self.shown = shown
    for pin in shown.values.joined() { turns[pin] = before?.turns[pin] ?? Turn() }
    probes = (before?.probes ?? 0) + 1
  }

  /// The addresses to ask for now. New keys come first, those that were asked for least before the others, and then each has
  /// its turn: a key that is listed must not be taken for gone because others are asked for.
  mutating func ask() -> [Endpoint] {
    var asked: [Endpoint] = []
    let pins = turns.shuffled().sorted {
      (min($0.value.questions, Self.first), $0.value.last)
        < (min($1.value.questions, Self.first), $1.value.last)
    }.map(\.key)
    for pin in pins where asked.count < Self.most {
      let places = shown.filter { $0.value.contains(pin) }.map(\.key)
      guard !places.contains(where: asked.contains), let place = places.randomElement() else {
        continue
      }
      asked.append(place)
    }
    for pin in Set(asked.flatMap { shown[$0] ?? [] }) {
      turns[pin]?.questions += 1
      turns[pin]?.last = probes
    }
    return asked
  }
}
