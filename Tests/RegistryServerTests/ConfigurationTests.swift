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
    #expect(read.logLevel == .info && read.logFormat == .json && !read.logPretty)
    #expect(read.server == HTTPConfiguration())
    #expect(read.publishing == PublishingConfiguration())
    #expect(read.keySetsDirectory == "tls/keysets")
    #expect(read.administration == AdministrationConfiguration())
    #expect(read.reports == ReportsConfiguration())
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
        - {fqdn: www.example.com, file: first.json, interval: 10s, approval: manual}
      server:
        listen: "[::1]:8080"
        read_timeout: 1s
        write_timeout: 0s
        certificate: c.pem
        private_key: k.pem
        key: 0123
      storage: {type: sqlite, dsn: /var/lib/x/registry.db}
      tls:
        dir: /etc/keys
        dump_interval: 1h30m
        timeout: 1.5s
        looks: 5
        look_interval: 500ms
        anchors: /etc/ca.pem
        grace: 14d
        approval: manual
        addresses: first
        vantage_points:
          - {name: frankfurt, proxy: "http://[::1]:3128/"}
          - {name: oslo, proxy: http://Proxy.example:3128}
      publish: {dir: /srv/www, statements: False, online_keys: [a.pem, "b.pem"], key_sets: sets}
      ui: {enabled: false, token_ttl: 1h}
      reports: {enabled: "false", max_groups: "7"}
      log: {level: DEBUG, format: text, pretty: true}
      """)
    #expect(
      read.server
        == HTTPConfiguration(
          listen: try #require(ListenAddress("[::1]:8080")), readTimeout: 1000, writeTimeout: 0,
          certificate: "c.pem", privateKey: "k.pem", key: Secret("0123")))
    #expect(
      read.publishing
        == PublishingConfiguration(
          directory: "/srv/www", statements: false, onlineKeys: ["a.pem", "b.pem"],
          keySets: "sets"))
    #expect(
      read.administration == AdministrationConfiguration(tokenTTL: 3_600_000, isEnabled: false))
    #expect(read.reports == ReportsConfiguration(isEnabled: false, maximumGroups: 7))
    #expect(read.logFormat == .text && read.logPretty)
    #expect(read.storage == .sqlite(path: "/var/lib/x/registry.db"))
    #expect(
      read.tls
        == TLSConfiguration(
          directory: "/etc/keys", interval: 5_400_000, timeout: 1500, looks: 5, lookInterval: 500,
          anchors: "/etc/ca.pem", grace: 14 * 86_400_000, approval: .manual,
          vantagePoints: [
            VantagePoint(name: "frankfurt", host: "::1", port: 3128),
            VantagePoint(name: "oslo", host: "proxy.example", port: 3128),
          ],
          addresses: .first))
    #expect(read.logLevel == .debug)
    #expect(read.documents.map(\.file) == ["first.json", "second.json"])
    let first = try #require(read.documents.first)
    #expect(
      first.endpoints.map(\.id) == [
        "www.example.com:8443 at 127.0.0.1", "www.example.com:443",
      ])
    #expect(first.endpoints.map(\.interval) == [nil, 10_000])
    #expect(first.endpoints.map(\.approval) == [nil, .manual])
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

  @Test("the case of letters in keys does not count, and what is empty is as good as not there")
  func fieldSpellings() throws {
    let read = try configuration(
      """
      Keys: [{FQDN: a.example, domainname: "", File: ""}]
      LOG: {Level: warn, format: ""}
      storage: {type: memory, DSN: "", dump_dir: "", max_open_conns: "3"}
      """)
    #expect(read.documents.map(\.file) == ["a.example.json"])
    #expect(read.documents.first?.endpoints.first?.patterns.count == 2)
    #expect(read.logLevel == .warn && read.logFormat == .json && read.storage == .memory)
  }

  /// The YAML of `storage`, and what is read from it. STATE is where state is kept by default.
  static let stores: [(String, StorageConfiguration)] = [
    ("{type: memory, dsn: 'redis://h', dump_dir: /d, max_open_conns: 3}", .memory),
    ("{type: fs, dump_dir: /d, dsn: 'redis://h'}", .fileSystem(directory: "/d")),
    ("{type: filesystem, dump_dir: d}", .fileSystem(directory: "d")),
    ("{type: fs}", .fileSystem(directory: "STATE/documents")),
    ("{type: sqlite}", .sqlite(path: "STATE/registry.db")),
    ("{type: sqlite, dsn: a.db, dump_dir: /d}", .sqlite(path: "a.db")),
    ("{dsn: a.db}", .sqlite(path: "a.db")),
    // The field's server has no type but memory by default, and starts.
    ("{dsn: 'postgres://u:p@h/d'}", .sqlite(path: "STATE/registry.db")),
    (
      "{type: redis, dsn: 'redis://u:p@h:6379/0?maintnotifications=disabled'}",
      .redis(
        dsn: "redis://u:p@h:6379/0?maintnotifications=disabled",
        pool: ConnectionPoolConfiguration())
    ),
    (
      "{type: redis, dsn: 'REDISS://h', max_open_conns: 0, max_idle_conns: 0, conn_max_lifetime: 0s}",
      .redis(
        dsn: "REDISS://h", pool: ConnectionPoolConfiguration(maxOpen: 0, maxIdle: 0, maxLifetime: 0)
      )
    ),
    (
      "{type: postgres, dsn: 'postgresql://h/d', max_open_conns: 7, max_idle_conns: 3, conn_max_idle_time: 1m, conn_max_lifetime: 1h}",
      .postgres(
        dsn: "postgresql://h/d",
        pool: ConnectionPoolConfiguration(
          maxOpen: 7, maxIdle: 3, maxIdleTime: 60_000, maxLifetime: 3_600_000))
    ),
    (
      "{type: postgres, dsn: 'host=h password=p'}",
      .postgres(dsn: "host=h password=p", pool: ConnectionPoolConfiguration())
    ),
  ]

  @Test("every store takes its own settings and tolerates those of others", arguments: stores)
  func storage(_ yaml: String, _ storage: StorageConfiguration) throws {
    let directory = try TemporaryDirectory()
    let file = try directory.write(
      "keys: [{fqdn: a.b}]\nstorage: \(yaml)".replacing("STATE", with: "/s/ssl-pinning"),
      to: "config.yaml")
    let read = try ConfigurationSources(
      file: file.path(percentEncoded: false), environment: ["XDG_STATE_HOME": "/s"]
    ).read()
    var expected = storage
    switch storage {
    case .fileSystem(let path):
      expected = .fileSystem(directory: path.replacing("STATE", with: "/s/ssl-pinning"))
    case .sqlite(let path):
      expected = .sqlite(path: path.replacing("STATE", with: "/s/ssl-pinning"))
    default: break
    }
    #expect(read.storage == expected)
  }

  @Test(
    "reads addresses as the field's server does",
    arguments: [
      ("127.0.0.1:7500", "127.0.0.1:7500"), ("0.0.0.0:7500", "0.0.0.0:7500"),
      (":7500", "[::]:7500"), ("[::]:7500", "[::]:7500"), ("localhost:7500", "127.0.0.1:7500"),
      ("LocalHost:0", "127.0.0.1:0"), ("[::1]:1", "[::1]:1"), ("[0:0::1]:65535", "[::1]:65535"),
      ("", nil), ("7500", nil), (":", nil), ("127.0.0.1:", nil), ("127.0.0.1:65536", nil),
      ("::1:80", nil), ("[::1]", nil), ("localhost.:7500", nil), ("127.0.0.1:-1", nil),
      ("127.0.0.1:+1", nil), ("http://127.0.0.1:1", nil),
    ] as [(String, String?)])
  func listen(_ text: String, _ address: String?) {
    #expect(ListenAddress(text)?.description == address)
  }

  /// YAML, and what the refusal has to say.
  static let refused: [(String, String)] = [
    ("", "keys is missing"),
    ("keys: []", "keys is missing"),
    ("kyes: []", "line 1: unknown key kyes; hint: did you mean keys?"),
    (
      "keys: [{fqdn: a.b}]\ngui: {token_ttl: 1h}", "line 2: unknown key gui; hint: did you mean ui?"
    ),
    (
      "keys:\n - fqdn: a.b\n   domain_name: c",
      "line 3: unknown key keys[0].domain_name; hint: did you mean domainName?"
    ),
    ("keys:\n - fqdn: a.b\n   FQDN: c", "line 3: keys[0].FQDN stands twice"),
    ("\u{212a}eys: [{fqdn: a.b}]", "unknown key"),
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
    ("keys: [{fqdn: a.b, port: 'https'}]", "keys[0].port is a string; hint: a whole number"),
    ("keys: [{fqdn: a.b, port: '+443'}]", "a whole number"),
    ("keys: [{fqdn: a.b, port: 1.5}]", "a whole number"),
    ("keys: [{fqdn: a.b, address: localhost}]", "\"localhost\" is no IP address"),
    ("keys: [{fqdn: a.b}, {fqdn: A.B}]", "keys[1].fqdn: a.b of a.b:443 stands twice in a.b.json"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: a.b:7500}", "server.listen: \"a.b:7500\""),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:99999'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '::1:80'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: {listen: '127.0.0.1:+80'}", "no address and port"),
    ("keys: [{fqdn: a.b}]\nserver: 7500", "server is a number; hint: a mapping is expected"),
    ("keys: [{fqdn: a.b}]\nserver: {port: 7500}", "unknown key server.port"),
    ("keys: [{fqdn: a.b}]\nstorage: {type: mongo}", "no such storage: \"mongo\"; hint: sqlite"),
    ("keys: [{fqdn: a.b}]\nstorage: {type: Memory}", "no such storage: \"Memory\""),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: sqlite, dsn: 'redis://u:hush@h'}",
      "\"redis://u:***@h\" is no"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: redis}",
      "line 2: storage.dsn is missing; hint: write redis://"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: postgres, dsn: ''}",
      "storage.dsn is missing; hint: write pos"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage:\n  type: redis\n  dsn: postgres://u:hush@h/d",
      "line 4: storage.dsn: \"postgres://u:***@h/d\" is none of redis; hint: write redis://"
    ),
    ("keys: [{fqdn: a.b}]\nstorage: {type: postgres, dsn: localhost}", "is none of postgres"),
    ("keys: [{fqdn: a.b}]\nstorage: {type: fs, dump_dir: [a]}", "storage.dump_dir is a list"),
    ("keys: [{fqdn: a.b}]\nstorage: {max_open_conns: -1}", "not within 0 to 10000"),
    ("keys: [{fqdn: a.b}]\nstorage: {max_idle_conns: many}", "a whole number is expected"),
    ("keys: [{fqdn: a.b}]\nstorage: {conn_max_lifetime: 30}", "\"30\" is no duration"),
    ("keys: [{fqdn: a.b}]\nstorage: {dump_interval: soon}", "storage.dump_interval: \"soon\""),
    ("keys: [{fqdn: a.b}]\nserver: {read_timeout: 5}", "server.read_timeout: \"5\" is no duration"),
    ("keys: [{fqdn: a.b}]\nserver: {key: [a]}", "server.key is a list; hint: a string"),
    (
      "keys: [{fqdn: a.b}]\nserver: {certificate: c.pem}",
      "server.private_key is missing; hint: name"
    ),
    (
      "keys: [{fqdn: a.b}]\nserver: {private_key: k.pem}",
      "server.certificate is missing; hint: name"
    ),
    ("keys: [{fqdn: a.b}]\nlog: {pretty: yes}", "log.pretty is a string; hint: true or false"),
    ("keys: [{fqdn: a.b}]\nui: {enabled: 2}", "ui.enabled is a number; hint: true or false"),
    ("keys: [{fqdn: a.b}]\nui: {token_ttl: 0s}", "ui.token_ttl: 0s is not within 1s"),
    ("keys: [{fqdn: a.b}]\nreports: {max_groups: 0}", "reports.max_groups: 0 is not within 1 to"),
    ("keys: [{fqdn: a.b}]\npublish: {statements: {}}", "publish.statements is a mapping"),
    ("keys: [{fqdn: a.b}]\npublish: {online_keys: a.pem}", "is a string; hint: a list is expected"),
    ("keys: [{fqdn: a.b}]\npublish: {online_keys: [a, '']}", "publish.online_keys[1] is a string"),
    ("keys: [{fqdn: a.b}]\npublish: {online_keys: [[a]]}", "publish.online_keys[0] is a list"),
    (
      "keys: [{fqdn: a.b}]\ntls: {approval: maybe}",
      "no such approval: \"maybe\"; hint: auto, manual"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {addresses: last}", "no such selection: \"last\"; hint: all, first"
    ),
    ("keys: [{fqdn: a.b, approval: never}]", "keys[0].approval: no such approval"),
    ("keys: [{fqdn: a.b, interval: 0s}]", "keys[0].interval: 0s is not within 1ms to 24h"),
    (
      "keys: [{fqdn: a.b, interval: 1s, domainName: a.b}, {fqdn: a.b, interval: 2s, domainName: c.d, file: a.b.json}]",
      "keys[1].interval: a.b:443 has another one above"
    ),
    (
      "keys: [{fqdn: a.b, approval: auto, domainName: a.b}, {fqdn: a.b, approval: manual, domainName: c.d, file: a.b.json}]",
      "keys[1].approval: a.b:443 has another one above"
    ),
    ("keys: [{fqdn: a.b}]\ntls: {vantage_points: {}}", "tls.vantage_points is a mapping"),
    ("keys: [{fqdn: a.b}]\ntls: {vantage_points: [{proxy: 'http://h:1'}]}", "[0].name is missing"),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x}]}",
      "vantage_points[0].proxy is missing"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: direct, proxy: 'http://h:1'}]}",
      "tls.vantage_points[0].name: \"direct\" is taken"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls: {vantage_points: [{name: x, proxy: 'http://h:1'}, {name: x, proxy: 'http://i:1'}]}",
      "tls.vantage_points[1].name: \"x\" is taken"
    ),
    (
      "keys: [{fqdn: a.b}]\ntls:\n  vantage_points:\n    - name: x\n      proxy: http://u:hush@h:1",
      "line 5: tls.vantage_points[0].proxy: \"http://u:***@h:1\" is no proxy; hint: write http://host:port"
    ),
    ("keys: [{fqdn: a.b}]\nstorage: {dsn: ':memory:'}", "is no file"),
    (
      "keys: [{fqdn: a.b}]\ntls: {dump_interval: 60}",
      "tls.dump_interval: \"60\" is no duration; hint: write 60s"
    ),
    ("keys: [{fqdn: a.b}]\ntls: {dump_interval: -1m}", "is no duration"),
    ("keys: [{fqdn: a.b}]\ntls: {dump_interval: 0s}", "not within 1ms to 24h"),
    ("keys: [{fqdn: a.b}]\ntls: {timeout: [1s]}", "tls.timeout is a list; hint: a duration"),
    ("keys: [{fqdn: a.b}]\ntls: {looks: 0}", "not within 1 to 100"),
    ("keys: [{fqdn: a.b}]\nlog: {levle: info}", "unknown key log.levle; hint: did you mean level?"),
    ("keys: [{fqdn: a.b}]\nlog: {level: loud}", "no such level: \"loud\"; hint: debug, info"),
    ("keys: [{fqdn: a.b}]\nlog: {format: xml}", "no such format: \"xml\"; hint: json, text"),
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
