import Foundation

/// A word, a text or a sign of source code.
struct CodeToken: Hashable, Sendable {
  enum Kind: Hashable, Sendable { case name, text, number, mark }

  let kind: Kind
  /// The name, the text without its quotes, or one character.
  let text: String
  /// Counted from 1.
  let line: Int
  /// Whether it is compiled into debug builds alone.
  let isDebug: Bool
  /// Whether a text has parts that are known at run time alone.
  var isDynamic = false
  /// For a bracket that opens, the place of the token that closes it, or the end.
  var end: Int?

  func isMark(_ character: String) -> Bool { kind == .mark && text == character }
}

/// Takes Swift, Objective-C, Kotlin and Java apart, as far as literals and calls go.
///
/// - Comments are passed over, so that an example in one is nothing that is found.
/// - Whatever the text, it ends: each step takes a byte at least.
struct CodeLexer {
  private let bytes: [UInt8]
  private let kind: SourceFile.Kind
  private var at = 0
  private var line = 1
  private var tokens: [CodeToken] = []
  /// The conditions of `#if` that are open: in debug builds alone, and only outside of those.
  private var conditions: [(isDebug: Bool, isRelease: Bool)] = []

  static func tokens(of file: SourceFile) -> [CodeToken] {
    var lexer = CodeLexer(file)
    lexer.run()
    lexer.matchBrackets()
    return lexer.tokens
  }

  private init(_ file: SourceFile) { (bytes, kind) = (file.bytes, file.kind) }

  private func byte(_ offset: Int = 0) -> UInt8? {
    bytes.indices.contains(at + offset) ? bytes[at + offset] : nil
  }

  private func isNext(_ text: String) -> Bool { bytes[at...].starts(with: text.utf8) }

  private mutating func step() {
    if byte() == 0x0A { line += 1 }
    at += 1
  }

  private mutating func add(
    _ kind: CodeToken.Kind, _ text: String, line: Int? = nil, isDynamic: Bool = false
  ) {
    tokens.append(
      CodeToken(
        kind: kind, text: text, line: line ?? self.line,
        isDebug: conditions.contains { $0.isDebug }, isDynamic: isDynamic))
  }

  private mutating func run() {
    while let byte = byte() {
      if byte <= 0x20 || byte == UInt8(ascii: "`") {
        step()
      } else if isNext("//") {
        while let byte = self.byte(), byte != 0x0A { at += 1 }
      } else if isNext("/*") {
        skipComment()
      } else if byte == UInt8(ascii: "\"") {
        readText(pounds: 0)
      } else if byte == UInt8(ascii: "#") {
        readPound()
      } else if byte == UInt8(ascii: "'"), kind != .swift {
        skipCharacter()
      } else if Self.isOfNames(byte) {
        readWord(byte)
      } else {
        add(.mark, String(decoding: [byte], as: UTF8.self))
        at += 1
      }
    }
  }

  /// Notes where each bracket ends: calls stand in calls, and nobody is to go through the inner ones again for each.
  private mutating func matchBrackets() {
    var open: [Int] = []
    for place in tokens.indices where tokens[place].kind == .mark {
      switch tokens[place].text {
      case "(", "[", "{":
        tokens[place].end = tokens.endIndex
        open.append(place)
      case ")", "]", "}": if let start = open.popLast() { tokens[start].end = place }
      default: break
      }
    }
  }

