import TestSupport
import Testing

@testable import CanonicalJSON

/// The cases other projects published, each through both ways out.
@Suite("Published vectors")
struct VectorTests {
  @Test(
    "writes the RFC's own cases byte for byte",
    arguments: ["arrays", "french", "structures", "unicode", "values", "weird"])
  func rfcCases(name: String) throws {
    let input = try Vectors.bytes("jcs/testdata/input/\(name).json")
    let expected = try Vectors.bytes("jcs/testdata/output/\(name).json")
    let hex = try Vectors.text("jcs/testdata/outhex/\(name).txt").filter { !$0.isWhitespace }
    #expect(try canonicalize(input) == expected)
    #expect(try canonicalize(input) == hexadecimal(hex))
    #expect(try JSONValue(parsing: input).canonicalBytes == expected)
  }

  @Test("names exactly the cases that are there")
  func noCaseLeftOut() throws {
    let names = ["arrays", "french", "structures", "unicode", "values", "weird"]
    #expect(try Vectors.files(in: "jcs/testdata/input") == names.map { "\($0).json" })
  }

  @Test("formats ten thousand doubles as ECMAScript does, and reads them back bit by bit")
  func numbers() throws {
    let lines = try Vectors.text("jcs/es6_first_10000.txt").split(separator: "\n")
    #expect(lines.count == 10_000)
    for line in lines {
      let fields = line.split(separator: ",")
      try #require(fields.count == 2)
      let bits = try #require(UInt64(fields[0], radix: 16))
      let number = try #require(JSONNumber(Double(bitPattern: bits)))
      let text = Array(fields[1].utf8)
      #expect(JSONValue.number(number).canonicalBytes == text)
      #expect(try canonicalize(text) == text)
      let read = try JSONValue(parsing: text).doubleValue?.bitPattern
      #expect(read == (bits == 1 << 63 ? 0 : bits), "\(line)")
    }
  }

  @Test("accepts and refuses every file of the parsing suite as strict I-JSON demands")
  func parsingSuite() throws {
    let rows = try Vectors.rows("jsontestsuite/expected_strict_jcs.tsv")
    #expect(rows.count == 318)
    #expect(
      try Vectors.files(in: "jsontestsuite/test_parsing").sorted() == rows.map { $0[0] }.sorted())
    for row in rows {
      try check(
        "jsontestsuite/test_parsing/\(row[0])", verdict: row[2], reason: row[3], hex: row[4])
    }
  }

  @Test("accepts and refuses every file of the transformation suite as strict I-JSON demands")
  func transformationSuite() throws {
    let rows = try Vectors.rows("jsontestsuite/expected_transform_jcs.tsv")
    #expect(rows.count == 22)
    for row in rows {
      try check(
        "jsontestsuite/test_transform/\(row[0])", verdict: row[1], reason: row[2], hex: row[3])
    }
  }

  private func check(_ path: String, verdict: String, reason: String, hex: String) throws {
    let bytes = try Vectors.bytes(path)
    var limits = JSONLimits.standard
    if verdict == "policy" {
      // 500 nested arrays, the only such row: beyond our limit of 128, fine where 500 are allowed.
      #expect(throws: JSONError.nestingTooDeep(limit: 128, offset: 128)) { try canonicalize(bytes) }
      limits = JSONLimits(maximumDepth: 500)
    }
    guard verdict != "reject" else {
      let error = #expect(throws: JSONError.self, "\(path)") { try canonicalize(bytes) }
      guard let error else { return }
      #expect(throws: error, "\(path)") { try JSONValue(parsing: bytes) }
      if let earlier = Self.earlierOffences[path.split(separator: "/").last ?? ""] {
        #expect(error == earlier, "\(path)")
      } else {
        #expect(agrees(error, with: reason), "\(path): \(error)")
      }
      return
    }
    let expected = try #require(hexadecimal(hex))
    #expect(try canonicalize(bytes, limits: limits) == expected, "\(path)")
    #expect(try JSONValue(parsing: bytes, limits: limits).canonicalBytes == expected, "\(path)")
  }

  /// Files the table refuses for bad UTF-8 that break another rule first, in reading order.
  private static let earlierOffences: [Substring: JSONError] = [
    "i_string_utf16BE_no_BOM.json": .unexpectedByte(0, offset: 0),
    "i_string_utf16LE_no_BOM.json": .unexpectedByte(0, offset: 1),
    "n_array_a_invalid_utf8.json": .unexpectedByte(UInt8(ascii: "a"), offset: 1),
    "n_number_real_with_invalid_utf8_after_e.json": .invalidNumber(offset: 3),
    "n_string_invalid-utf-8-in-escape.json": .invalidEscape(offset: 2),
    "n_string_invalid_utf8_after_escape.json": .invalidEscape(offset: 2),
  ]

  /// The table's words for a reason, where it gives one that has a case of its own.
  private func agrees(_ error: JSONError, with reason: String) -> Bool {
    switch (reason, error) {
    case ("overflow", .numberOverflow), ("utf8", .invalidUTF8), ("invalid utf-8", .invalidUTF8),
      ("lone-surrogate", .loneSurrogate), ("lone surrogate", .loneSurrogate),
      ("bom", .byteOrderMark), ("depth", .nestingTooDeep), ("dup", .duplicateMember),
      ("duplicate key", .duplicateMember):
      true
    case ("syntax", .duplicateMember), ("syntax", .numberOverflow), ("syntax", .byteOrderMark):
      false
    case ("syntax", _), ("const", _): true
    default: false
    }
  }
}

/// The bytes that hexadecimal digits stand for; `nil` where they do not.
func hexadecimal(_ text: String) -> [UInt8]? {
  let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
  guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
