import SslPinningPlatform
import SslPinningRules

/// Writes property lists as XML: tabs, one element a line, keys in the order of their bytes, as Xcode saves them.
enum PropertyListText {
  /// A whole file.
  static func document(_ members: [String: PropertyListValue]) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    \(lines(.dictionary(members), indent: "").joined(separator: "\n"))
    </plist>

    """
  }

  /// The lines of a value.
  static func lines(_ value: PropertyListValue, indent: String) -> [String] {
    switch value {
    case .dictionary(let members):
      guard !members.isEmpty else { return ["\(indent)<dict/>"] }
      let inner = members.inOrder.flatMap { key, value in
        ["\(indent)\t<key>\(key.xmlEscaped)</key>"] + lines(value, indent: indent + "\t")
      }
      return ["\(indent)<dict>"] + inner + ["\(indent)</dict>"]
    case .array(let values):
      guard !values.isEmpty else { return ["\(indent)<array/>"] }
      return ["\(indent)<array>"] + values.flatMap { lines($0, indent: indent + "\t") }
        + ["\(indent)</array>"]
    case .string(let text): return ["\(indent)<string>\(text.xmlEscaped)</string>"]
    case .boolean(let flag): return ["\(indent)<\(flag)/>"]
    case .integer(let number): return ["\(indent)<integer>\(number)</integer>"]
    case .real(let number): return ["\(indent)<real>\(number)</real>"]
    case .data(let bytes): return ["\(indent)<data>\(StrictBase64.encode(bytes))</data>"]
    case .date(let seconds):
      return ["\(indent)<date>\(RFC3339.text(Int64(seconds)))</date>"]
    }
  }
}

/// Puts a value into an XML property list in place of the one under a path of keys, and leaves every other
/// byte as it is: comments, order and layout of an Info.plist are its owner's.
///
/// - Only the dictionaries on the path are looked into. A file that this does not understand is refused.
struct PropertyListMerge {
  private let bytes: [UInt8]
  private var at = 0

  /// - Parameters:
  ///   - path: keys from the root; those that are missing are added.
  ///   - value: what stands there afterwards.
  /// - Throws: ``PolicyFormatError/malformed(_:reason:)``.
  static func merge(
    _ value: PropertyListValue, at path: [String], into bytes: [UInt8]
  ) throws(PolicyFormatError) -> [UInt8] {
    // What Foundation cannot read is nothing to be edited by a scanner that reads less.
    do throws(PropertyListError) { _ = try PropertyListReader.value(of: bytes) } catch {
      throw .malformed(.nsPinnedDomains, reason: "\(error)")
    }
    guard bytes.drop(while: { $0 <= 0x20 }).first == UInt8(ascii: "<") else {
      throw .malformed(
        .nsPinnedDomains, reason: "a binary property list; hint: plutil -convert xml1")
    }
    var merge = PropertyListMerge(bytes: bytes)
    return try merge.result(value, path)
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private mutating func result(
    _ value: PropertyListValue, _ path: [String]
  ) throws(PolicyFormatError) -> [UInt8] {
    guard let root = try next(), root.name == "plist", root.kind == .open,
      var dictionary = try next()
    else { throw broken() }
    for (depth, key) in path.enumerated() {
      guard dictionary.name == "dict" else { throw broken() }
      let missing = path[depth...]
      if dictionary.kind == .empty {
        return replacing(
          dictionary.range, by: opened(missing, value, depth, dictionary.range.lowerBound))
      }
      guard let found = try element(under: key) else {
        // `at` stands behind the closing tag of the dictionary.
        let end = lineStart(before: closing)
        return replacing(end..<end, by: added(missing, value, depth))
      }
      dictionary = found
    }
    let begin = dictionary.range.lowerBound
    if dictionary.kind == .open { try skip(dictionary.name) }
    let indent = String(repeating: "\t", count: path.count)
    let text = PropertyListText.lines(value, indent: indent).joined(separator: "\n")
    return replacing(begin..<at, by: String(text.dropFirst(indent.count)))
  }

  /// Where the tag began that was read last.
  private var closing = 0

  /// The value of a key in the dictionary whose opening tag was just read; `nil` at its end.
  private mutating func element(under key: String) throws(PolicyFormatError) -> Tag? {
    while let tag = try next() {
      if tag.name == "dict", tag.kind == .close { return nil }
      guard tag.name == "key", tag.kind == .open else { throw broken() }
      let begin = at
      guard let end = try next(), end.name == "key", end.kind == .close else { throw broken() }
      let name = String(decoding: bytes[begin..<end.range.lowerBound], as: UTF8.self)
      guard let value = try next(), value.kind != .close else { throw broken() }
      if name == key { return value }
      if value.kind == .open { try skip(value.name) }
    }
    throw broken()
  }

  /// Reads on behind the end of an element whose opening tag was read.
  private mutating func skip(_ name: String) throws(PolicyFormatError) {
    var depth = 1
    while depth > 0 {
      guard let tag = try next() else { throw broken() }
      guard tag.name == name else { continue }
      switch tag.kind {
      case .open: depth += 1
      case .close: depth -= 1
      case .empty: break
      }
    }
  }

  private func replacing(_ range: Range<Int>, by text: String) -> [UInt8] {
    Array(bytes[..<range.lowerBound]) + Array(text.utf8) + Array(bytes[range.upperBound...])
  }

  /// The start of the line on which only white space stands before `place`, or `place`.
  private func lineStart(before place: Int) -> Int {
    var start = place
    while start > 0, [0x20, 0x09].contains(bytes[start - 1]) { start -= 1 }
    return start > 0 && bytes[start - 1] == 0x0A ? start : place
  }

  private func added(
    _ path: ArraySlice<String>, _ value: PropertyListValue, _ depth: Int
  ) -> String {
    var nested = value
    for key in path.dropFirst().reversed() { nested = .dictionary([key: nested]) }
    let indent = String(repeating: "\t", count: depth + 1)
    let key = path.first ?? ""
    return (["\(indent)<key>\(key)</key>"] + PropertyListText.lines(nested, indent: indent))
      .map { $0 + "\n" }.joined()
  }

  /// A dictionary in place of an empty one.
  private func opened(
    _ path: ArraySlice<String>, _ value: PropertyListValue, _ depth: Int, _ place: Int
  ) -> String {
    let indent = String(repeating: "\t", count: depth)
    return "<dict>\n" + added(path, value, depth) + indent + "</dict>"
  }

  private func broken() -> PolicyFormatError {
    .malformed(.nsPinnedDomains, reason: "its XML is not as Xcode writes it, near byte \(at)")
  }

  private struct Tag {
    enum Kind { case open, close, empty }
    let name: String
    let kind: Kind
    let range: Range<Int>
  }

  /// The next tag; text, comments, declarations are passed over. CDATA is refused: tags may stand in it.
  private mutating func next() throws(PolicyFormatError) -> Tag? {
    while let open = bytes[at...].firstIndex(of: UInt8(ascii: "<")) {
      if bytes[open...].starts(with: "<!--".utf8) {
        guard let end = index(after: "-->", from: open + 4) else { throw broken() }
        at = end
        continue
      }
      guard !bytes[open...].starts(with: "<![".utf8),
        let close = bytes[open...].firstIndex(of: UInt8(ascii: ">"))
      else { throw broken() }
      at = close + 1
      let inner = bytes[(open + 1)..<close]
      if inner.first == UInt8(ascii: "?") { continue }
      if inner.first == UInt8(ascii: "!") {
        // A subset of declarations could define entities.
        guard !inner.contains(UInt8(ascii: "[")) else { throw broken() }
        continue
      }
      let isClose = inner.first == UInt8(ascii: "/")
      let isEmpty = inner.last == UInt8(ascii: "/")
      let name = inner.drop { $0 == UInt8(ascii: "/") }.prefix {
        $0 > 0x20 && $0 != UInt8(ascii: "/")
      }
      closing = open
      return Tag(
        name: String(decoding: name, as: UTF8.self),
        kind: isClose ? .close : isEmpty ? .empty : .open, range: open..<(close + 1))
    }
    return nil
  }

  private func index(after mark: String, from start: Int) -> Int? {
    let wanted = Array(mark.utf8)
    var place = start
    while place + wanted.count <= bytes.count {
      if bytes[place...].starts(with: wanted) { return place + wanted.count }
      place += 1
    }
    return nil
  }
}
