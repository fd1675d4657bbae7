/// What a command takes besides its flags.
struct Argument: Sendable {
  /// How many of it.
  enum Count: Sendable {
    case none, optional, one, some
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
    }
  }
}
