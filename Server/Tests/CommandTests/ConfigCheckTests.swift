import CanonicalJSON
import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("config check")
struct ConfigCheckTests {
  private static let yaml = """
    keys:
      - fqdn: www.example.com
      - {fqdn: api.example.com, domainName: api.example.com, file: www.example.com.json}
    storage:
      type: postgres
      dsn: postgres://user:hush@db/registry?sslmode=verify-full
    log: {level: warn}
    """

  @Test("prints every value and where it was set, and no secret")
  func table() async throws {
    try await withTemporaryDirectory { directory in
      try directory.write(Self.yaml, to: "config.yaml")
      let path = directory.path("config.yaml")
      let outcome = try await Tool.run(
        [
          "config", "check", "--offline", "--config-path", directory.path(), "--log-level=debug",
          "--log-pretty",
        ],
        environment: ["SSL_PINNING_TLS_TIMEOUT": "3s", "SSL_PINNING_LOG_LEVEL": "error"])
      #expect(outcome.exitCode == 0 && outcome.stderr.isEmpty, "\(outcome.stderr)")
      let rows = outcome.stdout.split(separator: "\n").map {
        $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
      }
      for row in [
        "keys[0] fqdn=www.example.com domainName=www.example.com file=www.example.com.json \(path):2",
        "keys[0] fqdn=www.example.com domainName=*.www.example.com file=www.example.com.json \(path):2",
        "keys[1] fqdn=api.example.com domainName=api.example.com file=www.example.com.json \(path):3",
        "log.level debug --log-level", "log.pretty true --log-pretty", "log.format json default",
        "storage.type postgres \(path):5",
        "storage.dsn postgres://user:***@db/registry?sslmode=verify-full \(path):6",
        "tls.timeout 3s SSL_PINNING_TLS_TIMEOUT", "tls.dir \(directory.path("tls")) default",
        "tls.vantage_points none default", "storage.max_open_conns 5 default",
      ] {
        #expect(rows.contains(row), "\(row) is not in\n\(outcome.stdout)")
      }
      #expect(!outcome.stdout.contains("hush"))
    }
  }

  @Test("takes the reference server's flags, and --listen before its second name")
  func serverFlags() async throws {
    try await withTemporaryDirectory { directory in
      try directory.write(Self.yaml, to: "config.yaml")
      for (flags, address) in [
        (["--server-listen", "127.0.0.1:2"], "127.0.0.1:2"),
        (["--server-listen=127.0.0.1:2", "--listen", "127.0.0.1:3"], "127.0.0.1:3"),
      ] {
        let outcome = try await Tool.run(
          [
            "config", "check", "--offline", "--config-path", directory.path(),
            "--server-read-timeout", "7s",
            "--server-write-timeout=8s",
          ] + flags)
        #expect(outcome.exitCode == 0, "\(outcome.stderr)")
        let rows = outcome.stdout.split(separator: "\n").map {
          $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
        }
        for row in [
          "server.listen \(address) --listen", "server.read_timeout 7s --server-read-timeout",
          "server.write_timeout 8s --server-write-timeout",
        ] {
          #expect(rows.contains(row), "\(row) is not in\n\(outcome.stdout)")
        }
      }
    }
  }

