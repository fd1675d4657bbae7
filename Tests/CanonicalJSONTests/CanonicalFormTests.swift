import Testing

@testable import CanonicalJSON

/// A document and its canonical form.
struct Form: Sendable, CustomTestStringConvertible {
  let document: String
  let canonical: String

  init(_ document: String, _ canonical: String) {
    self.document = document
    self.canonical = canonical
  }

  var testDescription: String { document }
}

@Suite("Canonical form")
struct CanonicalFormTests {
  @Test(
    "lays numbers out as ECMAScript does",
    arguments: [
      Form("0", "0"), Form("-0", "0"), Form("-0.0", "0"), Form("0e5", "0"), Form("-0E-9", "0"),
      Form("1.0", "1"), Form("100.0", "100"), Form("1e2", "100"), Form("-1E+2", "-100"),
      Form("1e20", "100000000000000000000"), Form("1e21", "1e+21"), Form("-1e21", "-1e+21"),
      Form("123456789012345678901", "123456789012345680000"), Form("1.5e300", "1.5e+300"),
      Form("0.000001", "0.000001"), Form("0.0000001", "1e-7"), Form("1.25e-7", "1.25e-7"),
      Form("123e-8", "0.00000123"), Form("0.1", "0.1"), Form("10.50", "10.5"),
      Form("333333333.33333329", "333333333.3333333"), Form("4.50", "4.5"), Form("2e-3", "0.002"),
      Form("999999999999999", "999999999999999"), Form("9007199254740991", "9007199254740991"),
      Form("9007199254740993", "9007199254740992"), Form("9007199254740995", "9007199254740996"),
      Form("23051544038781872", "23051544038781870"), Form("1e15", "1000000000000000"),
      Form("1152921504606846976", "1152921504606847000"), Form("999999999999999999999", "1e+21"),
      Form("5e-324", "5e-324"), Form("2e-324", "0"),
      Form("-1e-400", "0"), Form("1.7976931348623157e308", "1.7976931348623157e+308"),
      Form("1.7976931348623158e308", "1.7976931348623157e+308"),
      Form("2.2250738585072011e-308", "2.225073858507201e-308"),
      Form("0.500000000000000166533453693773481063544750213623046875", "0.5000000000000002"),
    ])
  func numbers(form: Form) throws { try check(form) }

