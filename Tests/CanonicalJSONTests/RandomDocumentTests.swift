import Testing

@testable import CanonicalJSON

/// A small generator with a seed, so that every run sees the same documents (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// A random document spelled at random, together with the canonical form, which it writes itself:
/// names sorted as UTF-16, numbers from a table.
struct RandomDocument {
  private(set) var text = ""
  private(set) var canonical = ""
  private var generator: SeededGenerator

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    (text, canonical) = value(depth: 0)
  }

  private static let numbers: [(spelling: String, canonical: String)] = [
    ("0", "0"), ("-0", "0"), ("0.000e7", "0"), ("17", "17"), ("-17", "-17"), ("1.70E1", "17"),
    ("170e-1", "17"), ("0.1", "0.1"), ("1E-1", "0.1"), ("1e21", "1e+21"),
    ("1000000000000000000000", "1e+21"), ("1795000000", "1795000000"),
    ("123456789012345", "123456789012345"), ("9007199254740993", "9007199254740992"),
    ("0.0000001", "1e-7"), ("-2.5e-10", "-2.5e-10"), ("5e-324", "5e-324"), ("1e-400", "0"),
  ]

  private static let scalars: [Unicode.Scalar] = [
    "a", "b", "K", "\u{212A}", "0", " ", "/", "\"", "\\", "\u{0}", "\u{8}", "\t", "\n", "\u{C}",
    "\r", "\u{1F}", "\u{7F}", "\u{80}", "\u{E9}", "\u{301}", "\u{7FF}", "\u{800}", "\u{2028}",
    "\u{D7FF}", "\u{E000}", "\u{FEFF}", "\u{FFFD}", "\u{10000}", "\u{1F600}", "\u{10FFFF}",
  ]

  private mutating func value(depth: Int) -> (text: String, canonical: String) {
    switch Int.random(in: 0..<(depth > 5 ? 5 : 9), using: &generator) {
    case 0: return ("null", "null")
    case 1: return Bool.random(using: &generator) ? ("true", "true") : ("false", "false")
    case 2:
      let number = Self.numbers[Int.random(in: 0..<Self.numbers.count, using: &generator)]
      return (number.spelling, number.canonical)
    case 3, 4:
      let content = string()
      return (spelled(content), minimallyEscaped(content))
    case 5, 6:
      let elements = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
        value(depth: depth + 1)
      }
      return (
        "[" + space() + elements.map { $0.text + space() }.joined(separator: "," + space()) + "]",
        "[" + elements.map(\.canonical).joined(separator: ",") + "]"
      )
    default:
      var names: [String] = []
      for _ in 0..<Int.random(in: 0...12, using: &generator) {
        let name = string()
        if !names.contains(where: { $0.utf8.elementsEqual(name.utf8) }) { names.append(name) }
      }
      let members = names.map { (name: $0, value: value(depth: depth + 1)) }
      let text = members.map {
        spelled($0.name) + space() + ":" + space() + $0.value.text + space()
      }
      let sorted = members.sorted { $0.name.utf16.lexicographicallyPrecedes($1.name.utf16) }
      return (
        "{" + space() + text.joined(separator: "," + space()) + "}",
        "{"
          + sorted.map { minimallyEscaped($0.name) + ":" + $0.value.canonical }
          .joined(separator: ",") + "}"
      )
    }
  }

  private mutating func string() -> String {
    var string = ""
    for _ in 0..<Int.random(in: 0...12, using: &generator) {
      string.unicodeScalars.append(
        Self.scalars[Int.random(in: 0..<Self.scalars.count, using: &generator)])
    }
    return string
  }

  /// Each character either as it is, where it may be, or escaped in one of its ways.
  private mutating func spelled(_ content: String) -> String {
    // Scalar by scalar: a quote and a combining character behind it would be one `Character`.
    var spelling: String.UnicodeScalarView = "\"".unicodeScalars
    for scalar in content.unicodeScalars {
      let way = Int.random(in: 0..<4, using: &generator)
      let quoted =
        way == 0 ? escapedCompletely(String(scalar)) : minimallyEscaped(String(scalar))
      if way == 1, scalar == "/" { spelling.append("\\") }
      spelling.append(contentsOf: quoted.unicodeScalars.dropFirst().dropLast())
    }
    spelling.append("\"")
    return String(spelling)
  }

  private mutating func space() -> String {
    let choices = ["", "", "", " ", "\n  ", "\t", "\r\n"]
    return choices[Int.random(in: 0..<choices.count, using: &generator)]
  }
}

