import Foundation
import TLSTools

/// Debian's nginx as the real server of a test: a master and one worker in the foreground, in a
/// temporary directory, on free ports of 127.0.0.1, ended by process id with the last reference.
///
/// - The ports are chosen before nginx binds them; when somebody else was faster, it is started
///   again with others.
/// - It counts as started when its pid file is there, which it writes after it listens: an answering
///   port alone could be somebody else's.
public final class Nginx: Sendable {
  /// One `server` block.
  public struct Site: Sendable {
    /// Nil: clear text.
    public var identity: ServerIdentity?
    /// `server_name`.
    public var name: String
    public var http2: Bool
    /// In nginx's words.
    public var protocols: String
    /// Where it listens: an address of loopback.
    public var address: String
    /// Nil: a free one. A site of the same address and port as another is told apart by its name; one
    /// that is taken by somebody else keeps nginx from starting.
    public var port: UInt16?
    /// What stands in the block besides: locations, redirects, limits. Relative file names are
    /// looked up among `files`, those under `root html` in `html/`.
    public var directives: String

    public init(
      _ identity: ServerIdentity? = nil, name: String = "_", http2: Bool = true,
      protocols: String = "TLSv1.2 TLSv1.3", address: String = "127.0.0.1", port: UInt16? = nil,
      directives: String = "location / { return 200 \"$request_method $request_uri\"; }"
    ) {
      self.identity = identity
      self.name = name
      self.http2 = http2
      self.protocols = protocols
      self.address = address
      self.port = port
      self.directives = directives
    }
  }

  /// One line of the access log.
  public struct Access: Sendable, Hashable {
    public let method: String
    public let target: String
    public let status: Int
    /// Such as `HTTP/2.0`.
    public let version: String
    /// Such as `TLSv1.3`; empty over clear text.
    public let tlsVersion: String
    /// The name asked for by SNI; empty without.
    public let serverName: String
    public let isResumed: Bool
    /// nginx's number of the connection.
    public let connection: Int
  }

  public enum Failure: Error, CustomStringConvertible {
    case didNotStart(log: String)
    case didNotLog(wanted: Int, found: Int)

    public var description: String {
      switch self {
      case .didNotStart(let log): "nginx did not start: \(log)"
      case .didNotLog(let wanted, let found): "nginx logged \(found) requests, not \(wanted)"
      }
    }
  }

  /// The ports of the sites, in their order.
  public let ports: [UInt16]
  public let directory: TemporaryDirectory
  private let process: ChildProcess

  /// Starts nginx.
  ///
  /// - Parameter files: by name relative to the configuration, such as `htpasswd` or `html/a.txt`.
  public static func start(_ sites: [Site], files: [String: String] = [:]) async throws -> Nginx {
    var log = ""
    for _ in 0..<5 {
      let directory = try TemporaryDirectory()
      for (name, text) in files { try directory.write(text, to: name) }
      let free = try freePorts(sites.count)
      let ports = zip(sites, free).map { $0.port ?? $1 }
      for (number, site) in sites.enumerated() {
        _ = try site.identity?.write(to: directory.url, name: "site\(number)")
      }
      try directory.write(configuration(zip(sites, ports).map { $0 }), to: "nginx.conf")
      let process = try ChildProcess(
        "nginx", ["-p", directory.path(), "-c", directory.path("nginx.conf"), "-e", "stderr"],
        directory: directory.url, lastSignal: SIGTERM)
      let nginx = Nginx(ports: ports, directory: directory, process: process)
      if try await nginx.hasStarted() { return nginx }
      log = process.stderr
      // A line of configuration that nginx refuses will not get better.
      guard log.contains("Address already in use") else { break }
    }
    throw Failure.didNotStart(log: log)
  }

  /// Starts nginx with one site.
  public static func start(_ site: Site, files: [String: String] = [:]) async throws -> Nginx {
    try await start([site], files: files)
  }

  private init(ports: [UInt16], directory: TemporaryDirectory, process: ChildProcess) {
    self.ports = ports
    self.directory = directory
    self.process = process
  }

  /// The port of the first site.
  public var port: UInt16 { ports.first ?? 0 }

