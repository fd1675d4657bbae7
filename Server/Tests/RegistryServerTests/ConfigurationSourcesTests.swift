import Foundation
import TestSupport
import Testing

@testable import RegistryServer

@Suite("The sources of the configuration") struct ConfigurationSourcesTests {
  /// A setting, and what it is by default, in the file, in the environment and by its flag: as it is
  /// written there and, where that differs, as it is shown.
  struct Row: CustomTestStringConvertible {
    let setting: Setting
    let standard: String?
    let file: String
    let environment: String
    var flag: String = ""
    var shown: [String: String] = [:]
    /// What `storage` and `server` need besides, for the setting to be used at all.
    var beside = ""

    var testDescription: String { setting.rawValue }
  }

  private static let hook = "webhook: 'https://a.example/'"
  private static let postgres = "type: postgres, dsn: 'postgres://127.0.0.1/d'"
  private static let pinned =
    "[{\"fqdn\": \"HOST\", \"domainName\": \"HOST\", \"file\": \"f.json\"}]"
  private static func keys(_ host: String) -> String { pinned.replacing("HOST", with: host) }
  private static func shownKeys(_ host: String) -> String {
    "[{\"domainName\":\"HOST\",\"file\":\"f.json\",\"fqdn\":\"HOST\"}]".replacing(
      "HOST", with: host)
  }
  private static func point(_ name: String) -> String {
    "[{\"name\": \"\(name)\", \"proxy\": \"http://localhost:\(name == "x" ? 1 : 2)\"}]"
  }
  private static func shownPoint(_ name: String) -> String {
    "[{\"name\":\"\(name)\",\"proxy\":\"http://localhost:\(name == "x" ? 1 : 2)\"}]"
  }

