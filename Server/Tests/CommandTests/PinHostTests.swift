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
