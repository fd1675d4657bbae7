/// A command of the tool: one table that parsing, help and "did you mean" read.
struct Command: Sendable {
  /// The words that call it, such as `keys generate`.
  let name: String
  /// One line for the list of commands.
  let summary: String
  let argument: Argument
  let flags: [FlagDescription]
  /// What a user has to know beyond the table: paragraphs below it.
  let notes: [String]
  /// Does it.
  let run: @Sendable (Invocation) async throws(CommandFailure) -> ExitStatus

  init(
    _ name: String, _ summary: String, argument: Argument = .none, flags: [FlagDescription] = [],
    notes: [String] = [],
    run: @escaping @Sendable (Invocation) async throws(CommandFailure) -> ExitStatus
  ) {
    self.name = name
    self.summary = summary
    self.argument = argument
    self.flags = flags
    self.notes = notes
    self.run = run
  }

  /// The words of the name.
  var words: [String] { name.split(separator: " ").map(String.init) }
}

/// An option of a command, with the type of its value: `--timeout SECONDS`, `--json`.
///
/// Commands keep their flags in constants, so that the table that parses, the table that helps and
/// the code that asks for a value cannot disagree.
struct Flag<Value: Sendable>: Sendable {
  /// What parser and help know of it.
  let description: FlagDescription
}

/// A flag without the type of its value.
struct FlagDescription: Sendable {
  /// As it is written, dashes included.
  let name: String
  /// What stands for the value in the help; `nil` for a switch, which takes none.
  let placeholder: String?
  /// One line for the help.
  let help: String
  /// Whether the command cannot do without.
  let isRequired: Bool
  /// Whether it may be given more than once; its values are texts then, one after another.
  var isRepeatable = false
  /// A second, short name, such as `-s`.
  var short: String?
  /// The value where none is given; one is given by `--name=value` alone then.
  var impliedValue: String?
  /// Reads a value's text.
  let read: @Sendable (String) throws(FlagValueError) -> any Sendable
}

/// Why a text is no value of a flag: what would be one.
struct FlagValueError: Error {
  let wanted: String
}

extension Flag {
  /// A flag with a value.
  init(
    _ name: String, _ placeholder: String, _ help: String, isRequired: Bool = false,
    read: @escaping @Sendable (String) throws(FlagValueError) -> Value
  ) {
    description = FlagDescription(
      name: name, placeholder: placeholder, help: help, isRequired: isRequired,
      read: { (text) throws(FlagValueError) in try read(text) })
  }
}

extension Flag where Value == Bool {
  /// A switch: there or not.
  init(_ name: String, _ help: String) {
    description = FlagDescription(
      name: name, placeholder: nil, help: help, isRequired: false, read: { _ in true })
  }
}

extension Flag where Value == String {
  /// Any text but the empty one, such as a path.
  static func text(
    _ name: String, _ placeholder: String, _ help: String, isRequired: Bool = false
  ) -> Flag {
    Flag(name, placeholder, help, isRequired: isRequired) { text throws(FlagValueError) in
      guard !text.isEmpty else { throw FlagValueError(wanted: "a text that is not empty") }
      return text
    }
  }
}

extension Flag where Value == [String] {
  /// Texts, such as paths: the flag may be given several times.
  static func texts(_ name: String, _ placeholder: String, _ help: String) -> Flag {
    let one = Flag<String>.text(name, placeholder, help).description
    return Flag(
      description: FlagDescription(
        name: name, placeholder: placeholder, help: help + "; may be repeated", isRequired: false,
        isRepeatable: true,
        read: { (text) throws(FlagValueError) in
          _ = try one.read(text)
          return [text]
        }))
  }
}

extension Flag where Value == Double {
  /// A length of time in seconds, up to a day.
  static func seconds(_ name: String, _ help: String, orNone: Bool = false) -> Flag {
    Flag(name, "SECONDS", help) { text throws(FlagValueError) in
      guard let first = text.utf8.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first),
        let value = Double(text), value >= 0.001 || orNone && value == 0, value <= 86_400
      else { throw FlagValueError(wanted: "seconds, such as 10 or 0.5, and a day at most") }
      return value
    }
  }
}

extension Flag where Value == Int64 {
  /// A number in digits.
  static func number(
    _ name: String, _ placeholder: String, _ help: String, in range: ClosedRange<Int64>
  ) -> Flag {
    Flag(name, placeholder, help) { text throws(FlagValueError) in
      guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
        let value = Int64(text), range.contains(value)
      else {
        throw FlagValueError(wanted: "a number from \(range.lowerBound) to \(range.upperBound)")
      }
      return value
    }
  }

