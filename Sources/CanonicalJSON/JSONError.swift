/// Why a document is not I-JSON (RFC 7493), and where.
///
/// Every case carries the byte offset of the offence in the document, counted from 0. The first offence
/// in reading order is reported, with one exception: duplicate members are found when their object
/// closes, so another offence inside that object is reported first.
public enum JSONError: Error, Equatable, Sendable {
  /// A second member of the same name in one object, compared after unescaping, byte by byte
  /// (RFC 7493 section 2.3); the offset is the second name's opening quote.
  case duplicateMember(name: String, offset: Int)
  /// Bytes that are not UTF-8: overlong, an encoded surrogate, beyond U+10FFFF, cut short (RFC 7493
  /// section 2.1); the offset is the first byte of the ill-formed sequence.
  case invalidUTF8(offset: Int)
  /// A byte order mark in front of the document (RFC 8259 section 8.1).
  case byteOrderMark(offset: Int)
  /// An escaped surrogate without its other half (RFC 7493 section 2.1); the offset is its backslash.
  case loneSurrogate(offset: Int)
  /// Something other than white space after the document's one value.
  case trailingData(offset: Int)
  /// A number too large for a binary64 (RFC 7493 section 2.2); the offset is its first byte.
  case numberOverflow(offset: Int)
  /// An array or object beyond the limit; the offset is its bracket.
  case nestingTooDeep(limit: Int, offset: Int)
  /// A document longer than the limit; the offset is the first byte beyond it.
  case tooLarge(limit: Int, offset: Int)
  /// A byte that is not allowed at this place.
  case unexpectedByte(UInt8, offset: Int)
  /// The document ends where more must follow; the offset is its length.
  case unexpectedEnd(offset: Int)
  /// An unescaped control character inside a string (RFC 8259 section 7).
  case controlCharacter(UInt8, offset: Int)
  /// A backslash followed by none of RFC 8259's escapes; the offset is the backslash.
  case invalidEscape(offset: Int)
  /// An incomplete number or one with a leading zero; the offset is the byte that cannot belong to it.
  case invalidNumber(offset: Int)

  /// The byte offset of the offence, counted from 0.
  public var offset: Int {
    switch self {
    case .duplicateMember(_, let offset), .nestingTooDeep(_, let offset), .tooLarge(_, let offset),
      .unexpectedByte(_, let offset), .controlCharacter(_, let offset),
      .invalidUTF8(let offset), .byteOrderMark(let offset), .loneSurrogate(let offset),
      .trailingData(let offset), .numberOverflow(let offset), .unexpectedEnd(let offset),
      .invalidEscape(let offset), .invalidNumber(let offset):
      return offset
    }
  }
}

extension JSONError: CustomStringConvertible {
  /// One line: the cause, the offset, and a hint if one helps; safe to print for any document.
  public var description: String {
    "\(cause) at byte \(offset)" + (hint.map { "; hint: \($0)" } ?? "")
  }

  private var cause: String {
    switch self {
    case .duplicateMember(let name, _):
      "member \(ForeignText(name, limit: 64)) stands twice in one object"
    case .invalidUTF8: "bytes that are not UTF-8"
    case .byteOrderMark: "a byte order mark"
    case .loneSurrogate: "half a surrogate pair"
    case .trailingData: "more data after the end of the document"
    case .numberOverflow: "a number too large for a double"
    case .nestingTooDeep(let limit, _): "more than \(limit) arrays and objects inside each other"
    case .tooLarge(let limit, _): "a document of more than \(limit) bytes"
    case .unexpectedByte(let byte, _): "unexpected \(Self.printable(byte))"
    case .unexpectedEnd: "the document breaks off"
    case .controlCharacter(let byte, _): "\(Self.printable(byte)) unescaped in a string"
    case .invalidEscape: "an escape that JSON does not have"
    case .invalidNumber: "a malformed number"
    }
  }

  private var hint: String? {
    switch self {
    case .byteOrderMark: "save the file as UTF-8 without BOM"
    case .invalidUTF8(0): "JSON is UTF-8; UTF-16 and compressed files are not accepted"
    case .unexpectedByte(UInt8(ascii: "<"), _):
      "this looks like HTML; is the address the right one?"
    case .numberOverflow: "send large numbers as strings"
    default: nil
    }
  }

  private static func printable(_ byte: UInt8) -> String {
    if byte > 0x20, byte < 0x7F { return "'\(Unicode.Scalar(byte))'" }
    let digits = String(byte, radix: 16)
    return "byte 0x" + (digits.utf8.count < 2 ? "0" : "") + digits
  }
}

/// Foreign text (from a document, a server or a person), quoted for use in a message.
///
/// - Control characters are escaped and the length is bounded, to protect terminals and logs.
/// - Semicolons are escaped, because this project's own hint follows one: an attacker who alters an answer must
///   not be able to put a hint into an app's alert.
package struct ForeignText: CustomStringConvertible, Sendable {
  private let text: String
  private let limit: Int

  /// - Parameter limit: the most scalars that are shown.
  package init(_ text: String, limit: Int = 80) {
    self.text = text
    self.limit = limit
  }

  package var description: String {
    let scalars = text.unicodeScalars
    let shown = scalars.prefix(limit).map { $0 == ";" ? "\\u{3B}" : $0.escaped(asASCII: true) }
    return "\"\(shown.joined())\(scalars.dropFirst(limit).isEmpty ? "" : "…")\""
  }

  /// Several, eight at most.
  package static func list(_ texts: [String]) -> String {
    texts.prefix(8).map { ForeignText($0, limit: 40).description }.joined(separator: ", ")
      + (texts.count > 8 ? ", …" : "")
  }
}
