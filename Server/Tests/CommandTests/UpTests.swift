import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("up")
struct UpTests {
  @Test("watches, signs and publishes what verify accepts and get goes by, until SIGTERM")
  func wholeWay() async throws {
    let stage = try GetStage()
    let keys = stage.directory.path("tls")
    let made = try await Tool.run("keys", "generate", "--out", keys, "--algorithm", "rsa-2048")
    #expect(made.exitCode == 0)
    try stage.directory.write(
      """
      keys:
        - fqdn: localhost
          port: \(stage.server.port)
          address: 127.0.0.1
      storage: {type: memory}
      tls:
        dir: \(keys)
        anchors: \(stage.directory.path("ca.pem"))
        confirmation_interval: 50ms
      """, to: "config.yaml")
    let server = try Tool.start(
      ["up", "--config-path", stage.directory.path(), "--listen", "127.0.0.1:0"])
    let marker = "listening on "
    try await server.waitForOutput(containing: marker)
    try await server.waitForOutput(containing: "\n")
    let line = try #require(
      server.stdout.split(separator: "\n").first { $0.hasPrefix(marker) })
    let url = "\(line.dropFirst(marker.count))/api/v1/localhost.json"

    let verify = ["verify", "--key", keys + "/pub.pem", url]
    var verified = try await Tool.run(verify)
    for _ in 0..<200 where verified.exitCode != 0 {
      // why: the server looks at its endpoint in its own time, in another process.
      try await Task.sleep(nanoseconds: 50_000_000)
      verified = try await Tool.run(verify)
    }
    #expect(verified.stdout.contains(try stage.pin), "\(verified.stderr)\(server.stderr)")

    let served = try await Tool.run(
      "get", stage.url(), "--registry", url, "--key", keys + "/pub.pem",
      "--ca", stage.directory.path("ca.pem"))
    #expect(served.stdout == "hello\n", "\(served.stderr)")

