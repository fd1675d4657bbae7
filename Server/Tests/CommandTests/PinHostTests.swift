import CanonicalJSON
import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("pin, of servers")
struct PinHostTests {
  /// A server and what is wrong with it.
  enum Server: String, CaseIterable {
    case trusted, unknownCA, selfSigned, expired, wrongName

    /// What the complaint has to contain; `nil` where there is none.
    var complaint: String? {
      switch self {
      case .trusted: nil
      case .unknownCA: "unable to get"
      case .selfSigned: "self-signed"
      case .expired: "expired"
      case .wrongName: "not for localhost"
      }
    }

    func identity(_ authority: CertificateAuthority) throws -> ServerIdentity {
      switch self {
      case .trusted, .unknownCA: try authority.issue(names: ["localhost"])
      case .selfSigned: try ServerIdentity.selfSigned(names: ["localhost"])
      case .expired:
        try authority.issue(
          names: ["localhost"],
          validity: Validity(notBefore: 1_600_000_000, notAfter: 1_600_086_400))
      case .wrongName: try authority.issue(names: ["other.localhost"])
      }
    }
  }

  @Test("shows a server's pins, and what is wrong with it", arguments: Server.allCases)
  func pins(kind: Server) async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
      .issueIntermediate(name: "Middle")
    let identity = try kind.identity(authority)
    let server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    let ca = try directory.write(authority.root.pem, to: "ca.pem").path(percentEncoded: false)
    let target = "localhost:\(server.port)"
    let line = ["pin", target] + (kind == .unknownCA ? [] : ["--ca", ca])

    let outcome = try await Tool.run(line)
    #expect(outcome.exitCode == 0)
    let sent = [identity.leaf] + identity.intermediates
    // A name does not belong to the path: it is valid all the same.
    let hasPath = kind == .trusted || kind == .wrongName
    let shown = hasPath ? sent + [authority.root] : sent
    let pins = try shown.map { try SPKIPin(certificateDER: $0.der).base64 }
    let rows = outcome.stdout.split(separator: "\n").map {
      $0.split(separator: " ").map(String.init)
    }
    #expect(rows.map(\.first) == pins)
    #expect(rows.first?.dropFirst().first == "leaf")
    if let complaint = kind.complaint {
      #expect(outcome.stderr.contains("not trusted") && outcome.stderr.contains(complaint))
    } else {
      #expect(outcome.stderr.isEmpty)
    }

    let json = try await Tool.run(line + ["--json"])
    let report = try #require(try json.json.arrayValue?.first?.objectValue)
    #expect(report["trusted"] == .bool(kind == .trusted))
    #expect(report["nameMatches"] == .bool(kind != .wrongName))
    #expect(report["presented"]?.arrayValue?.count == sent.count)
    #expect((report["validated"]?.arrayValue?.count ?? 0) == (hasPath ? 3 : 0))
    #expect(report["tlsVersion"] == .string("TLSv1.3"))
    // Nothing but the handshake was sent.
    #expect(server.counts.applicationBytesReceived == 0)
  }

  @Test(
    "ends with 3 in time where there is no server to look at",
    arguments: ["silent", "nobody", "clear text", "no such name"])
  func noServer(kind: String) async throws {
    let silent = try SilentPort()
    let clear = try LocalHTTPServer { _ in .text("hello") }
    let gone = try ClosedPort()
    let target =
      switch kind {
      case "silent": "127.0.0.1:\(silent.port)"
      case "nobody": "127.0.0.1:\(gone.port)"
      case "clear text": "localhost:\(clear.port)"
      default: "no-such-host.invalid"
      }
    let outcome = try await Tool.run(["pin", "--timeout", "1.5", target], seconds: 15)
    #expect(outcome.exitCode == 3, "\(outcome.stderr)")
    #expect(outcome.stdout.isEmpty)
    #expect(outcome.stderr.contains(target) && outcome.stderr.contains(": "))
  }

  @Test(
    "refuses what is neither a file nor a server",
    arguments: [
      "https://localhost/", "a b", "localhost:0", "localhost:99999", "localhost:+443",
      "localhost:", "[::1", "*.example.com", ":443", "\u{fc}.example",
    ])
  func neither(target: String) async throws {
    let outcome = try await Tool.run("pin", target)
    #expect(outcome.exitCode == 2)
    #expect(outcome.speaksProperly && outcome.stderr.contains("hint:"))
  }

  @Test("never dials a name that is meant as a file", arguments: ["cert.pem", "./x", "a/b:443"])
  func missingFile(target: String) async throws {
    let outcome = try await Tool.run("pin", target)
    #expect(outcome.exitCode == 3)
    #expect(outcome.stderr.contains("no such file"))
  }

  @Test("reads the file where a file has the name of a server")
  func filesFirst() async throws {
    let identity = try ServerIdentity.selfSigned(names: ["localhost"])
    try await withTemporaryDirectory { directory in
      try directory.write(identity.leaf.pem, to: "localhost")
      let outcome = try await ChildProcess.run(
        Tool.path(), ["pin", "localhost"], directory: directory.url)
      #expect(outcome.stdout.hasPrefix(try SPKIPin(certificateDER: identity.leaf.der).base64))
    }
  }

  @Test("takes IPv6 addresses in brackets")
  func ipv6() async throws {
    // Nobody listens on port 1; what counts is where it dialled.
    let outcome = try await Tool.run(["pin", "--timeout", "5", "[::1]:1"], seconds: 15)
    #expect(outcome.exitCode == 3)
    #expect(outcome.stderr.contains("[::1]:1"))
  }
}

