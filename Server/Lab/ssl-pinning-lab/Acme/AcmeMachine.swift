import Foundation
import SslPinningPlatform
import TestSupport

/// ACME clients as Debian ships them, at their defaults but for directories, the server, and the kind of challenge.
enum AcmeClient: String, CaseIterable, Sendable {
  case certbot, lego, dehydrated

  /// Gets the first certificate of a name.
  func issue(_ name: String, at home: String, from server: AcmeServer) -> [[String]] {
    switch self {
    case .certbot:
      [
        [
          "certbot", "certonly", "--webroot", "-w", server.webRoot, "-d", name, "--server",
          server.url,
        ]
          + Self.directories(home)
          + ["-n", "--agree-tos", "--register-unsafely-without-email"]
      ]
    case .lego: [lego(name, home, server) + ["run"]]
    case .dehydrated:
      [
        ["dehydrated", "--register", "--accept-terms", "-f", "\(home)/config"],
        ["dehydrated", "-c", "-f", "\(home)/config", "-d", name],
      ]
    }
  }

  /// Renews the certificates of all names, as if they were about to end.
  func renew(
    _ names: [String], at home: String, from server: AcmeServer, hook: String
  ) -> [[String]] {
    switch self {
    case .certbot:
      [
        ["certbot", "renew", "--force-renewal", "--no-random-sleep-on-renew"]
          + Self.directories(home)
      ]
    case .lego:
      names.map {
        lego($0, home, server)
          + ["renew", "--days", "36500", "--no-random-sleep", "--renew-hook", hook]
      }
    case .dehydrated:
      names.map { ["dehydrated", "-c", "-x", "-f", "\(home)/config", "-d", $0, "-k", hook] }
    }
  }

  /// What stands in the client's directory before its first call.
  func files(at home: String, from server: AcmeServer) -> [String: String] {
    guard self == .dehydrated else { return [:] }
    return [
      "config": """
      CA="\(server.url)"
      BASEDIR="\(home)"
      WELLKNOWN="\(server.webRoot)/.well-known/acme-challenge"
      CURL_OPTS="--cacert \(server.ca)"

      """
    ]
  }

  /// Whom it trusts for the server.
  func environment(_ server: AcmeServer) -> [String: String] {
    ["REQUESTS_CA_BUNDLE": server.ca, "LEGO_CA_CERTIFICATES": server.ca]
  }

  /// Where it puts key and chain.
  func files(of name: String, at home: String) -> (key: String, chain: String) {
    switch self {
    case .certbot: ("\(home)/live/\(name)/privkey.pem", "\(home)/live/\(name)/fullchain.pem")
    case .lego: ("\(home)/certificates/\(name).key", "\(home)/certificates/\(name).crt")
    case .dehydrated:
      ("\(home)/certs/\(name)/privkey.pem", "\(home)/certs/\(name)/fullchain.pem")
    }
  }

  private static func directories(_ home: String) -> [String] {
    ["--config-dir", home, "--work-dir", "\(home)/work", "--logs-dir", "\(home)/logs"]
  }

  private func lego(_ name: String, _ home: String, _ server: AcmeServer) -> [String] {
    [
      "lego", "--accept-tos", "--email", "admin@example.org", "--server", server.url, "--path",
      home, "--http", "--http.webroot", server.webRoot, "-d", name,
    ]
  }
}

/// A machine with nginx, an ACME client with the shipped hook, and what goes on with announcements.
final class AcmeMachine: Sendable {
  let names: [String]
  let port: UInt16
  private let number: Int
  private let place: AcmePlace
  private let server: AcmeServer
  private let client: AcmeClient
  private let hook: String
  private let nginx = Locked<ChildProcess?>(nil)
  /// How often nginx was stopped or started: a request between two of these may find nobody.
  private let stops = Locked(0)

  /// - Parameter hook: `packaging/announce-renewed`.
  init(
    _ number: Int, names: [String], in place: AcmePlace, by client: AcmeClient,
    from server: AcmeServer, hook: String
  ) throws {
    (self.number, self.names, self.place, self.client) = (number, names, place, client)
    (self.server, self.hook) = (server, hook)
    port = try freePort()
  }

