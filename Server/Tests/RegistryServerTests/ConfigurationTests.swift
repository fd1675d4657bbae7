import Foundation
import HTTPServing
import RegistryCore
import RegistryServer
import RegistryStores
import SslPinningRules
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
        confirmations: 5
        confirmation_interval: 500ms
        anchors: /etc/ca.pem
        grace: 14d
        approval: manual
        addresses: first
        vantage_points:
          - {name: frankfurt, proxy: "http://[::1]:3128/"}
          - {name: oslo, proxy: https://Proxy.example:3128, pins: [AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=], ca: ca.pem, certificate: c.pem, key: k.pem}
      publish: {dir: /srv/www, statements: False, online_keys: [a.pem, "b.pem"], key_sets: sets, mirrors: [https://m.example/x]}
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
          keySets: "sets", mirrors: ["https://m.example/x"]))
    #expect(
      read.administration == AdministrationConfiguration(tokenTTL: 3_600_000, isEnabled: false))
    #expect(read.reports == ReportsConfiguration(isEnabled: false, maximumGroups: 7))
    #expect(read.logFormat == .text && read.logPretty)
    #expect(read.storage == .sqlite(path: "/var/lib/x/registry.db"))
    #expect(
      read.tls
        == TLSConfiguration(
          directory: "/etc/keys", interval: 5_400_000, timeout: 1500, confirmations: 5,
          confirmationInterval: 500,
          anchors: "/etc/ca.pem", grace: 14 * 86_400_000, approval: .manual,
          vantagePoints: [
            VantagePoint(name: "frankfurt", host: "::1", port: 3128),
            VantagePoint(
              name: "oslo", host: "proxy.example", port: 3128,
              security: VantagePoint.Security(
                pins: [try #require(SPKIPin(digest: [UInt8](repeating: 0, count: 32)))],
                anchors: "ca.pem", certificate: "c.pem", privateKey: "k.pem")),
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
    let json = try configuration(#"{"keys": [{"fqdn": "a.example"}], "log": {"pretty": true}}"#)
    #expect(json.logPretty && json.documents.map(\.file) == ["a.example.json"])
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
    // The reference server has no type but memory by default, and starts.
    ("{dsn: 'postgres://u:p@h/d'}", .sqlite(path: "STATE/registry.db")),
    (
      "{type: redis, dsn: 'redis://u:p@h:6379/0?maintnotifications=disabled', insecure: true}",
      .redis(
        dsn: "redis://u:p@h:6379/0?maintnotifications=disabled",
        pool: ConnectionPoolConfiguration(), isInsecure: true)
    ),
    (
      "{type: redis, dsn: 'REDISS://h', max_open_conns: 0, max_idle_conns: 0, conn_max_lifetime: 0s}",
      .redis(
        dsn: "REDISS://h", pool: ConnectionPoolConfiguration(maxOpen: 0, maxIdle: 0, maxLifetime: 0)
      )
    ),
    (
      "{type: postgres, dsn: 'postgresql://h/d?sslmode=verify-full', max_open_conns: 7, max_idle_conns: 3, conn_max_idle_time: 1m, conn_max_lifetime: 1h}",
      .postgres(
        dsn: "postgresql://h/d?sslmode=verify-full",
        pool: ConnectionPoolConfiguration(
          maxOpen: 7, maxIdle: 3, maxIdleTime: 60_000, maxLifetime: 3_600_000))
    ),
    (
      "{type: postgres, dsn: 'host=::1 password=p'}",
      .postgres(dsn: "host=::1 password=p", pool: ConnectionPoolConfiguration())
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
    "reads addresses as the reference server does",
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
    #expect(throws: ConfigurationError.tooLarge(limit: 16 << 20)) {
      try ServerConfiguration(yaml: [UInt8](repeating: 0x20, count: (16 << 20) + 1))
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