  static let rows: [Row] = [
    Row(
      setting: .keys, standard: nil, file: keys("a.b"), environment: keys("c.d"),
      shown: [keys("a.b"): shownKeys("a.b"), keys("c.d"): shownKeys("c.d")]),
    Row(setting: .logFormat, standard: "json", file: "text", environment: "json", flag: "text"),
    Row(setting: .logLevel, standard: "info", file: "warn", environment: "error", flag: "debug"),
    Row(
      setting: .logPretty, standard: "false", file: "true", environment: "0", flag: "true",
      shown: ["0": "false"]),
    Row(
      setting: .serverListen, standard: "127.0.0.1:7500", file: "127.0.0.1:1",
      environment: ":2", flag: "[::1]:3", shown: [":2": "[::]:2"]),
    Row(setting: .serverReadTimeout, standard: "5s", file: "1s", environment: "2s", flag: "3s"),
    Row(
      setting: .serverWriteTimeout, standard: "5s", file: "1s", environment: "2s", flag: "3s"),
    Row(
      setting: .serverCertificate, standard: nil, file: "a.pem", environment: "b.pem",
      beside: "private_key: k.pem"),
    Row(
      setting: .serverPrivateKey, standard: nil, file: "a.pem", environment: "b.pem",
      beside: "certificate: c.pem"),
    Row(
      setting: .serverKey, standard: nil, file: "hush", environment: "hush2",
      shown: ["hush": "***", "hush2": "***"]),
    Row(
      setting: .serverTrustedProxies, standard: "[]", file: "[\"10.0.0.0/8\"]",
      environment: "[\"::1\"]"),
    Row(
      setting: .storageType, standard: "sqlite", file: "memory", environment: "fs",
      flag: "memory"),
    Row(
      setting: .storageDSN, standard: "/s/ssl-pinning/registry.db", file: "a.db",
      environment: "b.db", flag: "c.db"),
    Row(
      setting: .storageDumpDirectory, standard: "/s/ssl-pinning/documents", file: "/a",
      environment: "/b", flag: "/c", beside: "type: fs"),
    Row(
      setting: .storageMaximumOpen, standard: "5", file: "1", environment: "2", flag: "3",
      beside: postgres),
    Row(
      setting: .storageMaximumIdle, standard: "5", file: "1", environment: "2", flag: "3",
      beside: postgres),
    Row(
      setting: .storageMaximumIdleTime, standard: "5m", file: "1m", environment: "2m", flag: "3m",
      beside: postgres),
    Row(
      setting: .storageMaximumLifetime, standard: "30m", file: "1m", environment: "2m", flag: "3m",
      beside: postgres),
    Row(
      setting: .storageInsecure, standard: "false", file: "true", environment: "false",
      beside: postgres),
    Row(setting: .tlsDirectory, standard: "tls", file: "/a", environment: "/b"),
    Row(
      setting: .tlsInterval, standard: "1m", file: "30s", environment: "1s", flag: "5s"),
    Row(setting: .tlsTimeout, standard: "5s", file: "10s", environment: "3s"),
    Row(setting: .tlsConfirmations, standard: "3", file: "4", environment: "5"),
    Row(setting: .tlsConfirmationInterval, standard: "2s", file: "1s", environment: "3s"),
    Row(setting: .tlsAddresses, standard: "all", file: "first", environment: "all"),
    Row(
      setting: .tlsKeyTypes, standard: "[\"ecdsa\",\"rsa\"]", file: "[\"rsa\"]",
      environment: "[\"eddsa\"]"),
    Row(
      setting: .tlsVantagePoints, standard: "[]", file: point("x"), environment: point("y"),
      shown: [point("x"): shownPoint("x"), point("y"): shownPoint("y")]),
    Row(setting: .tlsAnchors, standard: nil, file: "a.pem", environment: "b.pem"),
    Row(
      setting: .tlsClientCertificate, standard: nil, file: "a.pem", environment: "b.pem",
      beside: "client_key: k.pem"),
    Row(
      setting: .tlsClientKey, standard: nil, file: "a.pem", environment: "b.pem",
      beside: "client_certificate: c.pem"),
    Row(setting: .tlsApproval, standard: "auto", file: "manual", environment: "auto"),
    Row(
      setting: .tlsGrace, standard: "168h", file: "1d", environment: "2h", shown: ["1d": "24h"]),
    Row(
      setting: .tlsQuorum, standard: nil, file: "2", environment: "3",
      beside: "vantage_points: \(point("x").dropLast()),\(point("y").dropFirst())"),
    Row(
      setting: .tlsIssuers, standard: "[]",
      file: "[\"MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=\"]",
      environment: "[\"MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=\"]"),
    Row(setting: .tlsMassChange, standard: "alert", file: "hold", environment: "alert"),
    Row(setting: .publishDirectory, standard: nil, file: "/a", environment: "/b", flag: "/c"),
    Row(setting: .publishStatements, standard: "true", file: "false", environment: "true"),
    Row(
      setting: .publishOnlineKeys, standard: "[]", file: "[\"a.pem\"]",
      environment: "[\"b.pem\"]"),
    Row(setting: .publishKeySets, standard: "tls/keysets", file: "/a", environment: "/b"),
    Row(
      setting: .publishMirrors, standard: "[]", file: "[\"https://a.example/\"]",
      environment: "[\"https://b.example/x\"]"),
    // A command goes with the key that tokens are signed with, in a section of its own.
    Row(
      setting: .signingCommand, standard: nil, file: "[\"a\"]", environment: "[\"b\"]",
      beside: "public_key: k.pub}\nserver: {key: hush"),
    Row(
      setting: .signingPublicKey, standard: nil, file: "a.pub", environment: "b.pub",
      beside: "command: [a]}\nserver: {key: hush"),
    Row(setting: .signingInput, standard: "message", file: "digest", environment: "message"),
    Row(setting: .signingTimeout, standard: "10s", file: "1s", environment: "2s"),
    Row(setting: .uiEnabled, standard: "true", file: "false", environment: "true"),
    Row(setting: .uiTokenTTL, standard: "24h", file: "1h", environment: "2h"),
    Row(setting: .uiInsecure, standard: "false", file: "true", environment: "false"),
    Row(
      setting: .uiRevokedTokens, standard: "[]", file: "[\"q83vEjRWeJCr\"]",
      environment: "[\"AAAAAAAAAAAA\"]"),
    Row(setting: .uiListen, standard: nil, file: "127.0.0.1:1", environment: "127.0.0.1:2"),
    Row(setting: .uiSecondPerson, standard: "false", file: "true", environment: "false"),
    Row(
      setting: .metricsListen, standard: nil, file: "127.0.0.1:1", environment: "127.0.0.1:2",
      flag: "127.0.0.1:3"),
    Row(setting: .reportsEnabled, standard: "true", file: "false", environment: "true"),
    Row(setting: .reportsMaximumGroups, standard: "10000", file: "1", environment: "2"),
    Row(setting: .historyKeep, standard: "10000", file: "0", environment: "2"),
    Row(setting: .historyKeepFor, standard: "0s", file: "1h", environment: "2h"),
    Row(
      setting: .notifyWebhook, standard: nil, file: "https://a.example/",
      environment: "https://b.example/",
      shown: ["https://a.example/": "***", "https://b.example/": "***"]),
    Row(
      setting: .notifySecret, standard: nil, file: "a secret of 16 bytes",
      environment: "another of 16 bytes",
      shown: ["a secret of 16 bytes": "***", "another of 16 bytes": "***"], beside: hook),
    Row(
      setting: .notifyAnchors, standard: nil, file: "a.pem", environment: "b.pem", beside: hook),
    Row(setting: .notifyCommand, standard: "[]", file: "[\"a\"]", environment: "[\"b\"]"),
  ]