  private func path(_ name: String) -> String { place.path("m\(number)/\(name)") }
  private var home: String { path(client.rawValue) }
  private var environment: [String: String] {
    client.environment(server).merging(["ANNOUNCE_RENEWED_CONF": path("announce.conf")]) { $1 }
  }

  /// Gets the first certificates, and starts nginx with them.
  ///
  /// - Parameter options: of `announce`, for all names.
  func setUp(announcing options: [String]) async throws {
    for (name, text) in client.files(at: home, from: server) {
      try place.write(text, to: "m\(number)/\(client.rawValue)/\(name)")
    }
    let settings = "-p \(path("")) -c \(path("nginx.conf")) -e stderr"
    try place.write(
      """
      served=\(path("served"))
      renewed=\(path("renewed"))
      reload='test -e \(path("nginx.pid")) || exit 0
        test ! -e \(path("broken")) && nginx -t -q \(settings) && nginx -s reload \(settings) && exit
        echo failed >>\(path("failures")); exit 1'
      announce=(\((options + ["--state", path("jobs")]).map { "'\($0)'" }.joined(separator: " ")))

      """, to: "m\(number)/announce.conf")
    for name in names {
      for command in client.issue(name, at: home, from: server) {
        try await place.run(command, environment: environment)
      }
      let files = client.files(of: name, at: home)
      try await place.run(
        [hook, "put", name, files.key, files.chain], environment: environment)
    }
    if client == .certbot {
      let folder = home + "/renewal-hooks/deploy"
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(
        atPath: folder + "/announce-renewed", withDestinationPath: hook)
    }
    try place.write(configuration, to: "m\(number)/nginx.conf")
    try await start()
  }

  private var configuration: String {
    let sites = names.map { name in
      """
        server {
          listen 127.0.0.1:\(port) ssl;
          server_name \(name);
          ssl_certificate \(path("served"))/\(name)/chain.pem;
          ssl_certificate_key \(path("served"))/\(name)/key.pem;
          location / { return 200 "\(name)"; }
        }
      """
    }
    return """
      daemon off;
      \(getuid() == 0 ? "user root;" : "")
      worker_processes 1;
      pid \(path("nginx.pid"));
      error_log stderr notice;
      events { worker_connections 512; }
      http {
        access_log off;
        client_body_temp_path \(path("temp_body"));
        proxy_temp_path \(path("temp_proxy"));
        fastcgi_temp_path \(path("temp_fastcgi"));
        uwsgi_temp_path \(path("temp_uwsgi"));
        scgi_temp_path \(path("temp_scgi"));
      \(sites.joined(separator: "\n"))
      }

      """
  }

  private func start() async throws {
    let started = try place.start([
      "nginx", "-p", path(""), "-c", path("nginx.conf"), "-e", "stderr",
    ])
    nginx.withLock { $0 = started }
    try await started.waitForOutput(containing: "start worker process")
  }

  /// Stops nginx and starts it, as somebody does who changed something else.
  func restart() async throws {
    stops.withLock { $0 += 1 }
    try await nginx.withLock { $0 }?.terminate()
    try await start()
    stops.withLock { $0 += 1 }
  }

  /// Tells whether nginx was away at any time between two calls: it is odd while it is, and grows.
  var absences: Int { stops.withLock { $0 } }

  func stop() async throws { try await nginx.withLock { $0 }?.terminate() }

  /// Renews all certificates with new keys.
  func renew() async throws {
    for command in client.renew(names, at: home, from: server, hook: hook) {
      try await place.run(command, environment: environment)
    }
  }

  /// What the shipped timer does once a minute.
  ///
  /// - Returns: what it said of what is not over.
  func resume() async throws -> String {
    try await place.run(
      ["ssl-pinning", "announce", "--resume", "--state", path("jobs")], environment: environment,
      mayEndWith: [0, 3]
    ).stderr
  }

  /// How many announcements were begun and are not over.
  var waiting: Int { place.names(in: "m\(number)/jobs").count { $0.hasSuffix(".json") } }

  /// Which key and chain of a name are served, by the directory they are in.
  func served(_ name: String) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: path("served/\(name)"))
  }

  /// Whether reloads fail.
  func breakReload(_ isBroken: Bool) throws {
    if isBroken { try place.write("", to: "m\(number)/broken") } else { unlink(path("broken")) }
  }

  /// How many reloads failed.
  var failures: Int { place.lines(of: "m\(number)/failures").count }
}
