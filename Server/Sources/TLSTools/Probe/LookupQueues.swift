import SslPinningPlatform
import SslPinningRules

/// Which name is looked up next, and by how many threads at once. Pure: times come with the calls.
///
/// - A name has one lookup under way at most. Whoever asks meanwhile gets the next one: an answer to a
///   question is never older than the question.
/// - Names that answered last time, names that were never asked, names that failed once or took longer
///   than anybody waited, and names that failed again stand in lines of their own, each with threads of its
///   own. So no number of silent names delays one that answers, and one lost packet does not put a good name
///   behind a thousand dead ones.
/// - Of those that failed again, the one that failed least often in a row comes first.
/// - Whoever has its turn is looked up even if nobody waits any more: the next probe needs what is
///   learnt.
struct LookupQueues {
  enum Line: Int, CaseIterable {
    case answered
    case new
    case failedOnce
    case failing

    /// A thread that waits for a resolver costs a stack and nothing else. New names need the most: after
    /// a start all names are new, and only an answer tells the good ones from the silent. No more than so many,
    /// though: each sends two packets at once, and a name server's socket holds a few hundred.
    var threads: Int {
      switch self {
      case .answered: 64
      case .new: 128
      case .failedOnce: 64
      case .failing: 4
      }
    }
  }

  struct Name: Hashable, Sendable {
    let host: String
    let port: UInt16
  }

  struct Question {
    let deadline: Deadline
    /// Milliseconds for which this one waits.
    let patience: Int64
    let answer: NameResolver.Answer
  }

  /// Addresses that were found, and until when they may stand in for an answer that does not come.
  private struct Found {
    let addresses: [Endpoint]
    let until: Deadline
  }

  private struct Entry {
    var line = Line.new
    var failures = 0
    var isQueued = false
    var isRunning = false
    /// Those that the lookup under way does not serve.
    var questions: [Question] = []
    var found: Found?

    var isIdle: Bool { !isQueued && !isRunning && questions.isEmpty }
  }

  private struct Place: Comparable {
    let failures: Int
    let ticket: UInt64
    let name: Name

    static func < (one: Place, other: Place) -> Bool {
      (one.failures, one.ticket) < (other.failures, other.ticket)
    }
  }

  /// For how many milliseconds addresses stand in for an answer that does not come.
  static let memory: Int64 = 600_000
  /// More names than this are forgotten where nobody asks for them.
  private static let nameLimit = 100_000

  private var entries: [Name: Entry] = [:]
  private var places: [Line: PriorityQueue<Place>] = [:]
  private var threads: [Line: Int] = [:]
  private var lastTicket: UInt64 = 0

  /// Enters a question.
  ///
  /// - Returns: the line for which one more thread is to work.
  mutating func ask(_ name: Name, _ question: Question) -> Line? {
    if entries.count >= Self.nameLimit { entries = entries.filter { !$0.value.isIdle } }
    entries[name, default: Entry()].questions.removeAll { $0.deadline.hasPassed }
    entries[name, default: Entry()].questions.append(question)
    return enqueue(name)
  }

  /// Takes the next name of a line; `nil` ends the thread that asks.
  mutating func take(from line: Line) -> (Name, [Question])? {
    while let place = places[line]?.popFirst() {
      guard let questions = entries[place.name]?.questions else { continue }
      entries[place.name]?.isQueued = false
      entries[place.name]?.isRunning = true
      entries[place.name]?.questions = []
      return (place.name, questions)
    }
    threads[line, default: 1] -= 1
    return nil
  }

  /// Enters what a lookup came to.
  ///
  /// - Parameters:
  ///   - milliseconds: how long it took.
  ///   - patience: how long those waited whom it served.
  ///   - isHeard: whether anybody whom it served still waited.
  /// - Returns: the line for which one more thread is to work, and whether addresses are known now that were not
  ///   before while nobody waited any more: whoever gave up should ask again.
  mutating func finish(
    _ name: Name, _ result: Result<[Endpoint], NameResolver.Failure>, milliseconds: Int64,
    patience: Int64, isHeard: Bool = true
  ) -> (line: Line?, isNews: Bool) {
    guard var entry = entries[name] else { return (nil, false) }
    entry.isRunning = false
    let wasKnown = entry.found.map { !$0.until.hasPassed } ?? false
    let isLate = milliseconds > patience
    switch result {
    case .success(let addresses):
      entry.found = Found(addresses: addresses, until: .after(milliseconds: Self.memory))
      entry.failures = isLate ? 1 : 0
    case .failure(let failure):
      // An answer that there is no such name counts; a name service that is silent says nothing.
      if failure.isFinal { entry.found = nil }
      entry.failures = min(entry.failures + 1, 8)
    }
    entry.line =
      switch entry.failures {
      case 0: .answered
      case 1: .failedOnce
      default: .failing
      }
    entries[name] = entry
    let isNews = !isHeard && !wasKnown && entry.found != nil
    return (entry.questions.isEmpty ? nil : enqueue(name), isNews)
  }

  /// The addresses that were found last, if that is not long ago.
  func found(_ name: Name) -> [Endpoint]? {
    guard let found = entries[name]?.found, !found.until.hasPassed else { return nil }
    return found.addresses
  }

  private mutating func enqueue(_ name: Name) -> Line? {
    guard var entry = entries[name], !entry.isQueued, !entry.isRunning else { return nil }
    entry.isQueued = true
    entries[name] = entry
    lastTicket += 1
    places[entry.line, default: PriorityQueue()].insert(
      Place(failures: entry.failures, ticket: lastTicket, name: name))
    let working = threads[entry.line, default: 0]
    guard working < entry.line.threads else { return nil }
    threads[entry.line] = working + 1
    return entry.line
  }
}
