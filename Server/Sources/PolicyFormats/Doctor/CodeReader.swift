/// A value as it is written in code.
indirect enum CodeValue: Hashable, Sendable {
  case text(String)
  case flag(Bool)
  case list([CodeValue])
  case pairs([CodePair])
  /// A name, with those before its dots.
  case name(String)
  case call(String, [CodeArgument])
  /// What cannot be known without running it.
  case other
}

/// A member of a dictionary in code.
struct CodePair: Hashable, Sendable {
  let key: CodeValue
  let value: CodeValue
}

/// An argument of a call in code.
struct CodeArgument: Hashable, Sendable {
  let label: String?
  let value: CodeValue
}

/// Reads literals and calls out of tokens: Swift's and Objective-C's dictionaries, Kotlin's `mapOf`, Java's `List.of`.
///
/// - It guesses no types and follows no control flow: what it does not know is ``CodeValue/other``.
/// - Bounded in depth. Each step goes forward.
struct CodeReader {
  private let tokens: [CodeToken]
  private(set) var at: Int
  private static let maximumDepth = 32
  private static let lists: Set = [
    "listOf", "setOf", "arrayOf", "mutableListOf", "asList", "of", "Set", "Array",
  ]
  private static let maps: Set = ["mapOf", "mutableMapOf", "hashMapOf"]

  init(_ tokens: [CodeToken], at start: Int) { (self.tokens, at) = (tokens, start) }

  private var token: CodeToken? { tokens.indices.contains(at) ? tokens[at] : nil }

  private func isNext(_ mark: String) -> Bool { token?.isMark(mark) ?? false }

  private mutating func take(_ mark: String) -> Bool {
    guard isNext(mark) else { return false }
    at += 1
    return true
  }

  /// The value that begins here.
  mutating func value(depth: Int = 0) -> CodeValue {
    guard depth < Self.maximumDepth else { return .other }
    var value = primary(depth)
    while let token {
      if token.isMark("+") {
        at += 1
        let right = primary(depth + 1)
        if case .text(let left) = value, case .text(let right) = right {
          value = .text(left + right)
        } else {
          value = .other
        }
      } else if token.kind == .name, token.text == "as" {
        at += 1
        skipType(depth)
      } else if token.isMark("."), case .text = value {
        // A method of a literal.
        return .other
      } else if token.isMark(".") || token.isMark("!") || token.isMark("?") {
        at += 1
        if self.token?.kind == .name { at += 1 }
        if isNext("(") { _ = arguments(depth: depth + 1) }
        value = .other
      } else {
        break
      }
    }
    return value
  }

  private mutating func primary(_ depth: Int) -> CodeValue {
    guard let token, depth < Self.maximumDepth else { return .other }
    switch token.kind {
    case .text:
      at += 1
      return token.isDynamic ? .other : .text(token.text)
    case .number:
      at += 1
      return .other
    case .name: return named(token.text, depth)
    case .mark: break
    }
    switch token.text {
    case "@", "&", "-", "*":
      at += 1
      return primary(depth + 1)
    case "[": return collection("[", "]", depth)
    case "{": return collection("{", "}", depth)
    case "(":
      at += 1
      let inner = value(depth: depth + 1)
      skipToSeparator()
      return take(")") ? inner : .other
    case ".":
      at += 1
      guard let name = self.token, name.kind == .name else { return .other }
      return named(name.text, depth)
    case ")", "]", "}", ",", ":", ";": return .other
    default:
      at += 1
      return .other
    }
  }

  private mutating func named(_ first: String, _ depth: Int) -> CodeValue {
    at += 1
    switch first {
    case "true", "YES": return .flag(true)
    case "false", "NO": return .flag(false)
    case "try", "await", "new":
      _ = take("!") || take("?")
      let made = primary(depth + 1)
      // `new String[] { … }`
      if first == "new", isNext("[") {
        _ = collection("[", "]", depth + 1)
        if isNext("{") { return collection("{", "}", depth + 1) }
      }
      return made
    default: break
    }
    var path = first
    while isNext("."), tokens.indices.contains(at + 1), tokens[at + 1].kind == .name {
      path += "." + tokens[at + 1].text
      at += 2
    }
    if isNext("<") { skipGenerics() }
    guard isNext("(") else { return .name(path) }
    let arguments = arguments(depth: depth + 1)
    let last = path.split(separator: ".").last.map(String.init) ?? path
    if Self.lists.contains(last) { return .list(arguments.map(\.value)) }
    guard Self.maps.contains(last) else { return .call(path, arguments) }
    return .pairs(
      arguments.flatMap { argument -> [CodePair] in
        if case .pairs(let pairs) = argument.value { pairs } else { [] }
      })
  }

