import SslPinningRules
import Testing

@Suite("Host names")
struct HostNameTests {
  @Test(
    "writes every accepted spelling in its one form",
    arguments: [
      ("example.com", "example.com"), ("EXAMPLE.Com", "example.com"),
      ("example.com.", "example.com"), ("localhost", "localhost"), ("a", "a"),
      ("xn--bcher-kva.example", "xn--bcher-kva.example"),
      ("XN--BCHER-KVA.EXAMPLE.", "xn--bcher-kva.example"),
      ("_dmarc.example.com", "_dmarc.example.com"),
      ("1.example", "1.example"), ("0x7f.example", "0x7f.example"), ("a-b.c--d.e", "a-b.c--d.e"),
      ("1.2.3.4", "1.2.3.4"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
      ("::", "::"), ("::1", "::1"), ("[::1]", "::1"), ("1::", "1::"),
      ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"), ("2001:0db8::0001", "2001:db8::1"),
      ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
      ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
      ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("::ffff:1.2.3.4", "::ffff:102:304"),
      ("[::ffff:1.2.3.4]", "::ffff:102:304"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
      ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"), ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
      ("fe80::1", "fe80::1"),
    ])
  func normalised(text: String, expected: String) throws {
    let host = try HostName(text)
    #expect(host.description == expected)
    #expect(try HostName(host.description) == host)
    #expect(try HostPattern(text).matches(host))
  }

  @Test(
    "refuses what is neither a name nor an address, and says why",
    arguments: [
      ("", .empty), (".", .empty), ("..", .badLabel("..")),
      (".example.com", .badLabel(".example.com")),
      ("a..b", .badLabel("a..b")), ("example.com..", .badLabel("example.com..")),
      ("a b", .badCharacter("a b")), ("a/b", .notHostAlone("a/b", has: .path)),
      ("a@b", .notHostAlone("a@b", has: .user)),
      ("a\u{0}b", .badCharacter("a\u{0}b")), ("a\nb", .badCharacter("a\nb")),
      ("a%2eb", .badCharacter("a%2eb")), ("a\\b", .badCharacter("a\\b")),
      ("bücher.example", .notASCII("bücher.example")),
      ("\u{212A}.example", .notASCII("\u{212A}.example")),
      ("example\u{3002}com", .notASCII("example\u{3002}com")),
      ("ｅxample.com", .notASCII("ｅxample.com")), ("a\u{AD}b", .notASCII("a\u{AD}b")),
      ("*.example.com", .misplacedWildcard("*.example.com")),
      ("1.2.3", .malformedAddress("1.2.3")), ("1.2.3.4.5", .malformedAddress("1.2.3.4.5")),
      ("01.2.3.4", .malformedAddress("01.2.3.4")), ("1.2.3.04", .malformedAddress("1.2.3.04")),
      ("256.1.1.1", .malformedAddress("256.1.1.1")), ("1.2.3.4.", .malformedAddress("1.2.3.4.")),
      ("127.1", .malformedAddress("127.1")), ("2130706433", .malformedAddress("2130706433")),
      ("0x7f000001", .malformedAddress("0x7f000001")),
      ("0x7f.0.0.1", .malformedAddress("0x7f.0.0.1")),
      ("0x", .malformedAddress("0x")), ("1.2.3.0x4", .malformedAddress("1.2.3.0x4")),
      ("example.com.1", .malformedAddress("example.com.1")),
      ("+1.2.3.4", .badCharacter("+1.2.3.4")),
      ("-1.2.3.4", .malformedAddress("-1.2.3.4")),
      (":", .malformedAddress(":")), (":::", .malformedAddress(":::")),
      ("1:2", .notHostAlone("1:2", has: .port)),
      ("1::2::3", .malformedAddress("1::2::3")), ("12345::", .malformedAddress("12345::")),
      ("1:2:3:4:5:6:7:8:9", .malformedAddress("1:2:3:4:5:6:7:8:9")),
      ("1:2:3:4:5:6:7:8::", .malformedAddress("1:2:3:4:5:6:7:8::")),
      ("1:2:3:4::5:6:7:8", .malformedAddress("1:2:3:4::5:6:7:8")),
      ("fe80::1%eth0", .malformedAddress("fe80::1%eth0")), ("[::1", .malformedAddress("[::1")),
      ("::1]", .malformedAddress("::1]")), ("[]", .malformedAddress("[]")),
      ("[1.2.3.4]", .malformedAddress("[1.2.3.4]")),
      ("[example.com]", .malformedAddress("[example.com]")),
      ("[[::1]]", .malformedAddress("[[::1]]")), ("::1.2.3", .malformedAddress("::1.2.3")),
      ("::1.2.3.4:5", .malformedAddress("::1.2.3.4:5")),
      ("1.2.3.4::", .malformedAddress("1.2.3.4::")),
      ("::ffff:01.2.3.4", .malformedAddress("::ffff:01.2.3.4")),
      ("example.com:443", .notHostAlone("example.com:443", has: .port)),
      ("example.com:", .notHostAlone("example.com:", has: .port)),
      ("1.2.3.4:443", .notHostAlone("1.2.3.4:443", has: .port)),
      ("[::1]:443", .notHostAlone("[::1]:443", has: .port)),
      ("example.com:https", .malformedAddress("example.com:https")),
      ("https://example.com", .notHostAlone("https://example.com", has: .scheme)),
      ("https://[::1]:443/", .notHostAlone("https://[::1]:443/", has: .scheme)),
      ("https://user@example.com/", .notHostAlone("https://user@example.com/", has: .scheme)),
      ("example.com:443/path", .notHostAlone("example.com:443/path", has: .path)),
      ("example.com?q", .notHostAlone("example.com?q", has: .path)),
      ("10.0.0.0/8", .notHostAlone("10.0.0.0/8", has: .path)),
      ("user:password@example.com", .notHostAlone("user:password@example.com", has: .user)),
    ] as [(String, HostNameError)])
  func refused(text: String, error: HostNameError) {
    #expect(throws: error) { try HostName(text) }
    #expect(throws: HostNameError.self) { try HostPattern(".\(text)") }
  }

  @Test("holds names to 63 bytes a label and 253 in all")
  func lengths() throws {
    let label = String(repeating: "a", count: 63)
    #expect((try? HostName("\(label).com")) != nil)
    #expect(throws: HostNameError.badLabel("\(label)a.com")) { try HostName("\(label)a.com") }
    let longest = "\(label).\(label).\(label)." + String(repeating: "b", count: 61)
    #expect(try HostName(longest).description.utf8.count == 253)
    #expect(try HostName(longest + ".").description.utf8.count == 253)
    #expect(throws: HostNameError.tooLong(254)) { try HostName(longest + "b") }
  }

  @Test("keeps apart what only looks alike")
  func different() throws {
    #expect(try HostName("::ffff:1.2.3.4") != HostName("1.2.3.4"))
    #expect(try HostName("::1.2.3.4") != HostName("1.2.3.4"))
    #expect(try HostName("1.2.3.4") == .address(#require(IPAddress(bytes: [1, 2, 3, 4]))))
    #expect(try HostName("a.example") != HostName("b.example"))
    for count in [0, 3, 5, 15, 17] {
      #expect(IPAddress(bytes: [UInt8](repeating: 0, count: count)) == nil)
    }
  }

  @Test("walks up a name one label at a time")
  func parents() throws {
    var name: DNSName? = try DNSName("a.b.example.com")
    var seen: [String] = []
    while let current = name {
      seen.append(current.description)
      name = current.parent
    }
    #expect(seen == ["a.b.example.com", "b.example.com", "example.com", "com"])
  }

  @Test(
    "tells what stands beside the host, and quotes what was written",
    arguments: [
      ("https://host", "\"https://host\" is a URL; hint: write the host alone, without a scheme"),
      (
        "host:8444",
        "\"host:8444\" has a port; hint: write the host alone, pins hold for all its ports"
      ),
      ("host/path", "\"host/path\" has a path; hint: write the host alone"),
      ("user@host", "\"user@host\" has a user name; hint: write the host alone"),
      ("*.example.com:443", "\"*.example.com:443\" has a port;"),
      ("https://*.example.com", "\"https://*.example.com\" is a URL;"),
      ("*.*.example.com", "\"*.*.example.com\" has a misplaced wildcard;"),
      ("**.*.example.com", "\"**.*.example.com\" has a misplaced wildcard;"),
      ("*.bücher.example", "\"*.bücher.example\" is not ASCII;"),
      ("*.1.2.3.4", "\"*.1.2.3.4\" looks like an IP address"),
    ])
  func quoted(text: String, message: String) throws {
    let error = #expect(throws: HostNameError.self) { try HostPattern(text) }
    // Escaped, as everything that comes from outside.
    let message = message.unicodeScalars.map {
      $0.value > 0x7f ? $0.escaped(asASCII: true) : String($0)
    }.joined()
    #expect(try #require(error).description.hasPrefix(message), "\(String(describing: error))")
  }

  @Test("prints a refused name without its control characters, and not all of it")
  func messages() {
    let error = HostNameError.badCharacter("\u{1B}[2J\n" + String(repeating: "x", count: 5000))
    #expect(error.description.utf8.count < 200)
    #expect(
      error.description.unicodeScalars.allSatisfy {
        $0.value >= 0x20 && $0.value < 0x7F || $0 == "…"
      })
  }
}