  @Test("the table of precedence has every setting, and every flag")
  func complete() {
    let missing = Set(Setting.allCases).subtracting(Self.rows.map(\.setting))
    // One is the second name of another, one needs files: with tests of their own.
    #expect(missing == [.storageDumpInterval, .keysDirectory])
    for row in Self.rows {
      #expect((row.setting.flag == nil) == row.flag.isEmpty, "\(row.setting)")
    }
  }

  @Test("defaults give way to the file, that to the environment, that to flags", arguments: rows)
  func precedence(_ row: Row) throws {
    let directory = try TemporaryDirectory()
    for inFile in [false, true] {
      let file = try directory.write(Self.yaml(row, inFile: inFile), to: "config.yaml")
      for inEnvironment in [false, true] {
        for byFlag in row.flag.isEmpty ? [false] : [false, true] {
          var environment = ["XDG_STATE_HOME": "/s"]
          if inEnvironment { environment[row.setting.variable] = row.environment }
          let sources = ConfigurationSources(
            file: file.path(percentEncoded: false), environment: environment,
            flags: byFlag ? [row.setting: row.flag] : [:])
          let isNeeded =
            [
              .keys, .serverCertificate, .serverPrivateKey, .tlsClientCertificate, .tlsClientKey,
              .signingCommand, .signingPublicKey,
            ].contains(row.setting)
          guard !isNeeded || inFile || inEnvironment else {
            #expect(throws: ConfigurationError.self) { try sources.read() }
            continue
          }
          let effective = try sources.effective()
          let value = effective.values.first { $0.setting == row.setting }
          let (written, origin): (String?, ConfigurationOrigin?) =
            if byFlag {
              (row.flag, .flag(name: try #require(row.setting.flag)))
            } else if inEnvironment {
              (row.environment, .environment(name: row.setting.variable))
            } else if inFile {
              (row.file, .file(line: 2))
            } else {
              (row.standard, row.standard == nil ? nil : .standard)
            }
          #expect(value?.text == written.map { row.shown[$0] ?? $0 })
          #expect(value?.origin == origin)
        }
      }
    }
  }

  /// A file that sets the row's setting on line 2, or does not.
  private static func yaml(_ row: Row, inFile: Bool) -> String {
    let parts = row.setting.rawValue.split(separator: ".")
    guard parts.count == 2, let section = parts.first, let key = parts.last else {
      return inFile ? "\nkeys: \(row.file)" : "{}"
    }
    let list = row.file.hasPrefix("[")
    let value = inFile ? "\(key): \(list ? row.file : "\"\(row.file)\"")" : ""
    let members = [value, row.beside].filter { !$0.isEmpty }.joined(separator: ", ")
    return "keys: [{fqdn: a.b}]\n\(section): {\(members)}"
  }

  @Test("names of variables and flags follow from the keys")
  func names() {
    #expect(Setting.logLevel.variable == "SSL_PINNING_LOG_LEVEL")
    #expect(Setting.storageMaximumIdleTime.variable == "SSL_PINNING_STORAGE_CONN_MAX_IDLE_TIME")
    #expect(Setting.storageMaximumIdleTime.flag == "--storage-conn-max-idle-time")
    #expect(Setting.uiTokenTTL.variable == "SSL_PINNING_UI_TOKEN_TTL")
    #expect(Setting.serverKey.flag == nil)
    #expect(Set(Setting.allCases.map(\.variable)).count == Setting.allCases.count)
  }

  /// Where the interval is set: in the file's two sections, in two variables, by two flags; then what
  /// it is and where that comes from.
  static let intervals: [(String, [Setting: String], [Setting: String], Int64, String)] = [
    ("storage: {dump_interval: 1s}", [:], [:], 1000, "line 2"),
    ("storage: {dump_interval: 1s}\ntls: {dump_interval: 2s}", [:], [:], 2000, "line 3"),
    (
      "tls: {dump_interval: 2s}", [.storageDumpInterval: "3s"], [:], 2000, "line 2"
    ),
    ("", [.storageDumpInterval: "3s"], [:], 3000, "SSL_PINNING_STORAGE_DUMP_INTERVAL"),
    (
      "storage: {dump_interval: 1s}", [.storageDumpInterval: "3s"], [:], 3000,
      "SSL_PINNING_STORAGE_DUMP_INTERVAL"
    ),
    (
      "", [.storageDumpInterval: "3s", .tlsInterval: "4s"], [:], 4000,
      "SSL_PINNING_TLS_DUMP_INTERVAL"
    ),
    (
      "tls: {dump_interval: 2s}", [.tlsInterval: "4s"], [.storageDumpInterval: "5s"], 5000,
      "--storage-dump-interval"
    ),
    (
      "tls: {dump_interval: 2s}", [.tlsInterval: "4s"],
      [.storageDumpInterval: "5s", .tlsInterval: "6s"], 6000, "--tls-dump-interval"
    ),
    ("", [:], [:], 60_000, "default"),
    ("tls: {dump_interval: 1ms}", [:], [:], 1, "line 2"),
  ]

  @Test("the interval has two names, of which that of tls counts", arguments: intervals)
  func interval(
    _ yaml: String, _ environment: [Setting: String], _ flags: [Setting: String], _ interval: Int64,
    _ origin: String
  ) throws {
    let directory = try TemporaryDirectory()
    let file = try directory.write("keys: [{fqdn: a.b}]\n\(yaml)", to: "config.yaml")
    let effective = try ConfigurationSources(
      file: file.path(percentEncoded: false),
      environment: Dictionary(
        uniqueKeysWithValues: environment.map { ($0.key.variable, $0.value) }), flags: flags
    ).effective()
    #expect(effective.configuration.tls.interval == interval)
    let value = effective.values.first { $0.setting == .tlsInterval }
    #expect(value?.origin.description == origin)
  }

  @Test("without a file the environment is enough, if it lists keys")
  func withoutFile() throws {
    let directory = try TemporaryDirectory()
    let environment = [
      "SSL_PINNING_KEYS":
        "[{\"fqdn\": \"a.b\", \"domainName\": \"c.a.b\"}, {\"FQDN\": \"d.b\", \"port\": 8443}]",
      "SSL_PINNING_LOG_PRETTY": "true", "SSL_PINNING_STORAGE_DSN": "",
    ]
    let sources = ConfigurationSources(directory: directory.path(), environment: environment)
    let effective = try sources.effective()
    #expect(effective.file == nil)
    #expect(effective.configuration.documents.map(\.file) == ["a.b.json", "d.b.json"])
    #expect(effective.configuration.documents.last?.endpoints.first?.port == 8443)
    #expect(effective.configuration.tls.directory == directory.path("tls"))
    #expect(effective.configuration.logPretty)
    // A file that is named must be there, and so must one that would list the keys.
    for sources in [
      ConfigurationSources(
        file: "config.yaml", directory: directory.path(), environment: environment),
      ConfigurationSources(directory: directory.path(), environment: [:]),
    ] {
      let path = directory.path("config.yaml")
      #expect(
        throws: ConfigurationError.unreadable(path: path, reason: "no such file or directory")
      ) { try sources.read() }
    }
    // One that is there and cannot be read is never passed over.
    try FileManager.default.createDirectory(
      at: directory.file("config.yaml"), withIntermediateDirectories: false)
    #expect(throws: ConfigurationError.self) { try sources.read() }
  }