@Suite("Random documents")
struct RandomDocumentTests {
  @Test("both ways out agree with a form written independently, and change nothing twice")
  func randomDocuments() throws {
    var long = 0
    for seed in 0..<1_000 as Range<UInt64> {
      let document = RandomDocument(seed: seed)
      let expected = Array(document.canonical.utf8)
      let value = try JSONValue(parsing: Array(document.text.utf8))
      #expect(try canonicalize(Array(document.text.utf8)) == expected, "seed \(seed)")
      #expect(value.canonicalBytes == expected, "seed \(seed)")
      #expect(try canonicalize(expected) == expected, "seed \(seed)")
      #expect(try JSONValue(parsing: expected) == value, "seed \(seed)")
      if expected.count > 200 { long += 1 }
    }
    #expect(long > 100, "the generator has run dry")
  }

  @Test("doubles of any bit pattern are written and read back bit by bit")
  func randomDoubles() throws {
    var generator = SeededGenerator(seed: 8785)
    for _ in 0..<5_000 {
      let double = Double(bitPattern: generator.next())
      guard let number = JSONNumber(double) else { continue }
      let text = JSONValue.number(number).canonicalBytes
      #expect(try canonicalize(text) == text)
      #expect(try JSONValue(parsing: text).doubleValue?.bitPattern == number.value.bitPattern)
    }
  }

  @Test("mutated bytes are read or refused alike on both ways, with a place inside the document")
  func mutations() throws {
    var generator = SeededGenerator(seed: 7493)
    let fragments: [[UInt8]] = [
      [0x00], [0x22], [0x5C], [0x80], [0xC3], [0xED, 0xA0, 0x80], [0xF0, 0x9F], [0xFF],
      Array("[".utf8), Array("]".utf8), Array("{".utf8), Array("}".utf8), Array(",".utf8),
      Array(":".utf8), Array("-".utf8), Array(".".utf8), Array("e".utf8), Array("1e999".utf8),
      Array(#"\u"#.utf8), Array(#"\ud800"#.utf8), Array("0".utf8), Array("\"a\":1,".utf8),
    ]
    var (accepted, refused) = (0, 0)
    for seed in 0..<3_000 as Range<UInt64> {
      var bytes = Array(RandomDocument(seed: seed % 500).text.utf8)
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let place = Int.random(in: 0...bytes.count, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes.removeSubrange(place...)
        case 1 where place < bytes.count: bytes.remove(at: place)
        case 2 where place < bytes.count:
          bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        default:
          let fragment = fragments[Int.random(in: 0..<fragments.count, using: &generator)]
          bytes.insert(contentsOf: fragment, at: place)
        }
      }
      do throws(JSONError) {
        let canonical = try canonicalize(bytes)
        accepted += 1
        #expect(try JSONValue(parsing: bytes).canonicalBytes == canonical)
        #expect(try canonicalize(canonical) == canonical)
      } catch {
        refused += 1
        #expect((0...bytes.count).contains(error.offset))
        #expect(throws: error) { try JSONValue(parsing: bytes) }
      }
    }
    #expect(accepted > 250)
    #expect(refused > 1_000)
  }

  @Test("every prefix of a document is refused, and no prefix reads beyond its end")
  func prefixes() {
    let document = Array(#"{"a\u00e9😀":[true,null,-1.5e+7,"\ud83d\ude00x"],"b":{"c":false}}"#.utf8)
    #expect(throws: Never.self) { try canonicalize(document) }
    for length in 0..<document.count {
      // Inside a character the end cuts it short; everywhere else the document breaks off.
      let cut = Array(document.prefix(length))
      let isWhole = String(validating: cut, as: UTF8.self) != nil
      let error = #expect(throws: JSONError.self) { try canonicalize(cut) }
      if isWhole { #expect(error == .unexpectedEnd(offset: length)) }
    }
  }
}