    let ended = try await server.terminate(seconds: 30)
    #expect(ended.exitCode == 0, "\(ended.stderr)")
    #expect(ended.stderr.split(separator: "\n").allSatisfy { $0.hasPrefix("{") })
  }

  @Test("ends with 0 on a signal in the very moment it listens", arguments: [SIGTERM, SIGINT])
  func earlySignal(signal: Int32) async throws {
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      let file = try directory.write(
        "keys: [{fqdn: localhost, port: 1}]\ntls: {dir: \(directory.path())}\nstorage: {type: memory}",
        to: "c.yaml")
      let server = try Tool.start(
        ["up", "--config-file", file.path(percentEncoded: false), "--listen", "127.0.0.1:0"])
      try await server.waitForOutput(containing: "listening on ")
      #expect(try await server.terminate(signal: signal, seconds: 30).exitCode == 0)
    }
  }

  @Test("says https in the line that says where it listens with a certificate")
  func secured() async throws {
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      let authority = try CertificateAuthority.makeRoot(name: "Root")
      let identity = try authority.issue(names: ["127.0.0.1"])
      try directory.write(authority.root.pem, to: "ca.pem")
      try directory.write(identity.certificateChainPEM, to: "server.pem")
      try directory.write(try identity.keyPEM, to: "server.key")
      try directory.write(
        """
        keys: [{fqdn: localhost, port: 1}]
        server: {certificate: \(directory.path("server.pem")), private_key: \(directory.path("server.key"))}
        tls: {dir: \(directory.path())}
        storage: {type: memory}
        """, to: "config.yaml")
      let server = try Tool.start(
        ["up", "--config-path", directory.path(), "--listen", "127.0.0.1:0"])
      let marker = "listening on "
      try await server.waitForOutput(containing: marker)
      try await server.waitForOutput(containing: "\n")
      let line = try #require(
        server.stdout.split(separator: "\n").first { $0.hasPrefix(marker) })
      let url = String(line.dropFirst(marker.count))
      #expect(url.hasPrefix("https://127.0.0.1:"))
      let answer = try await ChildProcess.run(
        "curl", ["-sS", "--noproxy", "*", "--cacert", directory.path("ca.pem"), url + "/livez"])
      #expect(answer.exitCode == 0, "\(answer.stderr)")
      #expect(try await server.terminate(seconds: 30).exitCode == 0)
    }
  }

  /// Starts a server with a store that forgets, so many times.
  private static func starts(
    _ count: Int, _ body: (ChildProcess) async throws -> Void
  ) async throws {
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      let file = try directory.write(
        "keys: [{fqdn: localhost}]\ntls: {dir: \(directory.path())}\nstorage: {type: memory}",
        to: "c.yaml")
      for _ in 0..<count {
        try await body(
          try Tool.start(
            ["up", "--config-file", file.path(percentEncoded: false), "--listen", "127.0.0.1:0"]))
      }
    }
  }

  @Test("goes on after SIGHUP, and ends on a SIGTERM that comes as soon as it listens")
  func signals() async throws {
    try await Self.starts(10) { server in
      try await server.waitForOutput(containing: "listening on ")
      server.send(SIGHUP)
      let ended = try await server.terminate(seconds: 30)
      #expect(ended.exitCode == 0, "\(ended.stderr)")
      #expect(ended.stderr.contains("\"stopped\""))
    }
  }

  @Test("reads its configuration again for a SIGHUP that comes while it starts")
  func earlyHangUp() async throws {
    try await Self.starts(3) { server in
      // The first line: the configuration was read, and nobody listens to signals yet.
      try await server.waitForOutput(containing: "\"event\":\"configuration\"")
      server.send(SIGHUP)
      try await server.waitForOutput(containing: "\"configuration_read_again\"")
      #expect(try await server.terminate(seconds: 30).exitCode == 0)
    }
  }

  @Test("writes copies that everybody may read, under a umask for keys")
  func openCopies() async throws {
    let stage = try GetStage()
    let directory = stage.directory
    try Keys.signing.get().write(to: directory.file("prv.pem"))
    try directory.write(
      """
      keys: [{fqdn: localhost, port: \(stage.server.port), address: 127.0.0.1}]
      tls:
        dir: \(directory.path())
        anchors: \(directory.path("ca.pem"))
        confirmation_interval: 50ms
      storage: {type: memory}
      publish: {dir: \(directory.path("public/copies"))}
      """, to: "config.yaml")
    let server = try ChildProcess(
      "sh", ["-c", "umask 077; exec \"$0\" up --listen 127.0.0.1:0", try Tool.path()],
      directory: directory.url)
    try await server.waitForOutput(containing: "\"document_published\"")
    // Its end waits for the copy.
    #expect(try await server.terminate(seconds: 30).exitCode == 0)
    func mode(_ name: String) throws -> mode_t {
      var status = stat()
      try #require(stat(directory.path(name), &status) == 0, "\(name)")
      return status.st_mode & 0o777
    }
    let parts = "public/copies/localhost.json.parts"
    for folder in ["public", "public/copies", parts, parts + "/payload"] {
      #expect(try mode(folder) == 0o755, "\(folder)")
    }
    for file in ["public/copies/localhost.json", "public/copies/localhost.json.gz"] {
      #expect(try mode(file) == 0o644, "\(file)")
    }
    #expect(try mode(parts + "/statement") == 0o644)
    for payload in try FileManager.default.contentsOfDirectory(
      atPath: directory.path(parts + "/payload"))
    {
      #expect(try mode(parts + "/payload/" + payload) == 0o644)
    }
    #expect(try mode("last-copies") & 0o077 == 0)
    withExtendedLifetime(stage) {}
  }

  @Test("ends on SIGTERM although nobody reads the line that says where it listens")
  func hangingReader() async throws {
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      try directory.write(
        "keys: [{fqdn: localhost, port: 1}]\ntls: {dir: \(directory.path())}\n"
          + "storage: {type: memory}", to: "config.yaml")
      #expect(mkfifo(directory.path("out"), 0o600) == 0)
      let out = open(directory.path("out"), O_RDWR | O_NONBLOCK)
      defer { Foundation.close(out) }
      let junk = [UInt8](repeating: 0x2e, count: 1024)
      while write(out, junk, junk.count) > 0 {}
      while write(out, junk, 1) > 0 {}
      let server = try ChildProcess(
        "sh", ["-c", "exec \"$0\" up --listen 127.0.0.1:0 2>&1 >out", try Tool.path()],
        directory: directory.url)
      // The log has taken the place of standard output.
      try await server.waitForOutput(containing: "\"started\"")
      #expect(try await server.terminate(seconds: 30).exitCode == 0)
    }
  }

  @Test("probes, serves, logs for nobody and ends on SIGTERM while whoever reads its log hangs")
  func hangingLog() async throws {
    let stage = try GetStage()
    let directory = stage.directory
    try Keys.signing.get().write(to: directory.file("prv.pem"))
    let settings = """
      keys: [{fqdn: localhost, port: \(stage.server.port), address: 127.0.0.1}]
      tls:
        dir: \(directory.path())
        anchors: \(directory.path("ca.pem"))
        confirmation_interval: 50ms
        dump_interval: 1s
      storage: {type: memory}

      """
    try directory.write(settings + "log: {level: debug}\n", to: "config.yaml")
    #expect(mkfifo(directory.path("log"), 0o600) == 0)
    let log = open(directory.path("log"), O_RDWR | O_NONBLOCK)
    defer { Foundation.close(log) }
    let junk = [UInt8](repeating: 0x2e, count: 1024)
    while write(log, junk, junk.count) > 0 {}
    let server = try ChildProcess(
      "sh", ["-c", "exec \"$0\" up --listen 127.0.0.1:0 2>log", try Tool.path()],
      directory: directory.url)
    let marker = "listening on "
    try await server.waitForOutput(containing: marker)
    try await server.waitForOutput(containing: "\n")
    let line = try #require(
      server.stdout.split(separator: "\n").first { $0.hasPrefix(marker) })
    let address = String(line.dropFirst(marker.count))
    let url = try #require(URL(string: address))
    let path = String(repeating: "a", count: 4000)
    for _ in 0..<30 {
      let (_, answer) = try await URLSession.shared.data(
        from: url.appending(path: "api/v1/admin/\(path)"))
      #expect([401, 429].contains((answer as? HTTPURLResponse)?.statusCode))
    }
    // Each configuration that is refused is a line that takes most of the room for those that wait.
    let level = String(repeating: "x", count: 700_000)
    try directory.write(settings + "log: {level: \(level)}\n", to: "config.yaml")
    var isDropped = false
    for _ in 0..<600 where !isDropped {
      server.send(SIGHUP)
      // why: the server reads in its own time, in another process.
      try await Task.sleep(nanoseconds: 50_000_000)
      let page = try await ChildProcess.run(
        "curl", ["-sS", "--noproxy", "*", address + "/metrics"])
      isDropped = page.stdout.split(separator: "\n").contains {
        $0.hasPrefix("ssl_pinning_log_dropped_total ") && !$0.hasSuffix(" 0")
      }
    }
    #expect(isDropped)
    // It still serves what it probed, and probes on.
    let next = try stage.authority.issue(names: ["localhost"])
    let pins = [try stage.pin, try SPKIPin(certificateDER: next.leaf.der).base64]
    for pin in pins {
      if pin == pins.last { try stage.server.replaceIdentity(next) }
      var listed = ""
      for _ in 0..<600 where !listed.contains(pin) {
        // why: the server probes in its own time, too.
        try await Task.sleep(nanoseconds: 50_000_000)
        listed = try await Tool.run(
          "verify", "--key", directory.path("pub.pem"), address + "/api/v1/localhost.json"
        ).stdout
      }
      #expect(listed.contains(pin))
    }
    #expect(try await server.terminate(seconds: 30).exitCode == 0)
    withExtendedLifetime(stage) {}
  }

  /// A key, and the smallest configuration that starts without a store.
  private static func writeSmallest(to directory: TemporaryDirectory) throws {
    try Keys.signing.get().write(to: directory.file("prv.pem"))
    try directory.write(
      "keys: [{fqdn: localhost}]\ntls: {dir: \(directory.path())}\nstorage: {type: memory}",
      to: "config.yaml")
  }

  @Test("has descriptors left for looks when clients take all that they may")
  func descriptors() async throws {
    try await withTemporaryDirectory { directory in
      try Self.writeSmallest(to: directory)
      let server = try ChildProcess(
        "sh", ["-c", "ulimit -S -n 256; exec \"$0\" up --listen 127.0.0.1:0", try Tool.path()],
        directory: directory.url)
      try await server.waitForOutput(containing: "listening on ")
      let limits = try String(
        contentsOfFile: "/proc/\(server.processIdentifier)/limits", encoding: .utf8)
      let line = try #require(limits.split(separator: "\n").first { $0.contains("open files") })
      #expect(try #require(line.split(separator: " ").compactMap { Int($0) }.first) > 1024 + 256)
      _ = try await server.terminate(seconds: 30)
    }
  }

  @Test("takes fewer clients where the system allows few descriptors, says so, and serves them")
  func fewDescriptors() async throws {
    try await withTemporaryDirectory { directory in
      try Self.writeSmallest(to: directory)
      let port = try freePort()
      let server = try ChildProcess(
        "sh", ["-c", "ulimit -n 448; exec \"$0\" up --listen 127.0.0.1:\(port)", try Tool.path()],
        directory: directory.url)
      try await server.waitForOutput(containing: "listening on ")
      let stop = try EventSignal()
      let clients = try (0..<160).map { _ in
        try ByteStream.dial(.loopback(port), stop: stop, until: .after(milliseconds: 5000))
      }
      // It comes after them, so they were taken before, or have given way.
      let page = try await ChildProcess.run(
        "curl", ["-sS", "--noproxy", "*", "http://127.0.0.1:\(port)/metrics"])
      withExtendedLifetime(clients) {}
      let line = try #require(
        page.stdout.split(separator: "\n").first { $0.hasPrefix("process_open_fds ") })
      let open = try #require(line.split(separator: " ").last.flatMap { Int($0) })
      #expect((40..<140).contains(open), "\(line)")
      let outcome = try await server.terminate(seconds: 30)
      #expect(outcome.stderr.contains("the limit of open files is 448, so server.listen takes 48 "))
    }
  }

  @Test(
    "leaves no core dump, whatever its shell allows: it has keys, and so has a vantage point",
    arguments: [
      "up --listen 127.0.0.1:0",
      "vantage --client \(Data(repeating: 7, count: 32).base64EncodedString())"
        + " --host a.example --listen 127.0.0.1:0",
    ])
  func coreDumps(_ call: String) async throws {
    try await withTemporaryDirectory { directory in
      try Self.writeSmallest(to: directory)
      let server = try ChildProcess(
        "sh", ["-c", "ulimit -S -c $(ulimit -H -c); exec \"$0\" \(call)", try Tool.path()],
        directory: directory.url)
      try await server.waitForOutput(containing: "listening on ")
      let limits = try String(
        contentsOfFile: "/proc/\(server.processIdentifier)/limits", encoding: .utf8)
      let line = try #require(limits.split(separator: "\n").first { $0.contains("core file") })
      #expect(line.split(separator: " ").compactMap { Int($0) } == [0, 0], "\(line)")
      _ = try await server.terminate(seconds: 30)
    }
  }

  // In a process of its own: nothing undoes it.
  @Test("hides its memory from the other processes of its user")
  func hiddenMemory() async {
    await #expect(processExitsWith: .success) {
      guard !ProcessMemory.isHidden else { exit(3) }
      ProcessMemory.hide()
      guard ProcessMemory.isHidden else { exit(4) }
    }
  }

  @Test(
    "says what is wrong before it listens",
    arguments: [
      (nil, Int32(3), "config.yaml"),
      ("", 1, "keys"),
      ("keys: []", 1, "keys"),
      ("keys: [{fqdn: localhost}]\nserverr: {}", 1, "server"),
      ("keys: [", 1, "line"),
      ("keys: [{fqdn: localhost}]\ntls: {dir: /no/such/directory}", 3, "prv.pem"),
      ("keys: [{fqdn: localhost}]\ntls: {dir: DIR, anchors: /no/such/file}", 3, "/no/such/file"),
      (
        "keys: [{fqdn: localhost}]\ntls: {dir: DIR}\nstorage: {type: sqlite, dsn: /dev/null/x.db}",
        3, "/dev/null/x.db"
      ),
    ] as [(String?, Int32, String)])
  func misconfigured(configuration: String?, code: Int32, says: String) async throws {
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      if let configuration {
        try directory.write(
          configuration.replacingOccurrences(of: "DIR", with: directory.path()), to: "config.yaml")
      }
      let outcome = try await ChildProcess.run(
        Tool.path(), ["up", "--listen", "127.0.0.1:0"], directory: directory.url, seconds: 20)
      #expect(outcome.exitCode == code, "\(outcome.stderr)")
      #expect(outcome.stderr.contains(says) && outcome.speaksProperly, "\(outcome.stderr)")
      #expect(outcome.stdout.isEmpty)
    }
  }

  @Test("says so where the port is taken")
  func portTaken() async throws {
    let other = try LocalHTTPServer { _ in .text("mine") }
    defer { other.stop() }
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      let file = try directory.write(
        "keys: [{fqdn: localhost}]\ntls: {dir: \(directory.path())}\nstorage: {type: memory}",
        to: "c.yaml")
      let outcome = try await Tool.run(
        [
          "up", "--config-file", file.path(percentEncoded: false), "--listen",
          "127.0.0.1:\(other.port)",
        ], seconds: 20)
      #expect(outcome.exitCode == 3)
      #expect(outcome.stderr.contains("in use"))
    }
  }

  @Test("refuses an address that is none", arguments: ["7500", "example.com:7500", "127.0.0.1:"])
  func badAddress(text: String) async throws {
    let outcome = try await Tool.run("up", "--listen", text)
    #expect(outcome.exitCode == 2)
    #expect(outcome.stderr.contains("--listen: server.listen: \"\(text)\""), "\(outcome.stderr)")
  }

  @Test("refuses a signing key that is not RSA, with a hint", arguments: ["EC", "ED25519"])
  func otherKey(algorithm: String) async throws {
    try await withTemporaryDirectory { directory in
      var make = ["genpkey", "-algorithm", algorithm, "-out", directory.path("prv.pem")]
      if algorithm == "EC" { make += ["-pkeyopt", "ec_paramgen_curve:P-256"] }
      #expect(try await ChildProcess.run("openssl", make).exitCode == 0)
      try directory.write(
        "keys: [{fqdn: localhost}]\ntls: {dir: \(directory.path())}\nstorage: {type: memory}",
        to: "config.yaml")
      let outcome = try await Tool.run(
        "up", "--config-path", directory.path(), "--listen", "127.0.0.1:0")
      #expect(outcome.exitCode == 1)
      #expect(
        outcome.stderr.contains(
          "\(directory.path("prv.pem")): the key is \(algorithm), and registries are signed with RSA; "
            + "hint: ssl-pinning keys generate"), "\(outcome.stderr)")
      #expect(outcome.stdout.isEmpty)
    }
  }

  @Test(
    "starts with the reference server's documented configuration, unchanged but for what is this machine's",
    arguments: ["memory", "fs"])
  func documented(store: String) async throws {
    try await withTemporaryDirectory { directory in
      try Keys.signing.get().write(to: directory.file("prv.pem"))
      // Flags stand before the command of the reference server, too.
      let server = try Tool.start(
        [
          "--config-path",
          Vectors.root.appending(path: "configuration").path(percentEncoded: false),
          "--config-file=\(store).yaml", "--log-pretty=false", "--log-format", "text", "up",
          "--listen=127.0.0.1:0",
        ],
        environment: [
          "SSL_PINNING_TLS_DIR": directory.path(), "SSL_PINNING_SERVER_KEY": "hush",
          "SSL_PINNING_STORAGE_DSN": "redis://u:hush@h",
          "SSL_PINNING_STORAGE_DUMP_DIR": directory.path("dumps"),
        ])
      try await server.waitForOutput(containing: "listening on http://127.0.0.1:")
      let ended = try await server.terminate(seconds: 30)
      #expect(ended.exitCode == 0, "\(ended.stderr)")
      let lines = ended.stderr.split(separator: "\n")
      let effective = try #require(lines.first { $0.contains(" INFO  configuration ") })
      #expect(effective.contains(" server.key=\"*** (SSL_PINNING_SERVER_KEY)\""))
      #expect(effective.contains(" storage.type=\"\(store) (line 25)\""))
      #expect(effective.contains(" tls.confirmations=3 "))
      #expect(!ended.stderr.contains("hush"))
      #expect(lines.allSatisfy { $0.contains("Z INFO  ") || $0.contains("Z WARN  ") })
    }
  }
}