  private static func isOfNames(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
      true
    default: false
    }
  }

  private mutating func readWord(_ first: UInt8) {
    let start = at
    while let byte = byte(), Self.isOfNames(byte) { at += 1 }
    let isNumber = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first)
    add(isNumber ? .number : .name, String(decoding: bytes[start..<at], as: UTF8.self))
  }

  private mutating func skipComment() {
    var depth = 0
    while byte() != nil {
      if isNext("/*"), depth == 0 || kind == .swift || kind == .kotlin {
        depth += 1
        at += 2
      } else if isNext("*/") {
        depth -= 1
        at += 2
        if depth == 0 { return }
      } else {
        step()
      }
    }
  }

  private mutating func skipCharacter() {
    at += 1
    while let byte = byte(), byte != 0x0A {
      at += byte == UInt8(ascii: "\\") ? 2 : 1
      if byte == UInt8(ascii: "'") { return }
    }
  }

  /// A raw text, a directive, or a sign.
  private mutating func readPound() {
    var pounds = 0
    while byte(pounds) == UInt8(ascii: "#") { pounds += 1 }
    if byte(pounds) == UInt8(ascii: "\""), kind == .swift {
      at += pounds
      return readText(pounds: pounds)
    }
    // As much as a condition has: a line may be as long as the file, and have many signs.
    let words = String(
      decoding: bytes[(at + 1)...].prefix(256).prefix { $0 != 0x0A }, as: UTF8.self
    ).split(separator: " ", maxSplits: 1).map(String.init)
    let condition = words.count > 1 ? words[1] : ""
    switch words.first?.filter(\.isLetter) {
    case "if", "ifdef", "ifndef":
      conditions.append(Self.builds(condition, isNegated: words.first == "ifndef"))
    case "elseif", "elif":
      if conditions.popLast() != nil { conditions.append(Self.builds(condition)) }
    case "else":
      if let last = conditions.popLast() { conditions.append((last.isRelease, last.isDebug)) }
    case "endif": _ = conditions.popLast()
    default:
      add(.mark, "#")
      at += max(1, pounds)
      return
    }
    at = bytes[at...].firstIndex(of: 0x0A) ?? bytes.endIndex
  }

  private static func builds(
    _ condition: String, isNegated: Bool = false
  ) -> (isDebug: Bool, isRelease: Bool) {
    guard condition.contains("DEBUG"), !condition.contains("||") else { return (false, false) }
    let isRelease = isNegated || condition.contains("!DEBUG") || condition.contains("! DEBUG")
    return (!isRelease, isRelease)
  }

  /// A text from its quote on. Swift closes a raw one with as many `#`.
  private mutating func readText(pounds: Int) {
    let first = line
    let fence = String(repeating: "#", count: pounds)
    let isLong = isNext("\"\"\"")
    let close = (isLong ? "\"\"\"" : "\"") + fence
    let escape = "\\" + fence
    at += isLong ? 3 : 1
    var text: [UInt8] = []
    var isDynamic = false
    while let byte = byte() {
      if isNext(close) {
        at += close.utf8.count
        break
      }
      // A text that stops in the middle ends with its line.
      if byte == 0x0A, !isLong { break }
      if isNext(escape), !(kind == .kotlin && isLong) {
        at += escape.utf8.count
        if kind == .swift, self.byte() == UInt8(ascii: "(") {
          isDynamic = true
          skipNested(open: UInt8(ascii: "("), close: UInt8(ascii: ")"))
        } else if let escaped = self.byte() {
          text.append(escaped)
          step()
        }
      } else if kind == .kotlin, isNext("${") {
        isDynamic = true
        at += 1
        skipNested(open: UInt8(ascii: "{"), close: UInt8(ascii: "}"))
      } else {
        if kind == .kotlin, byte == UInt8(ascii: "$") { isDynamic = true }
        text.append(byte)
        step()
      }
    }
    let whole = String(decoding: text, as: UTF8.self)
    add(
      .text, isLong ? whole.trimmingCharacters(in: .whitespacesAndNewlines) : whole, line: first,
      isDynamic: isDynamic)
  }

  /// Passes over what is computed inside a text, texts in it included.
  private mutating func skipNested(open: UInt8, close: UInt8) {
    var depth = 0
    var isText = false
    while let byte = byte() {
      if byte == UInt8(ascii: "\"") { isText.toggle() }
      if !isText, byte == open { depth += 1 }
      if !isText, byte == close { depth -= 1 }
      step()
      if depth == 0 { return }
    }
  }
}
