import CanonicalJSON
import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import ssl_pinning_lab

/// The proxy as a program, in front of a real server and real clients.
@Suite("lab proxy")
struct LabProxyTests {
  private static let host = "shop.localhost"

  /// A server, and a proxy in the way to it.
  private struct Desk {
    let directory: TemporaryDirectory
    let server: LocalTLSServer
    let proxy: ChildProcess
    let port: Int64
    let bundle: String

    /// The CA of the server, the file of which is `real.pem`.
    init(_ arguments: String...) async throws {
      directory = try TemporaryDirectory()
      let authority = try CertificateAuthority.makeRoot(name: "Real root")
      server = try LocalTLSServer(identity: authority.issue(names: [host])) { _ in .text("hello") }
      try directory.write(authority.root.pem, to: "real.pem")
      proxy = try ChildProcess(
        BuiltProgram.path("ssl-pinning-lab"),
        ["lab", "proxy", "--listen", "127.0.0.1:0", "--json", "--dir", directory.path("ca")]
          + arguments)
      try await proxy.waitForOutput(containing: "\n")
      let line = try JSONValue(parsing: Array(proxy.stdout.utf8.prefix { $0 != 0x0a })).objectValue
      let place = try #require(line?["listening"]?.stringValue)
      port = try #require(Int64(place.split(separator: ":").last ?? ""))
      #expect(line?["ca"]?.stringValue == directory.path("ca/ca.pem"))
      bundle = directory.path("both.pem")
      let both = try ["real.pem", "ca/ca.pem"].map { name in
        try String(contentsOf: directory.file(name), encoding: .utf8)
      }
      try directory.write(both.joined(), to: "both.pem")
    }

    var url: String { "https://\(host):\(server.port)/account?token=secret" }

    func curl(_ arguments: String..., to url: String? = nil) async throws -> ChildProcess.Outcome {
      try await ChildProcess.run(
        "curl",
        ["-sS", "--max-time", "30", "--noproxy", "", "--proxy", "http://127.0.0.1:\(port)"]
          + arguments + [url ?? self.url])
    }

    /// Ends the proxy.
    ///
    /// - Returns: its exit code, the connections and the sum.
    func end() async throws -> (Int32, [JSONObject], JSONObject) {
      let outcome = try await proxy.terminate(signal: SIGINT)
      let lines = try outcome.stdout.split(separator: "\n").compactMap {
        try JSONValue(parsing: Array($0.utf8)).objectValue
      }
      let sum = try #require(lines.last?["summary"]?.objectValue)
      #expect(!outcome.stdout.contains("secret"), "what passes is not printed")
      return (outcome.exitCode, lines.dropFirst().dropLast().map { $0 }, sum)
    }
  }

  @Test(
    "lets nobody but the tester see what passes: a client that trusts his CA is read, and served")
  func letIn() async throws {
    let desk = try await Desk("--must-refuse", Self.host)
    let answer = try await desk.curl("--cacert", desk.directory.path("ca/ca.pem"))
    #expect(answer.stdout == "hello", "\(answer.stderr)")
    let (code, connections, sum) = try await desk.end()
    #expect(code == 1)
    #expect(connections.count == 1)
    #expect(connections.first?["outcome"] == .string("let-in"))
    #expect(connections.first?["sent"] == .string("GET"))
    #expect(connections.first?["sni"] == .string(Self.host))
    let must = sum["mustRefuse"]?.arrayValue?.first?.objectValue
    #expect(must?["result"] == .string("let-in"))
  }