  /// The arguments of a call, from its parenthesis on.
  mutating func arguments(depth: Int = 0) -> [CodeArgument] {
    guard depth < Self.maximumDepth, take("(") else {
      skipToSeparator()
      return []
    }
    var arguments: [CodeArgument] = []
    while token != nil, !take(")") {
      var label: String?
      if let name = token, name.kind == .name, tokens.indices.contains(at + 2),
        tokens[at + 1].isMark(":") || (tokens[at + 1].isMark("=") && !tokens[at + 2].isMark("="))
      {
        label = name.text
        at += 2
      }
      // Kotlin spreads an array.
      _ = take("*")
      var value = value(depth: depth + 1)
      if let name = token, name.kind == .name, name.text == "to" {
        at += 1
        value = .pairs([CodePair(key: value, value: self.value(depth: depth + 1))])
      }
      arguments.append(CodeArgument(label: label, value: value))
      skipToSeparator()
      guard take(",") else {
        _ = take(")")
        break
      }
    }
    return arguments
  }

  private mutating func collection(_ open: String, _ close: String, _ depth: Int) -> CodeValue {
    // One that is never closed is no code, and what follows it would be read again for each.
    guard depth < Self.maximumDepth, let end = token?.end, end < tokens.endIndex, take(open) else {
      return .other
    }
    var values: [CodeValue] = []
    var pairs: [CodePair] = []
    while token != nil, !take(close) {
      // An empty dictionary of Swift.
      if take(":") { continue }
      let first = value(depth: depth + 1)
      if take(":") {
        pairs.append(CodePair(key: first, value: value(depth: depth + 1)))
      } else {
        values.append(first)
      }
      skipToSeparator()
      guard take(",") else {
        _ = take(close)
        break
      }
    }
    return pairs.isEmpty ? .list(values) : .pairs(pairs)
  }

  /// Goes to the next comma or bracket that closes.
  private mutating func skipToSeparator() {
    while let token {
      if token.kind == .mark {
        switch token.text {
        case "(", "[", "{": at = token.end ?? at
        case ")", "]", "}", ",", ";": return
        default: break
        }
      }
      at += 1
    }
  }

  private mutating func skipType(_ depth: Int) {
    _ = take("?") || take("!")
    if isNext("[") {
      _ = collection("[", "]", depth + 1)
    } else if token?.kind == .name {
      at += 1
      while take(".") { at += 1 }
      if isNext("<") { skipGenerics() }
      // `any Sendable`
      if token?.kind == .name { at += 1 }
    }
  }

  private mutating func skipGenerics() {
    let start = at
    var depth = 0
    while let token, at - start < 16 {
      at += 1
      if token.isMark("<") { depth += 1 }
      if token.isMark(">") { depth -= 1 }
      if depth == 0 { return }
    }
    // A comparison.
    at = start
  }
}

/// Constants of a file, by their last name; one that stands for two things stands for none.
struct CodeConstants: Sendable {
  private var values: [String: CodeValue] = [:]

  init(in tokens: [CodeToken]) {
    for index in tokens.indices.dropFirst(1).dropLast(1) where tokens[index].isMark("=") {
      guard !tokens[index - 1].isMark("="), Self.begins(tokens, index),
        let name = Self.name(tokens, before: index)
      else { continue }
      var reader = CodeReader(tokens, at: index + 1)
      let value = reader.value()
      if let old = values[name], old != value {
        values[name] = .other
      } else {
        values[name] = value
      }
    }
  }

  /// Whether a literal follows.
  private static func begins(_ tokens: [CodeToken], _ index: Int) -> Bool {
    let next = tokens[index + 1]
    switch next.kind {
    case .text: return true
    case .number: return false
    case .mark:
      return ["[", "@"].contains(next.text)
        || (next.text == "{" && tokens[max(0, index - 2)].isMark("]"))
    case .name:
      return [
        "listOf", "setOf", "arrayOf", "mapOf", "List", "Set", "Arrays", "Map", "new",
      ].contains(next.text)
    }
  }

  private static func name(_ tokens: [CodeToken], before index: Int) -> String? {
    for place in stride(from: index - 1, through: max(0, index - 16), by: -1) {
      let token = tokens[place]
      if ["let", "val", "var"].contains(token.text), token.kind == .name {
        return tokens[place + 1].text
      }
      if token.kind == .mark, [";", "{", "}", "=", "("].contains(token.text) { break }
    }
    let last = tokens[index - 1]
    return last.kind == .name ? last.text : nil
  }

  /// A value, or what its name stands for.
  func resolved(_ value: CodeValue) -> CodeValue {
    guard case .name(let path) = value else { return value }
    let parts = path.split(separator: ".").map(String.init)
    let name = parts.last == "rawValue" ? parts.dropLast().last : parts.last
    return name.flatMap { values[$0] } ?? value
  }

  /// A text, if it is known.
  func text(_ value: CodeValue?) -> String? {
    guard let value, case .text(let text) = resolved(value) else { return nil }
    return text
  }

  /// The texts of a list or of one text; `nil` if one of them is not known.
  func texts(_ value: CodeValue?) -> [String]? {
    guard let value else { return nil }
    switch resolved(value) {
    case .text(let text): return [text]
    case .list(let values):
      let texts = values.compactMap { text($0) }
      return texts.count == values.count ? texts : nil
    default: return nil
    }
  }
}