  /// A moment in Unix seconds.
  static func unixTime(_ name: String, _ help: String) -> Flag {
    Flag(name, "UNIXTIME", help) { text throws(FlagValueError) in
      // `Int64("+5")` succeeds; a time is digits.
      guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
        let value = Int64(text), value <= 253_402_300_799
      else { throw FlagValueError(wanted: "seconds since 1970, up to the year 9999") }
      return value
    }
  }
}

/// The help texts, written from the table of commands.
enum Help {
  /// The list of commands.
  static func overview(_ commands: [Command]) -> String {
    """
    ssl-pinning: dynamic TLS identity pinning, from the terminal

    usage: ssl-pinning COMMAND [FLAGS] [ARGUMENTS]

    \(list(commands))

      help [COMMAND]    this text, or all about one command
      --version         which version this is

    \(exitCodes)

    """
  }

  /// The commands that begin with one word.
  static func group(_ word: String, _ commands: [Command]) -> String {
    "usage: ssl-pinning \(word) COMMAND\n\n\(list(commands))\n"
  }

  /// All about one command.
  static func command(_ command: Command) -> String {
    var words = ["usage: ssl-pinning", command.name]
    words += command.flags.filter(\.isRequired).map(\.usage)
    if command.flags.contains(where: { !$0.isRequired }) { words.append("[FLAGS]") }
    if command.argument.count != .none { words.append(command.argument.usage) }
    var rows = command.flags.map { ($0.usage, $0.help) } + [("--help", "this text")]
    if command.argument.count != .none {
      rows.insert((command.argument.usage, command.argument.help), at: 0)
    }
    var sections = ["\(command.name): \(command.summary)", words.joined(separator: " ")]
    sections.append(columns(rows))
    sections += command.notes
    sections.append(exitCodes)
    return sections.joined(separator: "\n\n") + "\n"
  }

  private static let exitCodes =
    "exit codes: 0 yes, 1 no (refused, invalid, differs), 2 wrong usage, "
    + "3 could not find out (network, file)"

  private static func list(_ commands: [Command]) -> String {
    columns(commands.map { ($0.name, $0.summary) })
  }

  private static func columns(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { name, help in
      "  \(name)\(String(repeating: " ", count: width - name.count + 4))\(help)"
    }.joined(separator: "\n")
  }
}

extension FlagDescription {
  /// As it stands in a usage line.
  var usage: String {
    let names = short.map { "\(name), \($0)" } ?? name
    guard let placeholder else { return names }
    return impliedValue == nil ? "\(names) \(placeholder)" : "\(names)[=\(placeholder)]"
  }
}

/// Finds what a user meant by a word that nothing is called.
enum Suggestion {
  /// The candidate nearest to `word`: at most two typing slips away, or one that begins with it.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    // Longer words are no typing slips of ours, and the distance takes time by the square.
    guard (2...32).contains(word.utf8.count) else { return nil }
    if let longer = candidates.first(where: { $0.hasPrefix(word) }) { return longer }
    let rated = candidates.map { (name: $0, slips: distance(Array(word.utf8), Array($0.utf8))) }
    guard let best = rated.min(by: { $0.slips < $1.slips }), best.slips <= 2,
      best.slips * 2 < word.utf8.count
    else { return nil }
    return best.name
  }

  /// Insertions, deletions, substitutions and swaps of neighbours between two words.
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for (row, byte) in left.enumerated() {
      var current = [row + 1]
      for (column, other) in right.enumerated() {
        var cost = min(last[column + 1] + 1, current[column] + 1)
        cost = min(cost, last[column] + (byte == other ? 0 : 1))
        if row > 0, column > 0, byte == right[column - 1], left[row - 1] == other {
          cost = min(cost, beforeLast[column - 1] + 1)
        }
        current.append(cost)
      }
      (beforeLast, last) = (last, current)
    }
    return last[right.count]
  }
}

/// Why a command ended without its result. The text is lower case, cause first, then a hint.
enum CommandFailure: Error, Sendable {
  /// It was read, and is not good.
  case no(String)
  /// The command line contradicts itself or the world.
  case usage(String)
  /// It could not be read, written or reached.
  case couldNotFindOut(String)

  var message: String {
    switch self {
    case .no(let text), .usage(let text), .couldNotFindOut(let text): text
    }
  }

  var status: ExitStatus {
    switch self {
    case .no: .no
    case .usage: .wrongUsage
    case .couldNotFindOut: .couldNotFindOut
    }
  }
}

/// What the tool says by its exit code.
enum ExitStatus: Int32, Sendable {
  /// It is so, it was done.
  case yes = 0
  /// What was read or asked for is not good: refused, invalid, different.
  case no = 1
  /// The command line is wrong; nothing was done.
  case wrongUsage = 2
  /// Something could not be read, written or reached in time.
  case couldNotFindOut = 3

  /// Of the statuses of several targets the one to end with.
  func worse(_ other: ExitStatus) -> ExitStatus {
    rawValue >= other.rawValue ? self : other
  }
}
