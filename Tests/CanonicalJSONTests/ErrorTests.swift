import TestSupport
import Testing

@testable import CanonicalJSON

/// A document with one offence, and what must be said of it.
struct Offence: Sendable, CustomTestStringConvertible {
  let document: [UInt8]
  let error: JSONError

  init(_ document: String, _ error: JSONError) {
    self.init(Array(document.utf8), error)
  }

  init(_ document: [UInt8], _ error: JSONError) {
    self.document = document
    self.error = error
  }

  var testDescription: String { String(decoding: document.prefix(40), as: UTF8.self) }

  static func byte(_ character: Unicode.Scalar, _ offset: Int) -> JSONError {
    .unexpectedByte(UInt8(ascii: character), offset: offset)
  }
}

@Suite("Refusals name the offence and its place")
struct ErrorTests {
  @Test(
    "structure",
    arguments: [
      Offence("", .unexpectedEnd(offset: 0)),
      Offence(" \n\t\r", .unexpectedEnd(offset: 4)),
      Offence("[", .unexpectedEnd(offset: 1)),
      Offence("[1", .unexpectedEnd(offset: 2)),
      Offence("[1,", .unexpectedEnd(offset: 3)),
      Offence("{", .unexpectedEnd(offset: 1)),
      Offence(#"{"a""#, .unexpectedEnd(offset: 4)),
      Offence(#"{"a":"#, .unexpectedEnd(offset: 5)),
      Offence(#"{"a":1"#, .unexpectedEnd(offset: 6)),
      Offence(#"{"a":1,"#, .unexpectedEnd(offset: 7)),
      Offence("[1,]", Offence.byte("]", 3)),
      Offence("[,1]", Offence.byte(",", 1)),
      Offence("[1 2]", Offence.byte("2", 3)),
      Offence("[1}", Offence.byte("}", 2)),
      Offence(#"{"a":1]"#, Offence.byte("]", 6)),
      Offence(#"{"a":1,}"#, Offence.byte("}", 7)),
      Offence(#"{"a" 1}"#, Offence.byte("1", 5)),
      Offence(#"{"a":}"#, Offence.byte("}", 5)),
      Offence("{1:2}", Offence.byte("1", 1)),
      Offence("{'a':2}", Offence.byte("'", 1)),
      Offence("]", Offence.byte("]", 0)),
      Offence("// c", Offence.byte("/", 0)),
      Offence("1 2", .trailingData(offset: 2)),
      Offence("{} x", .trailingData(offset: 3)),
      Offence("[]]", .trailingData(offset: 2)),
      Offence("1\u{0}", .trailingData(offset: 1)),
      Offence("\u{A0}1", .unexpectedByte(0xC2, offset: 0)),
      Offence("[\u{C}]", .unexpectedByte(0x0C, offset: 1)),
      Offence("tru", .unexpectedEnd(offset: 3)),
      Offence("trux", Offence.byte("x", 3)),
      Offence("nulL", Offence.byte("L", 3)),
      Offence("True", Offence.byte("T", 0)),
      Offence("falsey", .trailingData(offset: 5)),
    ])
  func structure(offence: Offence) { expectRefusal(offence) }

  @Test(
    "numbers",
    arguments: [
      Offence("-", .unexpectedEnd(offset: 1)),
      Offence("[-]", .invalidNumber(offset: 2)),
      Offence("-a", .invalidNumber(offset: 1)),
      Offence("[01]", .invalidNumber(offset: 2)),
      Offence("[-00]", .invalidNumber(offset: 3)),
      Offence("[1.]", .invalidNumber(offset: 3)),
      Offence("1.", .unexpectedEnd(offset: 2)),
      Offence("[1e]", .invalidNumber(offset: 3)),
      Offence("[1E+]", .invalidNumber(offset: 4)),
      Offence("1e-", .unexpectedEnd(offset: 3)),
      Offence("[1.5e2.5]", Offence.byte(".", 6)),
      Offence("[.5]", Offence.byte(".", 1)),
      Offence("[+1]", Offence.byte("+", 1)),
      Offence("[0x10]", Offence.byte("x", 2)),
      Offence("[1_000]", Offence.byte("_", 2)),
      Offence("[NaN]", Offence.byte("N", 1)),
      Offence("[Infinity]", Offence.byte("I", 1)),
      Offence("[-Infinity]", .invalidNumber(offset: 2)),
      Offence("[1e400]", .numberOverflow(offset: 1)),
      Offence("[0, -1e309]", .numberOverflow(offset: 4)),
      Offence("1.7976931348623159e308", .numberOverflow(offset: 0)),
      Offence(String(repeating: "9", count: 309), .numberOverflow(offset: 0)),
    ])
  func numbers(offence: Offence) { expectRefusal(offence) }

  @Test(
    "strings",
    arguments: [
      Offence(#"""#, .unexpectedEnd(offset: 1)),
      Offence(#""abc"#, .unexpectedEnd(offset: 4)),
      Offence(#""abc\"#, .unexpectedEnd(offset: 5)),
      Offence(#""\u12"#, .unexpectedEnd(offset: 5)),
      Offence("\"a\nb\"", .controlCharacter(0x0A, offset: 2)),
      Offence("\"01234567890123\u{1F}\"", .controlCharacter(0x1F, offset: 15)),
      Offence("\"\u{0}\"", .controlCharacter(0, offset: 1)),
      Offence(#"["\x41"]"#, .invalidEscape(offset: 2)),
      Offence(#"["\'"]"#, .invalidEscape(offset: 2)),
      Offence(#"["ab\U0041"]"#, .invalidEscape(offset: 4)),
      Offence(#"["\u00g0"]"#, .invalidEscape(offset: 2)),
      Offence(#"["\u+041"]"#, .invalidEscape(offset: 2)),
      Offence(#"["\u 041"]"#, .invalidEscape(offset: 2)),
      Offence(#"["\u004"]"#, .invalidEscape(offset: 2)),
      Offence(#"["ab\ud800"]"#, .loneSurrogate(offset: 4)),
      Offence(#"["\uDC00"]"#, .loneSurrogate(offset: 2)),
      Offence(#"["\ud800\ud800"]"#, .loneSurrogate(offset: 2)),
      Offence(#"["\udc00\ud800"]"#, .loneSurrogate(offset: 2)),
      Offence(#"["\ud800\n"]"#, .loneSurrogate(offset: 2)),
      Offence(#"["\ud800x"]"#, .loneSurrogate(offset: 2)),
      Offence(#"["\ud83d\u00"]"#, .invalidEscape(offset: 8)),
      Offence(#"{"\ud800":1}"#, .loneSurrogate(offset: 2)),
    ])
  func strings(offence: Offence) { expectRefusal(offence) }

  @Test(
    "bad UTF-8 inside and outside strings",
    arguments: [
      [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x9F, 0xBF],
      [0xE0, 0xA0], [0xE2, 0x82, 0x41], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF],
      [0xED, 0xA0, 0x80, 0xED, 0xB0, 0x80], [0xEF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF],
      [0xF0, 0x9F, 0x98], [0xF0, 0x9F, 0x98, 0x41], [0xF4, 0x90, 0x80, 0x80],
      [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFE], [0xFF], [0xFF, 0xFE],
    ] as [[UInt8]])
  func badUTF8(sequence: [UInt8]) {
    let quote = [UInt8(ascii: "\"")]
    // In front, behind ASCII that is read word by word, behind a longer character, at the end of it all.
    expectRefusal(Offence(quote + sequence + quote, .invalidUTF8(offset: 1)))
    expectRefusal(Offence(Array("\"0123456789".utf8) + sequence + quote, .invalidUTF8(offset: 11)))
    expectRefusal(Offence(Array("\"é😀".utf8) + sequence + quote, .invalidUTF8(offset: 7)))
    expectRefusal(Offence(Array(#""\n"#.utf8) + sequence, .invalidUTF8(offset: 3)))
    expectRefusal(Offence(Array("{\"".utf8) + sequence + quote, .invalidUTF8(offset: 2)))
    expectRefusal(Offence(Array("[1".utf8) + sequence, .invalidUTF8(offset: 2)))
  }

  @Test("other encodings and byte order marks")
  func encodings() {
    expectRefusal(Offence([0xEF, 0xBB, 0xBF] + Array("{}".utf8), .byteOrderMark(offset: 0)))
    expectRefusal(Offence([0xEF, 0xBB, 0xBF], .byteOrderMark(offset: 0)))
    expectRefusal(Offence([0xFE, 0xFF, 0, 0x7B, 0, 0x7D], .invalidUTF8(offset: 0)))
    expectRefusal(Offence([0xFF, 0xFE, 0x7B, 0, 0x7D, 0], .invalidUTF8(offset: 0)))
    expectRefusal(Offence([0x7B, 0, 0x7D, 0], .unexpectedByte(0, offset: 1)))
    expectRefusal(Offence([0, 0x7B, 0, 0x7D], .unexpectedByte(0, offset: 0)))
    // Inside, U+FEFF is a character like any other in a string, and none that may stand between.
    #expect(throws: Never.self) { try canonicalize(Array("\"\u{FEFF}\"".utf8)) }
    expectRefusal(Offence("[\u{FEFF}]", .unexpectedByte(0xEF, offset: 1)))
  }

  @Test(
    "members that stand twice, compared after unescaping",
    arguments: [
      Offence(#"{"a":1,"a":1}"#, .duplicateMember(name: "a", offset: 7)),
      Offence(#"{"a":1,"\u0061":2}"#, .duplicateMember(name: "a", offset: 7)),
      Offence(#"{"\u0061":1,"a":2}"#, .duplicateMember(name: "a", offset: 12)),
      Offence(#"{"b":1,"a":2,"b":3}"#, .duplicateMember(name: "b", offset: 13)),
      Offence(#"{"b":1,"a":2,"b":3,"a":4}"#, .duplicateMember(name: "b", offset: 13)),
      Offence(#"{"b":1,"a":2,"a":3,"b":4}"#, .duplicateMember(name: "a", offset: 13)),
      Offence(#"{"c":1,"a":2,"a":3,"a":4}"#, .duplicateMember(name: "a", offset: 13)),
      Offence(#"{"":1,"":2}"#, .duplicateMember(name: "", offset: 6)),
      Offence(#"{"\/":1,"/":2}"#, .duplicateMember(name: "/", offset: 8)),
      Offence(#"{"😀":1,"\uD83d\ude00":2}"#, .duplicateMember(name: "😀", offset: 10)),
      Offence(
        #"{"longer than 8":1,"longer than 8":2}"#,
        .duplicateMember(name: "longer than 8", offset: 19)),
      Offence(#"[{"a":{"z":[],"a":{},"z":0}}]"#, .duplicateMember(name: "z", offset: 21)),
      // Found when the object closes, so the later offence is met first.
      Offence(#"{"b":1,"a":2,"b":3,]"#, Offence.byte("]", 19)),
      Offence(#"{"a":1,"a":2,]"#, Offence.byte("]", 13)),
    ])
  func duplicates(offence: Offence) { expectRefusal(offence) }

  @Test("a name that stands in two objects, or as name and value, is no duplicate")
  func sameNameElsewhere() throws {
    let document = #"[{"a":{"a":"a"},"b":{"a":1}},{"a":1}]"#
    #expect(try canonicalize(Array(document.utf8)) == Array(document.utf8))
  }

  @Test("every refusal says cause and place in one printable line")
  func descriptions() {
    let cases: [(JSONError, String)] = [
      (.duplicateMember(name: "a\u{1B}[2J", offset: 7), #"member "a\u{1B}[2J" stands twice"#),
      (.invalidUTF8(offset: 7), "not UTF-8"), (.byteOrderMark(offset: 0), "without BOM"),
      (.loneSurrogate(offset: 7), "surrogate"), (.trailingData(offset: 7), "more data"),
      (.numberOverflow(offset: 7), "too large"), (.nestingTooDeep(limit: 128, offset: 7), "128"),
      (.tooLarge(limit: 5, offset: 5), "5 bytes"), (.unexpectedByte(0x1B, offset: 7), "0x1b"),
      (.unexpectedByte(0x41, offset: 7), "'A'"), (.unexpectedEnd(offset: 7), "breaks off"),
      (.controlCharacter(7, offset: 7), "0x07"), (.invalidEscape(offset: 7), "escape"),
      (.invalidNumber(offset: 7), "number"),
    ]
    for (error, words) in cases {
      #expect(error.description.contains(words))
      #expect(error.description.contains("at byte \(error.offset)"))
      #expect(error.description.unicodeScalars.allSatisfy { $0.value >= 0x20 })
      #expect(error.description.first?.isLowercase == true)
    }
    let long = JSONError.duplicateMember(name: String(repeating: "x", count: 1_000_000), offset: 1)
    #expect(long.description.count < 200)
  }

  /// Both ways in must refuse, in the same words.
  private func expectRefusal(
    _ offence: Offence, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(throws: offence.error, sourceLocation: sourceLocation) {
      try canonicalize(offence.document)
    }
    #expect(throws: offence.error, sourceLocation: sourceLocation) {
      try JSONValue(parsing: offence.document)
    }
  }
}