  /// Lines of an htpasswd file, for `auth_basic_user_file`. A password holds no colon: nginx takes
  /// what follows one for a comment.
  public static func passwords(_ passwords: [String: String]) -> String {
    passwords.map { "\($0.key):{PLAIN}\($0.value)\n" }.sorted().joined()
  }

  /// Swaps a site's key and certificate and has nginx load them, as an operator does (SIGHUP).
  /// Returns when new connections see them.
  public func replaceIdentity(ofSite site: Int = 0, with identity: ServerIdentity) async throws {
    // The old worker says so in the moment in which it stops accepting; the new one runs by then.
    let sign = "gracefully shutting down"
    let before = process.stderr.components(separatedBy: sign).count
    _ = try identity.write(to: directory.url, name: "site\(site)", replacing: true)
    kill(process.processIdentifier, SIGHUP)
    try await poll { [self] in process.stderr.components(separatedBy: sign).count > before }
  }

  /// The finished requests so far.
  public var accesses: [Access] {
    let text = try? String(contentsOf: directory.file("access.log"), encoding: .utf8)
    return (text ?? "").split(separator: "\n").compactMap(Self.access)
  }

  /// The log once it holds at least `count` requests: nginx writes a line after the client has its
  /// answer.
  public func accesses(waitingFor count: Int) async throws -> [Access] {
    do {
      try await poll { [self] in accesses.count >= count }
    } catch { throw Failure.didNotLog(wanted: count, found: accesses.count) }
    return accesses
  }

  /// Ends nginx and waits for it.
  public func stop() async throws { try await process.terminate() }

  private func hasStarted() async throws -> Bool {
    try? await poll { [self] in
      // why: a signal that comes before the first worker is begun is lost, and nginx waits for it for ever
      !process.isRunning
        || FileManager.default.fileExists(atPath: directory.path("nginx.pid"))
          && process.stderr.contains("start worker process")
    }
    // A child that ended leaves its reason in the pipe, which is read to its end first.
    if !process.isRunning { _ = try await process.wait() }
    return process.isRunning
  }

  private func poll(_ isDone: @escaping @Sendable () -> Bool) async throws {
    for _ in 0..<6000 {
      if isDone() { return }
      // why: another process's files and log can only be looked at again
      try await Task.sleep(nanoseconds: 5_000_000)
    }
    throw ChildProcess.Failure.timeout(
      program: "nginx", stdout: process.stdout, stderr: process.stderr)
  }

  private static func access(_ line: Substring) -> Access? {
    let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    guard fields.count == 8, let status = Int(fields[2]), let connection = Int(fields[7]) else {
      return nil
    }
    return Access(
      method: fields[0], target: fields[1], status: status, version: fields[3],
      tlsVersion: fields[4], serverName: fields[5], isResumed: fields[6] == "r",
      connection: connection)
  }

  private static func configuration(_ sites: [(Site, UInt16)]) -> String {
    let blocks = sites.enumerated().map { number, entry in
      let (site, port) = entry
      let isTLS = site.identity != nil
      let listen =
        "\(site.address):\(port)" + (isTLS ? " ssl" : "") + (isTLS && site.http2 ? " http2" : "")
      let tls =
        isTLS
        ? """
            ssl_certificate site\(number).pem;
            ssl_certificate_key site\(number).key;
            ssl_protocols \(site.protocols);
        """ : ""
      return """
        server {
            listen \(listen);
            server_name \(site.name);
        \(tls)
            \(site.directives)
        }
        """
    }
    return """
      daemon off;
      \(getuid() == 0 ? "user root;" : "")
      worker_processes 1;
      pid nginx.pid;
      error_log stderr notice;
      events { worker_connections 512; }
      http {
        default_type text/plain;
        client_body_temp_path temp_body;
        proxy_temp_path temp_proxy;
        fastcgi_temp_path temp_fastcgi;
        uwsgi_temp_path temp_uwsgi;
        scgi_temp_path temp_scgi;
        log_format test escape=none "$request_method\\t$request_uri\\t$status\\t$server_protocol\\t$ssl_protocol\\t$ssl_server_name\\t$ssl_session_reused\\t$connection";
        access_log access.log test;
      \(blocks.joined(separator: "\n"))
      }
      """
  }
}
