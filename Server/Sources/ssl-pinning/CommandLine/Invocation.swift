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