  @Test(
    "says of a client that refuses how it did, and ends with 0",
    arguments: [
      ("intercept", "real.pem", 60, "refused", "unknown CA"),
      ("self-signed", "both.pem", 60, "refused", "unknown CA"),
      ("expired", "both.pem", 60, "refused", "certificate expired"),
      // These two look at the name and at the pin when the handshake is over.
      ("wrong-name", "both.pem", 60, "closed", nil),
      ("intercept --pinned", "both.pem", 90, "closed", nil),
    ] as [(String, String, Int32, String, String?)])
  func refused(
    mode: String, anchors: String, exit: Int32, outcome: String, alert: String?
  ) async throws {
    let words = mode.split(separator: " ").map(String.init)
    let desk = try await Desk("--mode", words[0], "--must-refuse", "*.localhost")
    let pin = try SPKIPin(certificateDER: desk.server.identity.leaf.der).base64
    let pinned = words.count > 1 ? ["--pinnedpubkey", "sha256//\(pin)"] : []
    let answer = try await ChildProcess.run(
      "curl",
      ["-sS", "--noproxy", "", "--proxy", "http://127.0.0.1:\(desk.port)", "--cacert"]
        + [desk.directory.path(anchors)] + pinned + [desk.url])
    #expect(answer.exitCode == exit, "\(answer.stderr)")
    #expect(desk.server.counts.connections == 0)
    // The client may be gone before the proxy has said how it left.
    try await desk.proxy.waitForOutput(containing: "\"outcome\"")
    let (code, connections, _) = try await desk.end()
    #expect(code == 0)
    #expect(connections.map { $0["outcome"] } == [.string(outcome)])
    #expect(connections.first?["alert"] == (alert.map(JSONValue.string) ?? .null))
  }