  @Test("prints the same as JSON, unused values too")
  func json() async throws {
    try await withTemporaryDirectory { directory in
      try directory.write(Self.yaml, to: "config.yaml")
      let outcome = try await Tool.run(
        [
          "config", "check", "--offline", "--json", "--config-path", directory.path(), "-s",
          "memory",
        ],
        environment: [
          "SSL_PINNING_STORAGE_DUMP_DIR": "/dumps", "SSL_PINNING_TLS_CONFIRMATIONS": "4",
        ])
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      let document = try #require(try outcome.json.objectValue)
      #expect(document["file"]?.stringValue == directory.path("config.yaml"))
      #expect(document["warnings"] == .array([]))
      let settings = try #require(document["settings"]?.arrayValue)
      func setting(_ key: String) throws -> JSONObject {
        try #require(
          settings.compactMap(\.objectValue).first { $0["key"]?.stringValue == key }, "\(key)")
      }
      #expect(
        try setting("storage.type") == [
          "key": .string("storage.type"), "value": .string("memory"), "used": .bool(true),
          "from": .object(["source": .string("flag"), "name": .string("--storage-type")]),
        ])
      #expect(
        try setting("storage.dump_dir") == [
          "key": .string("storage.dump_dir"), "value": .null, "used": .bool(false),
          "from": .object([
            "source": .string("environment"), "name": .string("SSL_PINNING_STORAGE_DUMP_DIR"),
          ]),
        ])
      #expect(
        try setting("log.level")["from"]
          == .object(["source": .string("file"), "line": .number(7)]))
      #expect(try setting("tls.confirmations")["value"] == .number(4))
      #expect(try setting("tls.grace")["from"] == .object(["source": .string("default")]))
      #expect(try setting("keys")["value"]?.arrayValue?.count == 3)
      #expect(!outcome.stdout.contains("hush"))
    }
  }

  /// The configuration, the environment, flags; the exit code and what the message begins with. DIR
  /// is the directory that the configuration is in.
  static let refused: [(String?, [String: String], [String], Int32, String)] = [
    (
      nil, [:], [], 3, "cannot read DIR/config.yaml: no such file or directory; hint: --config-file"
    ),
    ("", [:], [], 1, "DIR/config.yaml: line 1: keys is missing; hint: "),
    (
      "keys:\n - fqdn: https://a.example", [:], [], 1,
      "DIR/config.yaml: line 2: keys[0].fqdn: \"https://a.example\" is a URL; hint: write the host alone"
    ),
    (
      "keys:\n - fqdn: a.example:8443", [:], [], 1,
      "DIR/config.yaml: line 2: keys[0].fqdn: \"a.example:8443\" has a port; hint: "
    ),
    ("keys: [", [:], [], 1, "DIR/config.yaml: line 2: not YAML"),
    (
      "keys: [{fqdn: a.b}]\nstroage: {}", [:], [], 1,
      "DIR/config.yaml: line 2: unknown key stroage; hint: did you mean storage?"
    ),
    (
      "keys: [{fqdn: a.b}]", ["SSL_PINNING_TLS_CONFIRMATIONS": "0"], [], 1,
      "SSL_PINNING_TLS_CONFIRMATIONS: tls.confirmations: 0 is not within 1 to 100"
    ),
    (
      "keys: [{fqdn: a.b}]", ["SSL_PINNING_TLS_CONFIRMATONS": "3"], [], 1,
      "SSL_PINNING_TLS_CONFIRMATONS: unknown variable; hint: did you mean SSL_PINNING_TLS_CONFIRMATIONS?"
    ),
    (
      "keys: [{fqdn: a.b}]", [:], ["--storage-type=mongo"], 2,
      "--storage-type: storage.type: no such storage: \"mongo\"; hint: sqlite, memory, fs"
    ),
    (
      nil, [:], ["--log-level", "loud"], 2,
      "--log-level: log.level: no such level: \"loud\"; hint: "
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: redis, dsn: 'postgres://u:hush@h'}", [:], [], 1,
      "DIR/config.yaml: line 2: storage.dsn: \"postgres://u:***@h\" is none of redis"
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: redis, dsn: 'unix:///tmp/redis'}", [:], ["--offline"],
      1, "DIR/config.yaml: line 2: storage.dsn: \"unix:///tmp/redis\" is none of redis"
    ),
    // What libpq would go by counts: its variables, and its service file.
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: postgres, dsn: dbname=x}", ["PGHOST": "db.example"],
      ["--offline"], 1,
      "DIR/config.yaml: line 2: storage.dsn: names a database on another machine, db.example, "
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: postgres, dsn: host=127.0.0.1 dbname=x}",
      ["PGHOSTADDR": "192.0.2.1", "PGSSLMODE": "verify-ca"], ["--offline"], 1,
      "DIR/config.yaml: line 2: storage.dsn: names a database on another machine, 192.0.2.1, "
    ),
    (
      "keys: [{fqdn: a.b}]\nstorage: {type: postgres, dsn: service=nowhere}", [:], ["--offline"], 1,
      "DIR/config.yaml: line 2: storage.dsn: cannot be used: definition of service \"nowhere\""
    ),
  ]

  @Test("says what is wrong, where, and how it may be meant", arguments: refused)
  func refuses(
    yaml: String?, environment: [String: String], flags: [String], code: Int32, message: String
  ) async throws {
    try await withTemporaryDirectory { directory in
      if let yaml { try directory.write(yaml, to: "config.yaml") }
      let path = String(directory.path().dropLast(directory.path().hasSuffix("/") ? 1 : 0))
      let outcome = try await Tool.run(
        ["config", "check", "--config-path", path] + flags, environment: environment)
      #expect(outcome.exitCode == code)
      #expect(
        outcome.stderr.hasPrefix(message.replacing("DIR", with: path)), "\(outcome.stderr)")
      #expect(outcome.stdout.isEmpty && !outcome.stderr.contains("hush"))
      #expect(outcome.stderr.split(separator: "\n").count == 1)
    }
  }

  @Test("warns of what is probably not meant, and accepts it")
  func warning() async throws {
    let outcome = try await Tool.run(
      ["config", "check", "--offline"],
      environment: [
        "SSL_PINNING_KEYS": "[{\"fqdn\": \"a.b\"}]", "SSL_PINNING_STORAGE_DSN": "redis://u:hush@h",
      ])
    #expect(outcome.exitCode == 0)
    #expect(outcome.stderr.hasPrefix("warning: SSL_PINNING_STORAGE_DSN: storage.dsn is not used"))
    #expect(!(outcome.stderr + outcome.stdout).contains("hush"))
  }

  @Test("warns of a named CA that is an intermediate alone, and of as many as the Web has")
  func issuers() async throws {
    try await withTemporaryDirectory { directory in
      let root = try CertificateAuthority.makeRoot(name: "Root")
      let (one, both) = (directory.path("one.pem"), directory.path("both.pem"))
      let issuer = try root.issueIntermediate(name: "Issuer").certificate
      try directory.write(issuer.pem, to: "one.pem")
      try directory.write(issuer.pem + root.root.pem, to: "both.pem")
      let pins = (0...20).map { Data(repeating: UInt8($0), count: 32).base64EncodedString() }
      for (issuers, warning) in [
        ([one], "Issuer is an intermediate, which its CA may exchange any day; hint: "),
        ([both], nil), (pins, "21 CAs are as good as no list: "), (Array(pins.dropLast()), nil),
      ] as [([String], String?)] {
        let list = issuers.map { "'\($0)'" }.joined(separator: ", ")
        for yaml in [
          "keys: [{fqdn: a.b}]\ntls: {issuers: [\(list)]}",
          "keys: [{fqdn: a.b, issuers: [\(list)]}]",
        ] {
          try directory.write(yaml + "\nstorage: {type: memory}", to: "config.yaml")
          let outcome = try await Tool.run(
            "config", "check", "--offline", "--config-path", directory.path())
          #expect(outcome.exitCode == 0, "\(outcome.stderr)")
          if let warning {
            #expect(outcome.stderr.hasPrefix("warning: ") && outcome.stderr.contains(warning))
          } else {
            #expect(outcome.stderr.isEmpty, "\(outcome.stderr)")
          }
        }
      }
    }
  }

  @Test(
    "takes the flags as the reference server does",
    arguments: [
      ["-s", "fs"], ["-sfs"], ["-s=fs"], ["--storage-type", "fs"], ["--storage-type=fs"],
    ])
  func spellings(flag: [String]) async throws {
    let outcome = try await Tool.run(
      ["--log-pretty", "--log-level", "warn", "config", "check", "--offline"] + flag,
      environment: ["SSL_PINNING_KEYS": "[{\"fqdn\": \"a.b\"}]"])
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    let rows = outcome.stdout.split(separator: "\n").map {
      $0.split(separator: " ").joined(separator: " ")
    }
    #expect(rows.contains("storage.type fs --storage-type"))
    #expect(rows.contains("log.pretty true --log-pretty"))
    #expect(rows.contains("log.level warn --log-level"))
  }
}
