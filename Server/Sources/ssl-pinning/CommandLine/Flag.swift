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
  static func seconds(_ name: String, _ help: String) -> Flag {
    Flag(name, "SECONDS", help) { text throws(FlagValueError) in
      guard let first = text.utf8.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first),
        let value = Double(text), value >= 0.001, value <= 86_400
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
