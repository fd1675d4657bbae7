/// Reads a command line by the table of commands; does nothing else.
///
/// - A flag is `--name value` or `--name=value`; given twice it is an error, because either of the
///   two values may be the one that was meant. Only flags that are for several values may be
///   repeated.
/// - A flag with a short name may be written `-n value`, `-n=value` or `-nvalue`.
/// - Some flags may stand before the command.
/// - A value that looks like a flag is a forgotten value. Write `--name=--value` where it is meant.
///   PEM, whose text begins with dashes too, does not look like one.
/// - `--` ends the flags; `-` alone is standard input and no flag.
struct ArgumentParser: Sendable {
  /// What the user wants.
  enum Request {
    case run(Command, Invocation)
    /// Help on everything.
    case help
    case helpOn(Command)
    /// Help on the commands that begin with this word.
    case helpOnGroup(String)
    case version
  }

  let commands: [Command]
  /// Flags that may stand before the command too, as the reference server takes them.
  var leading: [FlagDescription] = []

  /// - Parameter words: the command line without the name of the program.
  func parse(_ words: [String]) throws(UsageError) -> Request {
    let words = withCommandFirst(words)
    guard let first = words.first else { throw .noCommand }
    switch first {
    case "--help", "-h": return .help
    case "--version": return .version
    case "help":
      let topic = words.dropFirst().filter { $0 != "--help" && $0 != "-h" }
      return topic.isEmpty ? .help : try help(on: Array(topic))
    default: break
    }
    guard !first.hasPrefix("-") else {
      throw .unknownFlag(
        first, suggestion: Suggestion.nearest(to: first, among: ["--help", "--version"]))
    }
    guard let command = command(calledBy: words) else {
      if words.dropFirst().contains(where: Self.asksForHelp) { return try help(on: [first]) }
      throw unknown(words)
    }
    let rest = words.dropFirst(command.words.count)
    if rest.prefix(while: { $0 != "--" }).contains(where: Self.asksForHelp) {
      return .helpOn(command)
    }
    return .run(command, try invocation(of: command, rest))
  }

  /// The words with the flags that lead behind the command that they lead.
  private func withCommandFirst(_ words: [String]) -> [String] {
    var rest = words[...]
    while let word = rest.first, let (flag, value) = Self.flag(word, among: leading) {
      rest.removeFirst()
      if value == nil, flag.impliedValue == nil { _ = rest.popFirst() }
    }
    let lead = words[..<rest.startIndex]
    guard !lead.isEmpty, let command = command(calledBy: Array(rest)) else { return words }
    return command.words + lead + rest.dropFirst(command.words.count)
  }

  private static func asksForHelp(_ word: String) -> Bool { word == "--help" || word == "-h" }

  private static func looksLikeFlag(_ word: String) -> Bool {
    word == "--" || word.hasPrefix("--") && !word.hasPrefix("---")
  }

  private func command(calledBy words: [String]) -> Command? {
    commands.first { words.starts(with: $0.words) }
  }

  private func help(on topic: [String]) throws(UsageError) -> Request {
    if let command = command(calledBy: topic) { return .helpOn(command) }
    if let first = topic.first, topic.count == 1, !group(first).isEmpty {
      return .helpOnGroup(first)
    }
    throw unknown(topic)
  }

  /// The commands of more than one word that begin with this one.
  func group(_ word: String) -> [Command] {
    commands.filter { $0.words.count > 1 && $0.words.first == word }
  }

  private func unknown(_ words: [String]) -> UsageError {
    let first = words.first ?? ""
    let group = group(first)
    if group.isEmpty {
      return .unknownCommand(
        first,
        suggestion: Suggestion.nearest(
          to: first, among: commands.map { $0.words.first ?? "" } + ["help"]))
    }
    guard let second = words.dropFirst().first, !second.hasPrefix("-") else {
      return .incompleteCommand(first, continuations: group.map(\.name))
    }
    return .unknownCommand(
      "\(first) \(second)",
      suggestion: Suggestion.nearest(to: "\(first) \(second)", among: group.map(\.name)))
  }

  private func invocation(
    of command: Command, _ words: some Collection<String>
  ) throws(UsageError) -> Invocation {
    var values: [String: any Sendable] = [:]
    var arguments: [String] = []
    var rest = Array(words)[...]
    var flagsHaveEnded = false
    while let word = rest.popFirst() {
      if flagsHaveEnded || word == "-" || !word.hasPrefix("-") {
        arguments.append(word)
        continue
      }
      if word == "--" {
        flagsHaveEnded = true
        continue
      }
      guard let (flag, given) = Self.flag(word, among: command.flags) else {
        let name = word.split(separator: "=").first.map(String.init) ?? word
        throw .unknownFlag(
          name,
          suggestion: Suggestion.nearest(to: name, among: command.flags.map(\.name) + ["--help"]))
      }
      let name = flag.name
      guard values[name] == nil || flag.isRepeatable else { throw .repeatedFlag(flag) }
      let text: String
      if flag.placeholder == nil {
        guard given == nil else { throw .unexpectedValue(flag) }
        text = ""
      } else if let value = given ?? flag.impliedValue {
        text = value
      } else {
        guard let next = rest.first, !Self.looksLikeFlag(next) else { throw .missingValue(flag) }
        rest.removeFirst()
        text = next
      }
      do throws(FlagValueError) {
        let value = try flag.read(text)
        let before = values[name] as? [String] ?? []
        values[name] = (value as? [String]).map { before + $0 } ?? value
      } catch {
        throw .badValue(flag, text, wanted: error.wanted)
      }
    }
    for flag in command.flags where flag.isRequired && values[flag.name] == nil {
      throw .missingFlag(flag)
    }
    try check(arguments, against: command.argument)
    return Invocation(arguments: arguments, values: values)
  }

