import CanonicalJSON
import FaultLab
import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("What a user is told, in words of the tool")
struct WordingTests {
  @Test("a refused chain points to the flags, not to the library's names")
  func chain() async throws {
    let stage = try GetStage()
    let outcome = try await stage.get(stage.url(), trust: [])
    #expect(outcome.exitCode == 1 && outcome.rule == "chain")
    #expect(outcome.stderr.contains("hint: --ca FILE"), "\(outcome.stderr)")
    // No hint leads to a weaker mode.
    #expect(!outcome.stderr.contains("pinned-keys-only"))
    #expect(!outcome.stderr.contains(".anchors"))
    let json = try await stage.get(stage.url(), trust: [], ["--json"])
    let reason = try #require(try json.json.objectValue?["reason"]?.stringValue)
    #expect(reason.contains("--ca FILE") && !reason.contains("inned"))
  }

  @Test("an unlisted host and clear text point to what can be done here")
  func otherVerdicts() async throws {
    let stage = try GetStage()
    let unlisted = try await stage.get(stage.url(host: "unlisted.localhost"))
    #expect(unlisted.stderr.contains("; hint: add the host to the registry\n"))
    let clear = try await stage.get("http://localhost:\(stage.server.port)/")
    #expect(clear.stderr.contains("; hint: use https\n"), "\(clear.stderr)")
  }

  @Test("a port without TLS is called so, with host and port", arguments: ["server", "registry"])
  func notTLS(what: String) async throws {
    let stage = try GetStage()
    let clear = try LocalHTTPServer { _ in .text("clear") }
    let url = "https://localhost:\(clear.port)/r.json"
    let outcome =
      what == "server"
      ? try await stage.get(url) : try await stage.get(stage.url(), registry: url)
    #expect(outcome.exitCode == 3)
    #expect(
      outcome.stderr.contains("no TLS on localhost:\(clear.port); hint:"), "\(outcome.stderr)")
    #expect(!outcome.stderr.contains("error:"))
    guard what == "registry" else { return }
    let verify = try await Tool.run("verify", "--key", stage.directory.path("pub.pem"), url)
    #expect(verify.exitCode == 3)
    #expect(verify.stderr.contains("no TLS on localhost:\(clear.port); hint:"))
  }

  @Test("a registry that redirects to clear text is called so", arguments: ["http", "ftp"])
  func redirect(scheme: String) async throws {
    let stage = try GetStage()
    let server = try LocalTLSServer(identity: stage.identity) { _ in
      .redirect(to: "\(scheme)://localhost:1/r.json")
    }
    let url = "https://localhost:\(server.port)/r.json"
    let get = try await stage.get(stage.url(), registry: url)
    let verify = try await Tool.run(
      "verify", "--key", stage.directory.path("pub.pem"), "--ca", stage.directory.path("ca.pem"),
      url)
    for outcome in [get, verify] {
      #expect(outcome.exitCode == 3)
      #expect(
        outcome.stderr.contains("localhost:\(server.port) redirects to \(scheme); hint:"),
        "\(outcome.stderr)")
      #expect(!outcome.stderr.contains("libcurl"))
    }
  }

  @Test("a registry behind an unknown CA points to --ca")
  func untrustedRegistry() async throws {
    let stage = try GetStage()
    let server = try LocalTLSServer(identity: stage.identity) { _ in .text("{}") }
    let url = "https://localhost:\(server.port)/r.json"
    let outcome = try await Tool.run("verify", "--key", stage.directory.path("pub.pem"), url)
    #expect(outcome.exitCode == 3)
    #expect(
      outcome.stderr.contains("localhost:\(server.port) is not trusted")
        && outcome.stderr.contains("hint: --ca FILE"), "\(outcome.stderr)")
  }
}