@Suite("pin --all")
struct PinAllTests {
  @Test("shows each address of a server with each kind of key, side by side")
  func sideBySide() async throws {
    let directory = try TemporaryDirectory()
    // 127.0.0.1 has an RSA and an ECDSA key, ::1 an Ed25519 key of its own.
    let both = try await CheckTests.TwoKeys.start(in: directory, days: 10)
    defer { both.process.send(SIGTERM) }
    let authority = try CertificateAuthority.makeRoot(name: "Other")
    let identity = try authority.issue(names: ["localhost"], algorithm: .ed25519)
    let files = try identity.write(to: directory.url, name: "own")
    let alone = try ChildProcess(
      "openssl",
      [
        "s_server", "-accept", "[::1]:\(both.port)", "-www", "-quiet", "-cert",
        files.certificates.path(percentEncoded: false), "-key",
        files.key.path(percentEncoded: false),
      ])
    defer { alone.send(SIGTERM) }
    func run(_ more: String...) async throws -> ChildProcess.Outcome {
      try await Tool.run(["pin", "--all", "localhost:\(both.port)", "--ca", both.ca] + more)
    }
    // They may not listen yet.
    for _ in 0..<50 where try await run().exitCode == 3 {}
    let outcome = try await run()
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    let rows = outcome.stdout.split(separator: "\n").map {
      $0.split(separator: " ", omittingEmptySubsequences: true).prefix(4).map(String.init)
    }
    let own = try SPKIPin(certificateDER: identity.leaf.der).base64
    #expect(
      rows == [
        ["127.0.0.1:\(both.port)", "ECDSA", try #require(both.pins["ECDSA"]), "trusted"],
        ["127.0.0.1:\(both.port)", "RSA", try #require(both.pins["RSA"]), "trusted"],
        ["[::1]:\(both.port)", "EdDSA", own, "not"],
      ])
    #expect(
      outcome.stderr == "warning: [::1]:\(both.port) has other keys than 127.0.0.1:\(both.port)\n")
    let json = try #require(try await run("--json").json.arrayValue?.first?.objectValue)
    #expect(json["alike"] == .bool(false))
    let addresses = try #require(json["addresses"]?.arrayValue)
    #expect(addresses.map { $0.objectValue?["keys"]?.arrayValue?.count } == [2, 1])
  }

  @Test("an address that cannot be asked is exit code 3, beside one that can")
  func silentAddress() async throws {
    let directory = try TemporaryDirectory()
    let server = try await CheckTests.TwoKeys.start(in: directory, days: 10)
    defer { server.process.send(SIGTERM) }
    func run() async throws -> ChildProcess.Outcome {
      try await Tool.run("pin", "--all", "localhost:\(server.port)", "--ca", server.ca)
    }
    // It may not listen yet.
    for _ in 0..<50 where try await !run().stdout.contains("ECDSA") {}
    let outcome = try await run()
    #expect(outcome.exitCode == 3)
    #expect(outcome.stdout.contains("[::1]:\(server.port)"))
    let one = try await Tool.run("pin", "--all", "127.0.0.1:\(server.port)", "--ca", server.ca)
    #expect(one.exitCode == 0)
    // It has no name for the address.
    #expect(one.stdout.contains("not trusted: "))
    let file = try await Tool.run("pin", "--all", server.ca)
    #expect(file.exitCode == 2)
    let nowhere = try await Tool.run("pin", "--all", "no-such-host.invalid")
    #expect(nowhere.exitCode == 3)
  }
}