  @Test("tls is beside the configuration unless it is elsewhere")
  func directories() throws {
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]", to: "etc/c.yaml")
    let sources = ConfigurationSources(
      file: "c.yaml", directory: directory.path("etc"), environment: [:])
    #expect(try sources.read().tls.directory == directory.path("etc/tls"))
    let absolute = ConfigurationSources(
      file: directory.path("etc/c.yaml"), directory: "/nowhere", environment: [:])
    #expect(try absolute.read().tls.directory == "/nowhere/tls")
    #expect(try absolute.read().keySetsDirectory == "/nowhere/tls/keysets")
  }

  /// What is asked for, what there is, and where the file and the directory are then.
  static let locations: [(String?, String?, [String], String, String)] = [
    (nil, nil, [], "config.yaml", "."),
    (nil, nil, ["config.yaml"], "config.yaml", "."),
    (
      nil, nil, ["/etc/ssl-pinning/config.yaml"], "/etc/ssl-pinning/config.yaml", "/etc/ssl-pinning"
    ),
    (nil, nil, ["config.yaml", "/etc/ssl-pinning/config.yaml"], "config.yaml", "."),
    ("c.yaml", nil, ["/etc/ssl-pinning/c.yaml"], "/etc/ssl-pinning/c.yaml", "/etc/ssl-pinning"),
    ("c.yaml", nil, ["/etc/ssl-pinning/config.yaml"], "c.yaml", "."),
    ("/x/c.yaml", nil, ["/etc/ssl-pinning/c.yaml"], "/x/c.yaml", "."),
    (nil, ".", ["/etc/ssl-pinning/config.yaml"], "config.yaml", "."),
    (nil, "/x/", ["/etc/ssl-pinning/config.yaml"], "/x/config.yaml", "/x/"),
    ("y/c.yaml", "x", [], "x/y/c.yaml", "x"), ("/y/c.yaml", "/x", [], "/y/c.yaml", "/x"),
  ]

  @Test(
    "the file is where it is said to be, or here, or in the system's place", arguments: locations)
  func location(
    _ file: String?, _ directory: String?, _ existing: [String], _ path: String, _ found: String
  ) {
    let location = ConfigurationSources.location(file: file, directory: directory) {
      existing.contains($0)
    }
    #expect(location.file == path && location.directory == found)
  }

  @Test("the file is read again each time")
  func readAgain() throws {
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]", to: "config.yaml")
    let sources = ConfigurationSources(directory: directory.path(), environment: [:])
    #expect(try sources.read().logLevel == .info)
    try directory.write("keys: [{fqdn: a.b}]\nlog: {level: warn}", to: "config.yaml")
    #expect(try sources.read().logLevel == .warn)
  }

  @Test(
    "a flag that is wrong is named, with a hint, whether or not there is a file",
    arguments: [
      (.logLevel, "loud", "--log-level: log.level: no such level"),
      (.logPretty, "yes", "--log-pretty: log.pretty is a string; hint: true or false"),
      (.serverListen, "7500", "--listen: server.listen: \"7500\" is no address and port; hint:"),
      (.storageMaximumOpen, "many", "--storage-max-open-conns: storage.max_open_conns is a string"),
      (.storageDumpInterval, "5", "--storage-dump-interval: "),
      (.storageDSN, "", "--storage-dsn: storage.dsn: it is empty; hint: leave the flag out"),
    ] as [(Setting, String, String)])
  func refusedFlag(_ setting: Setting, _ text: String, _ message: String) throws {
    let directory = try TemporaryDirectory()
    for _ in 0..<2 {
      let sources = ConfigurationSources(
        directory: directory.path(), environment: [:], flags: [setting: text])
      let error = #expect(throws: ConfigurationError.self) { try sources.read() }
      #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
      if case .flag? = error?.origin {} else { Issue.record("\(error?.origin as Any)") }
      try directory.write("keys: [{fqdn: a.b}]", to: "config.yaml")
    }
  }

  @Test("a value in the file that another source replaces is not judged, a key always is")
  func replaced() throws {
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]\nlog: {level: loud}", to: "config.yaml")
    let flags: [Setting: String] = [.logLevel: "warn"]
    var sources = ConfigurationSources(
      directory: directory.path(), environment: [:], flags: flags)
    #expect(try sources.read().logLevel == .warn)
    sources.flags = [:]
    #expect(throws: ConfigurationError.self) { try sources.read() }
    sources.flags = flags
    try directory.write("keys: [{fqdn: a.b}]\nlog: {level: a, level: b}", to: "config.yaml")
    #expect(throws: ConfigurationError.self) { try sources.read() }
  }

  @Test("a store's URL without its type is told")
  func warning() throws {
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]", to: "config.yaml")
    var sources = ConfigurationSources(
      directory: directory.path(),
      environment: ["SSL_PINNING_STORAGE_DSN": "redis://u:hush@localhost", "XDG_STATE_HOME": "/s"])
    let effective = try sources.effective()
    let warning = try #require(effective.warnings.first)
    #expect(warning.hasPrefix("SSL_PINNING_STORAGE_DSN: ") && !warning.contains("hush"))
    let dsn = effective.values.first { $0.setting == .storageDSN }
    #expect(dsn?.origin == .standard && dsn?.text == "/s/ssl-pinning/registry.db")
    for type in ["redis", "memory"] {
      sources.environment["SSL_PINNING_STORAGE_TYPE"] = type
      #expect(try sources.effective().warnings.isEmpty, "\(type)")
    }
  }

  @Test("vantage points that are fewer than the quorum are told, and no others")
  func fewPoints() throws {
    let directory = try TemporaryDirectory()
    let sources = ConfigurationSources(
      directory: directory.path(), environment: ["XDG_STATE_HOME": "/s"])
    for (points, quorum, isTold) in [
      (0, nil, false), (1, nil, true), (1, 2, true), (2, nil, false), (2, 2, false), (2, 3, true),
      (3, nil, false), (3, 3, false), (3, 4, true), (5, nil, false),
    ] as [(Int, Int?, Bool)] {
      let entries = (0..<points).map { "{name: p\($0), proxy: 'http://localhost:\($0 + 1)'}" }
      let more = quorum.map { ", quorum: \($0)" } ?? ""
      try directory.write(
        "keys: [{fqdn: a.b}]\ntls: {vantage_points: [\(entries.joined(separator: ", "))]\(more)}",
        to: "config.yaml")
      let warnings = try sources.effective().warnings
      #expect(warnings.count == (isTold ? 1 : 0), "\(points) \(quorum ?? 0)")
      let numbers = "fewer points (\(points)) than the quorum (\(quorum ?? 2))"
      #expect(warnings.allSatisfy { $0.contains(numbers) }, "\(warnings)")
    }
  }

  @Test("no secret is in what is shown, in any store and any form")
  func masked() throws {
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]\nserver: {key: hush}", to: "config.yaml")
    for (type, dsn) in [
      ("redis", "redis://u:hush@h:6379/0"),
      ("postgres", "postgres://u:hush@h/d?password=hush&sslpassword=hush"),
      ("postgres", "host=h password=hush dbname=d"), ("postgres", "password = 'hu\\'sh hush'"),
      ("memory", "redis://u:hush@h"), ("fs", "host=h password=hush"),
    ] {
      let effective = try ConfigurationSources(
        directory: directory.path(), environment: [:],
        flags: [.storageType: type, .storageDSN: dsn, .storageInsecure: "true"]
      ).effective()
      for value in effective.values {
        #expect(!value.text.contains("hush") && !value.text.contains("sh hu"), "\(value.text)")
      }
      #expect(effective.values.contains { $0.text.contains("***") })
    }
  }
}