  @Test(
    "an app of this SDK that trusts both CAs refuses him, and is served where he passes it through")
  func ownClient() async throws {
    for (mode, isServed) in [("intercept", false), ("pass", true)] {
      let desk = try await Desk("--mode", mode)
      let keys = desk.directory.path("tls")
      let tool = try BuiltProgram.path("ssl-pinning")
      let made = try await ChildProcess.run(tool, ["keys", "generate", "--out", keys])
      #expect(made.exitCode == 0, "\(made.stderr)")
      let pin = try SPKIPin(certificateDER: desk.server.identity.leaf.der).base64
      try desk.directory.write(
        #"{"keys":[{"domainName":"\#(Self.host)","key":"\#(pin)"}]}"#, to: "payload.json")
      let signed = try await ChildProcess.run(
        tool, ["sign", "--key", keys + "/prv.pem", desk.directory.path("payload.json")])
      #expect(signed.exitCode == 0, "\(signed.stderr)")
      try desk.directory.write(signed.stdout, to: "registry.json")
      let got = try await ChildProcess.run(
        tool,
        [
          "get", "--registry", desk.directory.path("registry.json"), "--key", keys + "/pub.pem",
          "--ca", desk.bundle, desk.url,
        ],
        environment: [
          "https_proxy": "http://127.0.0.1:\(desk.port)", "no_proxy": "", "NO_PROXY": "",
        ])
      #expect((got.exitCode == 0) == isServed, "\(got.stdout)\(got.stderr)")
      #expect(got.stderr.contains("the server's key is not pinned") != isServed)
      let (code, connections, _) = try await desk.end()
      #expect(code == 0)
      #expect(connections.map { $0["outcome"] } == [.string(isServed ? "passed" : "refused")])
    }
  }

  @Test("other hosts are passed through unread, and a host that never came proves nothing")
  func others() async throws {
    let desk = try await Desk("--host", "bank.localhost", "--must-refuse", "bank.localhost")
    let answer = try await desk.curl("--cacert", desk.directory.path("real.pem"))
    #expect(answer.stdout == "hello", "\(answer.stderr)")
    let (code, connections, sum) = try await desk.end()
    #expect(code == 3)
    #expect(connections.map { $0["outcome"] } == [.string("passed")])
    let must = sum["mustRefuse"]?.arrayValue?.first?.objectValue
    #expect(must?["result"] == .string("never-tried"))
  }

  @Test("a request in clear text was read, and goes no further")
  func clearText() async throws {
    let desk = try await Desk("--must-refuse", Self.host)
    let answer = try await desk.curl(
      "-o", "/dev/null", "-w", "%{http_code}", to: "http://\(Self.host)/a")
    #expect(answer.stdout == "502")
    let (code, connections, _) = try await desk.end()
    #expect(code == 1)
    #expect(connections.map { $0["outcome"] } == [.string("clear-text")])
  }

  @Test(
    "a request in clear text was read in a tunnel as well, whatever the app refused beside it",
    arguments: ["intercept", "interrupt"])
  func clearTextInTunnel(mode: String) async throws {
    let desk = try await Desk("--mode", mode, "--must-refuse", Self.host)
    _ = try await desk.curl("--proxytunnel", to: "http://\(Self.host)/a")
    _ = try await desk.curl("--cacert", desk.directory.path("real.pem"))
    let (code, connections, _) = try await desk.end()
    #expect(code == 1)
    #expect(connections.first?["outcome"] == .string("clear-text"))
    #expect(connections.first?["sent"] == .string("GET"))
  }

  @Test("a handshake that fails for want of a cipher in common says nothing of the client")
  func ownAlert() async throws {
    let desk = try await Desk("--must-refuse", Self.host)
    _ = try await ChildProcess.run(
      "openssl",
      [
        "s_client", "-proxy", "127.0.0.1:\(desk.port)", "-connect", "\(Self.host):443", "-tls1_2",
        "-cipher", "AES128-SHA",
      ])
    let (code, connections, _) = try await desk.end()
    #expect(code == 3)
    #expect(connections.map { $0["outcome"] } == [.string("unclear")])
  }

  @Test("the commands of docs/lab.md are understood")
  func documented() throws {
    let page = try String(
      contentsOf: Vectors.package.appending(path: "docs/lab.md"), encoding: .utf8)
    let commands = page.split(separator: "\n").filter { $0.contains("ssl-pinning-lab lab proxy") }
      .compactMap { $0.split(separator: "#").first?.split(separator: " ").dropFirst(3) }
    #expect(commands.count == 5)
    for words in commands {
      let arguments = words.map { $0.filter { $0 != "'" } }
      #expect(throws: Never.self, "\(arguments)") { _ = try ProxyOptions(arguments) }
    }
  }

  @Test("cuts connections off, which says nothing of the client")
  func interrupted() async throws {
    let desk = try await Desk("--mode", "interrupt", "--must-refuse", Self.host)
    #expect(try await desk.curl("--cacert", desk.bundle).exitCode == 35)
    let (code, connections, _) = try await desk.end()
    #expect(code == 3)
    #expect(connections.map { $0["outcome"] } == [.string("interrupted")])
  }

  @Test("hands its CA out, keeps it in a directory of the tester's, and its key is nobody else's")
  func authority() async throws {
    let desk = try await Desk()
    let answer = try await ChildProcess.run(
      "curl",
      [
        "-sS", "--noproxy", "*", "http://127.0.0.1:\(desk.port)/ca.cer", "-o",
        desk.directory.path("got"),
      ])
    #expect(answer.exitCode == 0, "\(answer.stderr)")
    // As a device asks whose proxy is set already.
    let place = "http://127.0.0.1:\(desk.port)"
    let asked = try await ChildProcess.run(
      "curl",
      [
        "-sS", "--fail", "--noproxy", "", "--proxy", place, place + "/ca.cer", "-o",
        desk.directory.path("again"),
      ])
    #expect(asked.exitCode == 0, "\(asked.stderr)")
    #expect(
      try Data(contentsOf: desk.directory.file("again"))
        == Data(contentsOf: desk.directory.file("got")))
    let pem = try String(contentsOf: desk.directory.file("ca/ca.pem"), encoding: .utf8)
    let root = try #require(try Certificate.certificates(inPEM: pem).first)
    #expect(try Data(contentsOf: desk.directory.file("got")) == Data(root.der))
    for (name, mode) in [("ca", 0o700), ("ca/ca.key", 0o600)] {
      let found = try FileManager.default.attributesOfItem(atPath: desk.directory.path(name))
      #expect(found[.posixPermissions] as? Int == mode)
    }
    _ = try await desk.end()
    let again = try await ChildProcess.run(
      BuiltProgram.path("ssl-pinning-lab"),
      [
        "lab", "proxy", "--listen", "127.0.0.1:0", "--for", "100ms", "--dir",
        desk.directory.path("ca"),
      ])
    #expect(again.exitCode == 0)
    #expect(again.stdout.hasSuffix("\nnobody came\n"), "\(again.stdout)\(again.stderr)")
    #expect(try String(contentsOf: desk.directory.file("ca/ca.pem"), encoding: .utf8) == pem)
    let own = try await ChildProcess.run(
      BuiltProgram.path("ssl-pinning-lab"),
      [
        "lab", "proxy", "--listen", "127.0.0.1:0", "--for", "100ms", "--json", "--ca",
        desk.directory.path("ca/ca.pem"), "--ca-key", desk.directory.path("ca/ca.key"),
      ])
    #expect(own.stdout.contains(#""ca":"\#(desk.directory.path("ca/ca.pem"))""#), "\(own.stderr)")
  }

