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
