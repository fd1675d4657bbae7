import Foundation
import SslPinningRules
import TestSupport
import Testing

@Suite("Host patterns")
struct HostPatternTests {
  struct Row: Decodable {
    let pattern: String?
    let pinLiteral: String?
    let host: String?
    let expected: Expectation?

    enum Expectation: Decodable, Equatable {
      case matches(Bool)
      case refused

      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        self = (try? container.decode(Bool.self)).map(Expectation.matches) ?? .refused
      }
    }
  }

  /// Rows that come out otherwise here, each with the reason. In all of them more is refused.
  static let differing: [String: String] = [
    "*.example.com .example.com": "an empty label is no host name: refused before any matching",
    "**.example.com .example.com": "an empty label is no host name: refused before any matching",
    "**.example.com ..example.com": "an empty label is no host name: refused before any matching",
    "**.example.com a..example.com": "an empty label is no host name: refused before any matching",
    "σkhttp.com xn--khttp-fde.com":
      "patterns are written in A-labels: two converters that disagree would pin two hosts",
  ]

  @Test("matches as OkHttp's tests say")
  func vectors() throws {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let rows = try Vectors.text("hostnames/pin_pattern_match.jsonl").split(separator: "\n")
      .map { try decoder.decode(Row.self, from: Data($0.utf8)) }
    #expect(rows.count == 38)
    var differing: Set<String> = []
    for row in rows {
      if let literal = row.pinLiteral {
        #expect(throws: PinSyntaxError.self) { try SPKIPin(parsing: literal) }
        continue
      }
      let (text, hostText) = (try #require(row.pattern), try #require(row.host))
      let key = "\(text) \(hostText)"
      guard case .matches(let expected) = row.expected ?? .refused else {
        #expect(throws: HostNameError.self, "\(key)") { try HostPattern(text) }
        continue
      }
      let pattern = try? HostPattern(text)
      let host = try? HostName(hostText)
      let matches = if let pattern, let host { pattern.matches(host) } else { false }
      if Self.differing[key] != nil {
        differing.insert(key)
        #expect(expected, "\(key)")
        #expect(pattern == nil || host == nil, "\(key)")
      } else {
        #expect(pattern != nil, "\(key)")
        #expect(matches == expected, "\(key)")
      }
    }
    #expect(differing == Set(Self.differing.keys))
  }

  @Test(
    "matches",
    arguments: [
      ("example.com", "example.com", true), ("example.com", "EXAMPLE.COM.", true),
      ("Example.com.", "example.com", true), ("example.com", "www.example.com", false),
      ("*.example.com", "www.example.com", true), ("*.example.com.", "www.example.com", true),
      ("*.example.com", "example.com", false), ("*.example.com", "a.b.example.com", false),
      ("*.example.com", "wexample.com", false), ("**.example.com", "example.com", true),
      ("**.example.com", "a.b.c.example.com", true), ("**.example.com", "wexample.com", false),
      ("**.example.com", "example.com.evil.example", false), ("**.com", "com", true),
      ("*.com", "example.com", true), ("1.2.3.4", "1.2.3.4", true), ("1.2.3.4", "1.2.3.5", false),
      ("1.2.3.4", "::ffff:1.2.3.4", false), ("::ffff:1.2.3.4", "::ffff:102:304", true),
      ("[::1]", "0:0:0:0:0:0:0:1", true), ("::1", "::2", false),
      ("**.example.com", "1.2.3.4", false),
      ("*.example.com", "::1", false),
    ])
  func matches(pattern: String, host: String, expected: Bool) throws {
    #expect(try HostPattern(pattern).matches(HostName(host)) == expected)
  }

  @Test(
    "refuses any other use of a wildcard, and wildcards over addresses",
    arguments: [
      "*", "**", "*.", "**.", "***.example.com", "*example.com", "w*.example.com", "www.*.com",
      "example.*", "*.*.example.com", "**.*.example.com", "*.**.example.com", "*.1.2.3.4", "**.4",
      "*.::1", "*..example.com", "**..example.com", "* .example.com", "*.exämple.com", ".*",
      "*.[::1]",
    ])
  func refused(text: String) {
    #expect(throws: HostNameError.self) { try HostPattern(text) }
  }

  @Test(
    "writes a pattern as it is read",
    arguments: ["example.com", "*.example.com", "**.example.com", "1.2.3.4", "2001:db8::1"])
  func description(text: String) throws {
    #expect(try HostPattern(text).description == text)
    #expect(try HostPattern(text.uppercased()).description == text)
  }
}