  /// The flag of a word and the value that stands in it: `--name=value`, `-n=value`, `-nvalue`.
  private static func flag(
    _ word: String, among flags: [FlagDescription]
  ) -> (flag: FlagDescription, value: String?)? {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = parts.first.map(String.init) ?? word
    if let flag = flags.first(where: { $0.name == name || $0.short == name }) {
      return (flag, parts.count == 2 ? parts.last.map(String.init) : nil)
    }
    guard let flag = flags.first(where: { $0.short == String(word.prefix(2)) }) else {
      return nil
    }
    return (flag, String(word.dropFirst(2)))
  }

  private func check(_ arguments: [String], against wanted: Argument) throws(UsageError) {
    let most =
      switch wanted.count {
      case .none: 0
      case .optional, .one: 1
      case .some, .any: Int.max
      }
    if arguments.count > most, let extra = arguments.dropFirst(most).first {
      throw .unexpectedArgument(extra)
    }
    if arguments.isEmpty, wanted.count == .one || wanted.count == .some {
      throw .missingArgument(wanted)
    }
    if arguments.contains("") { throw .unexpectedArgument("") }
  }
}

/// What a command takes besides its flags.
struct Argument: Sendable {
  /// How many of it.
  enum Count: Sendable {
    case none, optional, one, some, any
  }

  /// What stands for it in the help.
  let placeholder: String
  /// One line for the help.
  let help: String
  let count: Count

  /// For commands that take flags alone.
  static let none = Argument(placeholder: "", help: "", count: .none)

  /// As it stands in a usage line.
  var usage: String {
    switch count {
    case .none: ""
    case .optional: "[\(placeholder)]"
    case .one: placeholder
    case .some: "\(placeholder)…"
    case .any: "[\(placeholder)…]"
    }
  }
}

/// What the user asked of one command, parsed and typed.
struct Invocation: Sendable {
  /// The arguments that are no flags, in order; their count is what the command's table allows.
  let arguments: [String]
  private let values: [String: any Sendable]

  init(arguments: [String], values: [String: any Sendable]) {
    self.arguments = arguments
    self.values = values
  }

  /// The value of a flag, where it was given.
  subscript<Value>(flag: Flag<Value>) -> Value? {
    values[flag.description.name] as? Value
  }

  /// Whether a switch was given.
  subscript(flag: Flag<Bool>) -> Bool { values[flag.description.name] != nil }

  /// The value of a flag that the table calls required.
  func require<Value>(_ flag: Flag<Value>) throws(CommandFailure) -> Value {
    guard let value = self[flag] else {
      throw .usage(UsageError.missingFlag(flag.description).description)
    }
    return value
  }
}

/// What is wrong with a command line, before anything was done.
enum UsageError: Error {
  case noCommand
  case unknownCommand(String, suggestion: String?)
  /// The first word of a command without its second.
  case incompleteCommand(String, continuations: [String])
  case unknownFlag(String, suggestion: String?)
  case missingValue(FlagDescription)
  /// A switch with `=value`.
  case unexpectedValue(FlagDescription)
  case badValue(FlagDescription, String, wanted: String)
  case repeatedFlag(FlagDescription)
  case missingFlag(FlagDescription)
  case missingArgument(Argument)
  case unexpectedArgument(String)
}

extension UsageError: CustomStringConvertible {
  var description: String {
    switch self {
    case .noCommand: "no command"
    case .unknownCommand(let name, let suggestion):
      "unknown command \"\(name.shortened)\"" + Self.didYouMean(suggestion)
    case .incompleteCommand(let word, let continuations):
      "\(word) of what; hint: \(continuations.joined(separator: ", "))"
    case .unknownFlag(let name, let suggestion):
      "unknown flag \(name.shortened)" + Self.didYouMean(suggestion)
    case .missingValue(let flag): "\(flag.name) needs a value: \(flag.usage)"
    case .unexpectedValue(let flag): "\(flag.name) takes no value"
    case .badValue(let flag, let text, let wanted):
      "\(flag.name) cannot be \"\(text.shortened)\"; hint: it takes \(wanted)"
    case .repeatedFlag(let flag): "\(flag.name) is given twice"
    case .missingFlag(let flag): "missing \(flag.usage): \(flag.help)"
    case .missingArgument(let argument): "missing \(argument.placeholder): \(argument.help)"
    case .unexpectedArgument(let text): "unexpected argument \"\(text.shortened)\""
    }
  }

  private static func didYouMean(_ suggestion: String?) -> String {
    suggestion.map { "; hint: did you mean \($0)?" } ?? ""
  }
}
