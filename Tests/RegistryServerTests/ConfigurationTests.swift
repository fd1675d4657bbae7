import Foundation
import Pinning
import RegistryServer
import TestSupport
import Testing

@Suite("The configuration") struct ConfigurationTests {
  @Test("a list of names is enough; the rest has defaults")
  func defaults() throws {
    let read = try configuration("keys:\n  - fqdn: www.example.com\n")
    #expect(read.listen == .standard)
    #expect(read.storage == .standard)
    #expect(read.tls == TLSConfiguration())
    #expect(read.logLevel == .info)
    let host = try HostName("www.example.com")
    #expect(
      read.documents == [
        DocumentConfiguration(
          file: "www.example.com.json", endpoints: [WatchedEndpoint(fqdn: host)])
      ])
    #expect(
      read.documents.first?.endpoints.first?.patterns == [
        try HostPattern("www.example.com"), try HostPattern("*.www.example.com"),
      ])
  }

  @Test("every key has its effect")
  func everything() throws {
    let read = try configuration(
      """
      keys:
        - fqdn: WWW.Example.com.
          domainName: "*.example.com"
          file: first.json
          port: 8443
          address: 127.0.0.1
        - {fqdn: "::1", file: second.json}
        - {fqdn: www.example.com, port: 8443, address: 127.0.0.1, domainName: a.b, file: first.json}
        - {fqdn: www.example.com, file: first.json}
      server: {listen: "[::1]:8080"}
      storage: {type: sqlite, dsn: /var/lib/x/registry.db}
      tls:
        dir: /etc/keys
        dump_interval: 1h30m
        timeout: 1.5s
        looks: 5
        look_interval: 500ms
        anchors: /etc/ca.pem
        grace: 14d
      log: {level: DEBUG, format: json}
      """)
    #expect(read.listen.description == "[::1]:8080")
    #expect(read.storage == .sqlite(path: "/var/lib/x/registry.db"))
    #expect(
      read.tls
        == TLSConfiguration(
          directory: "/etc/keys", interval: 5_400_000, timeout: 1500, looks: 5, lookInterval: 500,
          anchors: "/etc/ca.pem", grace: 14 * 86_400_000))
    #expect(read.logLevel == .debug)
    #expect(read.documents.map(\.file) == ["first.json", "second.json"])
    let first = try #require(read.documents.first)
    #expect(
      first.endpoints.map(\.id) == [
        "www.example.com:8443 at 127.0.0.1", "www.example.com:443",
      ])
    #expect(first.endpoints.first?.patterns.map(\.description) == ["*.example.com", "a.b"])
    let second = try #require(read.documents.last?.endpoints.first)
    #expect(second.id == "[::1]:443")
    #expect(second.patterns == [try HostPattern("::1")])
  }

  @Test("sections may be empty, and anchors and aliases work")
  func shapes() throws {
    let read = try configuration(
      "keys: [&a {fqdn: a.example}]\nserver:\nstorage: ~\nlog: {}\ntls:\n")
    #expect(read.listen == .standard)
    let aliased = try configuration(
      "keys:\n - {fqdn: a.example, file: &f all.json}\n - {fqdn: b.example, file: *f}")
    #expect(aliased.documents.map(\.file) == ["all.json"])
  }

  /// YAML, and what the refusal has to say.
  static let refused: [(String, String)] = [
    ("", "keys is missing"),
    ("keys: []", "keys is missing"),
    ("kyes: []", "line 1: unknown key kyes; hint: did you mean keys?"),
    ("keys: [{fqdn: a.b}]\nui: {token_ttl: 1h}", "line 2: unknown key ui"),
    (
      "keys:\n - fqdn: a.b\n   domainname: c",
      "line 3: unknown key keys[0].domainname; hint: did you mean domainName?"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls:\n  dir: x\n  dir: y",
      "line 4: tls.dir stands twice; hint: it was first set on line 3"
    ),
    ("keys: [{fqdn: a.b}]\nkeys: [{fqdn: c.d}]", "line 2: keys stands twice"),
    ("keys: {fqdn: a.b}", "line 1: keys is a mapping; hint: a list is expected"),
    ("keys: [a.b]", "keys[0] is a string; hint: a mapping is expected"),
    ("keys: [{fqdn: [a.b]}]", "keys[0].fqdn is a list; hint: a string is expected"),
    ("keys: [{fqdn: 12}]", "keys[0].fqdn is a number; hint: a string is expected"),
    ("keys: [{fqdn: true}]", "keys[0].fqdn is a boolean"),
    ("keys: [{fqdn: ''}]", "keys[0].fqdn: it is empty"),
    ("keys: [{fqdn: }]", "keys[0].fqdn is missing"),
    ("keys: [{domainName: a.b}]", "keys[0].fqdn is missing"),
    ("keys: [{fqdn: '*.a.b'}]", "keys[0].fqdn: "),
    ("keys: [{fqdn: 'bücher.example'}]", "xn--"),
    ("keys: [{fqdn: 'a b'}]", "keys[0].fqdn: "),
    ("keys: [{fqdn: a.b, domainName: 'a.*.b'}]", "keys[0].domainName: "),
    ("keys: [{fqdn: a.b, file: ../x.json}]", "keys[0].file: \"../x.json\" cannot be a file name"),
    ("keys: [{fqdn: a.b, file: .x}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: '..'}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: a/b}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: 'a\\b'}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: \"a\\tb\"}]", "cannot be a file name"),
    ("keys: [{fqdn: a.b, file: \"a\\0b\"}]", "NUL"),
    ("keys: [{fqdn: '::1'}]", "keys[0].fqdn: \"::1.json\" cannot be a file name"),
    ("keys: [{fqdn: a.b, port: 0}]", "keys[0].port: 0 is not within 1 to 65535"),
    ("keys: [{fqdn: a.b, port: 65536}]", "not within"),
    ("keys: [{fqdn: a.b, port: '443'}]", "keys[0].port is a string; hint: a whole number"),
    ("keys: [{fqdn: a.b, port: 1.5}]", "a whole number"),
    ("keys: [{fqdn: a.b, address: localhost}]", "\"localhost\" is no IP address"),
    ("keys: [{fqdn: a.b}, {fqdn: A.B}]", "keys[1].fqdn: a.b of a.b:443 stands twice in a.b.json"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: localhost:7500}", "server.listen: \"localhost:7500\""),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:99999'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '::1:80'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:+80'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: 7500", "server is a number; hint: a mapping is expected"),
    ("keys: [{fqdn: a.b}]\nserver: {port: 7500}", "unknown key server.port"),
    ("keys: [{fqdn: a.b}]\nstorage: {type: mongo}", "no such storage: \"mongo\"; hint: sqlite"),
    ("keys: [{fqdn: a.b}]\nstorage: {type: memory, dsn: x}", "memory has no dsn"),
    ("keys: [{fqdn: a.b}]\nstorage: {dsn: ':memory:'}", "is no file"),
    (
      "keys: [{fqdn: a.b}]\ntls: {dump_interval: 60}",
      "tls.dump_interval: \"60\" is no duration; hint: write 60s"
    ),
    ("keys: [{fqdn: a.b}]\ntls: {dump_interval: -1m}", "is no duration"),
    ("keys: [{fqdn: a.b}]\ntls: {dump_interval: 0s}", "not within 1s to 24h"),
    ("keys: [{fqdn: a.b}]\ntls: {timeout: [1s]}", "tls.timeout is a list; hint: a duration"),
    ("keys: [{fqdn: a.b}]\ntls: {looks: 0}", "not within 1 to 100"),
    ("keys: [{fqdn: a.b}]\nlog: {level: loud}", "no such level: \"loud\"; hint: debug, info"),
    ("keys: [{fqdn: a.b}]\nlog: {format: xml}", "no such format"),
    ("keys: [{fqdn: a.b}", "not YAML"),
    ("keys:\n\t- fqdn: a.b", "line 2: not YAML"),
    ("- a", "the configuration is a list; hint: a mapping is expected"),
    ("just text", "the configuration is a string"),
    ("keys: !!binary aGk=", "the tag"),
    ("? [a, b]\n: c", "a key that is a list"),
    ("keys: [{fqdn: a.b}]\n---\nkeys: []", "line 2: not YAML: a second document"),
    ("keys: &a [*a]", "too large or too deep"),
    ("<<: {keys: []}", "unknown key <<"),
    ("keys: [{fqdn: *nowhere}]", "not YAML"),
    ("{\"\u{0}\": 1}", "not YAML"),
  ]

  @Test("refuses with the line, the cause and a hint", arguments: refused)
  func refuses(_ yaml: String, _ message: String) throws {
    let error = #expect(throws: ConfigurationError.self) { try configuration(yaml) }
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }

  @Test("a document that grows without end through aliases is refused")
  func billionLaughs() {
    var yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in 1..<9 {
      yaml +=
        "a\(level): &a\(level) [\(Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", "))]\n"
    }
    #expect(throws: ConfigurationError.self) { try configuration(yaml) }
  }

  @Test(
    "a megabyte of brackets is refused as soon as it is too deep",
    arguments: ["[", "{a: ", "- ", "? "])
  func depth(_ opening: String) {
    let yaml = "keys: [" + String(repeating: opening, count: 1_000_000 / opening.utf8.count)
    #expect(throws: ConfigurationError.self) { try configuration(yaml) }
  }

  @Test(
    "ten thousand endpoints are read, in one file and in as many", arguments: ["", ", file: a"])
  func scale(_ file: String) throws {
    let keys = (0..<10_000).map { "- {fqdn: h\($0).example\(file)}\n" }.joined()
    let read = try configuration("keys:\n" + keys)
    #expect(read.documents.reduce(0) { $0 + $1.endpoints.count } == 10_000)
  }

  @Test("refuses bytes that are no UTF-8, and files that are none")
  func bytes() throws {
    #expect(throws: ConfigurationError.self) {
      try ServerConfiguration(yaml: Array("keys: ".utf8) + [0xff])
    }
    #expect(throws: ConfigurationError.tooLarge(limit: 1 << 20)) {
      try ServerConfiguration(yaml: [UInt8](repeating: 0x20, count: (1 << 20) + 1))
    }
    let directory = try TemporaryDirectory()
    for path in [directory.path(), directory.path("none.yaml"), "/dev/zero", "/dev/null/x"] {
      #expect(throws: ConfigurationError.self, "\(path)") { try ServerConfiguration(file: path) }
    }
    let file = try directory.write("keys: [{fqdn: a.b}]", to: "config.yaml")
    let read = try ServerConfiguration(file: file.path(percentEncoded: false))
    #expect(read.documents.count == 1)
  }

  @Test(
    "reads durations as Go does, and days",
    arguments: [
      ("60s", 60_000), ("1m", 60_000), ("1h30m", 5_400_000), ("1.5s", 1500), (".5s", 500),
      ("500ms", 500), ("1h1m1s1ms", 3_661_001), ("2000us", 2), ("2000µs", 2), ("3000000ns", 3),
      ("0", 0), ("7d", 604_800_000), ("1.s", 1000),
      ("", nil), ("60", nil), ("s", nil), ("1", nil), ("-1s", nil), ("+1s", nil), ("1 s", nil),
      ("1S", nil), ("1x", nil), (".s", nil), ("1.2.3s", nil), ("1e3s", nil), ("9999999h", nil),
    ] as [(String, Int64?)])
  func durations(_ text: String, _ milliseconds: Int64?) {
    #expect(GoDuration.milliseconds(text) == milliseconds)
  }

  @Test("puts state where the XDG specification says")
  func dataDirectory() {
    func directory(_ environment: [String: String]) -> String {
      StorageConfiguration.dataDirectory(environment: environment)
    }
    #expect(directory(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/ssl-pinning")
    #expect(directory(["XDG_STATE_HOME": "s", "HOME": "/h"]) == "/h/.local/state/ssl-pinning")
    #expect(directory(["HOME": "/h"]) == "/h/.local/state/ssl-pinning")
  }
}