  @Test(
    "listens on this machine or on a private address that is named, and nowhere else",
    arguments: [
      ("127.0.0.1:8080", true), ("localhost:0", true), ("[::1]:1", true),
      ("192.168.1.20:8080", true),
      ("10.1.2.3:8080", true), ("172.16.0.1:1", true), ("172.31.0.1:1", true),
      ("169.254.1.1:1", true),
      ("100.64.0.1:1", true), ("[fd00::1]:8080", true), ("0.0.0.0:8080", false), (":8080", false),
      ("[::]:8080", false), ("8.8.8.8:8080", false), ("172.32.0.1:1", false),
      ("100.128.0.1:1", false),
      ("192.169.0.1:1", false), ("[2001:db8::1]:8080", false), ("desk.example:8080", false),
      ("192.168.1.20", false),
    ])
  func listening(place: String, isTaken: Bool) {
    #expect(((try? ProxyOptions(["--listen", place])) != nil) == isTaken)
  }

  @Test("refuses what cannot be meant")
  func usage() {
    for arguments in [
      ["--mode", "other"], ["--host"], ["--host", "*"], ["--for", "10"], ["--for", "0s"],
      ["--other", "a"],
      ["--ca", "a"], ["--ca-key", "a"], ["--ca", "a", "--ca-key", "b", "--dir", "c"], ["extra"],
    ] {
      #expect(throws: ProxyOptions.WrongUsage.self, "\(arguments)") {
        _ = try ProxyOptions(arguments)
      }
    }
    #expect(throws: Never.self) {
      _ = try ProxyOptions(["--host", "*.example.com", "--for", "10m", "--json", "--mode", "pass"])
    }
  }

  @Test("a host that must refuse and let somebody in is found among any number of others")
  func crowded() {
    guard let host = try? HostPattern("bank.example") else { return }
    var summary = ProxySummary(mustRefuse: [host])
    for number in 0..<2000 {
      summary.add(
        .init(
          number: number, host: "h\(number).example", port: 443, serverName: nil, outcome: .passed))
    }
    let held = LabProxy.Connection(
      number: 2000, host: "BANK.example.", port: 443, serverName: nil, outcome: .refused(alert: nil)
    )
    summary.add(held)
    #expect(summary.exitCode == 0)
    summary.add(
      .init(
        number: 2001, host: "bank.example", port: 443, serverName: nil, outcome: .letIn(sent: "GET")
      ))
    summary.add(held)
    #expect(summary.exitCode == 1)
    #expect(summary.lines.first == "let the attacker in: further hosts (1)")
  }
}