  @Test(
    "escapes only what must be escaped, in the shortest way",
    arguments: [
      Form(#""\u0008\u0009\u000a\u000c\u000d\u0022\u005c""#, #""\b\t\n\f\r\"\\""#),
      Form(#""\b\t\n\f\r\"\\\/""#, #""\b\t\n\f\r\"\\/""#),
      Form(#""\u0000\u0007\u000B\u000e\u0010\u001F""#, #""\u0000\u0007\u000b\u000e\u0010\u001f""#),
      Form(#""\u007f\u0080\u2028\u2029\u20AC""#, "\"\u{7F}\u{80}\u{2028}\u{2029}€\""),
      Form(#""\ud83d\ude00\uDBFF\uDFFF\uD800\uDC00""#, "\"😀\u{10FFFF}\u{10000}\""),
      Form(#""\u0041\\u0041""#, #""A\\u0041""#), Form(#""</script>""#, #""</script>""#),
    ])
  func strings(form: Form) throws { try check(form) }

  @Test(
    "keeps noncharacters, escaped or not", arguments: [0xFFFF, 0xFFFE, 0xFDD0, 0x1FFFE, 0x10FFFF])
  func noncharacters(value: UInt32) throws {
    let raw = "\"\(String(try #require(Unicode.Scalar(value))))\""
    try check(Form(raw, raw))
    try check(Form(escapedCompletely(String(raw.dropFirst().dropLast())), raw))
  }

  @Test("neither normalises nor merges equivalent characters")
  func equivalents() throws {
    let composed = "{\"\u{E9}\":\"\u{E9}\",\"e\u{301}\":\"e\u{301}\",\"\u{212A}\":1,\"K\":2}"
    try check(
      Form(composed, "{\"K\":2,\"e\u{301}\":\"e\u{301}\",\"\u{E9}\":\"\u{E9}\",\"\u{212A}\":1}"))
  }

  @Test("orders members by UTF-16 code units, not by UTF-8 bytes")
  func order() throws {
    // Surrogate pairs begin at 0xD800 and so precede U+E000 to U+FFFF.
    let names = [
      "", "\u{0}", "\n", "1", "10", "2", "A", "Z", "a", "aa", "aaaaaaaa", "aaaaaaaaa",
      "aaaaaaaa\u{10000}", "aaaaaaaa\u{E000}", "a\u{10FFFF}", "a\u{FFFF}", "z", "\u{7F}", "\u{80}",
      "\u{E9}", "\u{7FF}", "\u{800}", "\u{D7FF}", "\u{10000}", "\u{10000}\u{E000}",
      "\u{1F600}", "\u{10FFFF}", "\u{E000}", "\u{FB33}", "\u{FFFD}", "\u{FFFF}",
    ]
    let byUTF16 = names.sorted { $0.utf16.lexicographicallyPrecedes($1.utf16) }
    #expect(byUTF16.map { Array($0.utf8) } == names.map { Array($0.utf8) })
    for count in 1...names.count {
      // Backwards, from both ends, and rotated: each a way to come unsorted.
      let chosen = Array(names.prefix(count))
      let rotated = Array(chosen.dropFirst(count / 2) + chosen.prefix(count / 2))
      for shuffled in [chosen, chosen.reversed(), rotated] {
        let object = JSONObject(shuffled.map { ($0, .null) })
        let document =
          "{" + shuffled.map { "\(escapedCompletely($0)) : null" }.joined(separator: ",") + "}"
        let expected = Array(
          ("{" + chosen.map { "\(minimallyEscaped($0)):null" }.joined(separator: ",") + "}").utf8)
        #expect(JSONValue.object(object).canonicalBytes == expected)
        #expect(try canonicalize(Array(document.utf8)) == expected)
      }
    }
  }

  @Test(
    "drops white space and keeps the order of elements",
    arguments: [
      Form(" [ ] ", "[]"), Form("\t{\r\n} ", "{}"), Form("[ 3 ,\n1 , 2 ]", "[3,1,2]"),
      Form("{ \"b\" : [ { } , [ ] ] , \"a\" : null }", #"{"a":null,"b":[{},[]]}"#),
      Form("\n true ", "true"), Form(" false\t", "false"), Form("\"  a b \"", "\"  a b \""),
      Form(
        #"{"z":{"y":{"b":1,"a":2},"x":0},"a":[{"d":1,"c":2}]}"#,
        #"{"a":[{"c":2,"d":1}],"z":{"x":0,"y":{"a":2,"b":1}}}"#),
    ])
  func layout(form: Form) throws { try check(form) }

  private func check(_ form: Form) throws {
    let document = Array(form.document.utf8)
    let expected = Array(form.canonical.utf8)
    #expect(try canonicalize(document) == expected)
    #expect(try canonicalize(expected) == expected)
    #expect(try JSONValue(parsing: document).canonicalBytes == expected)
  }
}

/// A JSON string with every UTF-16 code unit escaped.
func escapedCompletely(_ text: String) -> String {
  let units = text.utf16.map { unit in
    let digits = String(unit, radix: 16)
    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
  }
  return "\"" + units.joined() + "\""
}

/// A JSON string as RFC 8785 writes it, by its letter and not by this library.
func minimallyEscaped(_ text: String) -> String {
  let scalars = text.unicodeScalars.map { scalar -> String in
    switch scalar {
    case "\"": "\\\""
    case "\\": "\\\\"
    case "\u{8}": "\\b"
    case "\t": "\\t"
    case "\n": "\\n"
    case "\u{C}": "\\f"
    case "\r": "\\r"
    case _ where scalar.value < 0x10: "\\u000" + String(scalar.value, radix: 16)
    case _ where scalar.value < 0x20: "\\u00" + String(scalar.value, radix: 16)
    default: String(scalar)
    }
  }
  return "\"" + scalars.joined() + "\""
}
