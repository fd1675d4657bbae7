import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport

/// The directory in which the drill's programs run. They end, and it goes, with this process, however that ends.
final class AcmePlace: Sendable {
  private let directory: TemporaryDirectory
  private let backstop: Backstop
  private let environment: [String: String]

  init() throws {
    directory = try TemporaryDirectory()
    try directory.write("", to: "pids")
    backstop = try Backstop(Self.script, [directory.path()])
    let own = ProcessInfo.processInfo.environment
    let tools = URL(filePath: try SslPinningTool.path()).deletingLastPathComponent()
    var environment = [
      "PATH": "\(tools.path(percentEncoded: false)):\(own["PATH"] ?? ""):/usr/sbin:/sbin",
      "LC_ALL": "C.UTF-8",
    ]
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
      (environment[name], environment[name.uppercased()]) = ("", "")
    }
    self.environment = environment
  }

  /// A number may be somebody else's by then.
  private static let script = """
    place=$(readlink -f "$1")
    for signal in TERM KILL; do
      while read -r pid; do
        [ "$(readlink -f "/proc/$pid/cwd")" = "$place" ] && kill -$signal "$pid"
      done <"$1/pids"
      sleep 0.5
    done
    rm -rf "$1"
    """

  func path(_ name: String = "") -> String { directory.path(name) }

  @discardableResult
  func write(_ text: String, to name: String) throws -> String {
    try directory.write(text, to: name).path(percentEncoded: false)
  }

  func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }

  /// The names in a directory; none if it is not there.
  func names(in name: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: path(name))) ?? []
  }

  func lines(of name: String) -> [String] {
    let text = try? String(contentsOfFile: path(name), encoding: .utf8)
    return text?.split(separator: "\n").map(String.init) ?? []
  }

  /// Starts a program that stays up.
  func start(
    _ arguments: [String], environment more: [String: String] = [:]
  ) throws -> ChildProcess {
    try ChildProcess(
      "/bin/sh", ["-c", #"echo $$ >>pids && exec "$@""#, "sh"] + arguments,
      environment: environment.merging(more) { _, new in new }, directory: directory.url,
      lastSignal: SIGTERM)
  }

  /// Runs a program to its end, which must be a good one.
  @discardableResult
  func run(
    _ arguments: [String], environment more: [String: String] = [:],
    mayEndWith codes: Set<Int32> = [0]
  ) async throws -> ChildProcess.Outcome {
    let end = try await start(arguments, environment: more).wait(seconds: 300)
    try show(
      codes.contains(end.exitCode),
      "\(arguments.joined(separator: " ")) ended with \(end.exitCode):\n\(end.stdout)\(end.stderr)")
    return end
  }
}

/// Debian's `pebble`, the test server of ACME's authors, and the DNS that it asks: every name is this machine.
///
/// - It checks challenges, over HTTP, and issues from a root that it makes at its start.
/// - Its own chance is switched off (`PEBBLE_WFE_NONCEREJECT`, `PEBBLE_VA_NOSLEEP`): clients repeat a call once.
final class AcmeServer: Sendable {
  /// What clients call.
  let url: String
  /// A file with the CA above the server's own certificate.
  let ca: String
  /// The root of what it issues.
  let root: Certificate
  /// Challenges are answered with what is in this directory.
  let webRoot: String
  private let processes: [ChildProcess]
  private let web: LocalHTTPServer

  init(in place: AcmePlace) async throws {
    let authority = try CertificateAuthority.makeRoot(name: "CA of the ACME server")
    let identity = try authority.issue(names: ["localhost"])
    ca = try place.write(authority.root.pem, to: "acme/ca.pem")
    _ = try identity.write(
      to: URL(filePath: place.path("acme"), directoryHint: .isDirectory), name: "server")
    webRoot = place.path("acme/web")
    let challenges = URL(filePath: webRoot, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: challenges.appending(path: ".well-known/acme-challenge"),
      withIntermediateDirectories: true)
    web = try LocalHTTPServer { request in
      let file = challenges.appending(path: request.path)
      guard let text = try? String(contentsOf: file, encoding: .utf8) else {
        return .text("no such challenge", status: 404)
      }
      return .text(text)
    }
    let ports = try freePorts(4)
    url = "https://localhost:\(ports[0])/dir"
    try place.write(
      """
      {"pebble": {"listenAddress": "127.0.0.1:\(ports[0])", "managementListenAddress": "127.0.0.1:\(ports[1])",
       "certificate": "acme/server.pem", "privateKey": "acme/server.key", "httpPort": \(web.port), "tlsPort": 9,
       "ocspResponderURL": "", "externalAccountBindingRequired": false}}
      """, to: "acme/pebble.json")
    let names = try place.start([
      "pebble-challtestsrv", "-defaultIPv6", "", "-dns01", "127.0.0.1:\(ports[2])", "-http01", "",
      "-https01", "", "-tlsalpn01", "", "-management", "127.0.0.1:\(ports[3])",
    ])
    let pebble = try place.start(
      ["pebble", "-config", "acme/pebble.json", "-dnsserver", "127.0.0.1:\(ports[2])"],
      environment: ["PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"])
    processes = [names, pebble]
    try await pebble.waitForOutput(containing: "Root CA certificate")
    let asking = Dialer.unpinned(
      .anchors([authority.root.der]), at: Int64(Date().timeIntervalSince1970))
    let rootURL = try Site.url("localhost", ports[1], "/roots/0")
    for _ in 0..<100 {
      if case .served(let pem) = await asking.dial(rootURL),
        let found = try Certificate.certificates(inPEM: pem).first
      {
        root = found
        return
      }
      try await Task.sleep(for: .milliseconds(100))
    }
    throw Inconclusive("pebble does not answer: \(pebble.stderr)\(pebble.stdout)")
  }
}
