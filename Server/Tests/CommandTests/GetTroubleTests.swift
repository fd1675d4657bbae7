import FaultLab
import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("get, where the network gives no answer")
struct GetTroubleTests {
  /// What goes wrong at a server.
  enum Trouble: String, CaseIterable {
    case nobodyListens, silent, hangsUp, endlessBody, drip, slowHead, notHTTP

    var response: HTTPResponse {
      let text = Array("0123456789".utf8)
      return switch self {
      case .endlessBody: HTTPResponse(body: text, delivery: .endless(pauseMilliseconds: 5))
      case .drip:
        HTTPResponse(
          body: Array(repeating: 0x20, count: 1000),
          delivery: .drip(pieceBytes: 1, pauseMilliseconds: 200))
      case .slowHead: HTTPResponse(body: text, delayMilliseconds: 20_000)
      case .notHTTP: HTTPResponse(body: Array("garbage\n\n".utf8), delivery: .verbatim)
      case .nobodyListens, .silent, .hangsUp: HTTPResponse(delivery: .hangUp)
      }
    }
  }

  @Test("ends with 3 in time where the server does not answer", arguments: Trouble.allCases)
  func server(trouble: Trouble) async throws {
    let stage = try GetStage { _ in trouble.response }
    var url = stage.url()
    let silent = try SilentPort()
    if trouble == .silent { url = "https://localhost:\(silent.port)/" }
    if trouble == .nobodyListens { stage.server.stop() }
    let outcome = try await stage.get(url, ["--timeout", "1.5"], seconds: 15)
    #expect(outcome.exitCode == 3, "\(outcome.stderr)")
    #expect(outcome.speaksProperly || outcome.stderr.hasPrefix("https://"), "\(outcome.stderr)")
    #expect(outcome.rule == nil)
  }

  @Test("ends with 3 in time where the registry does not answer", arguments: Trouble.allCases)
  func registry(trouble: Trouble) async throws {
    let stage = try GetStage()
    let registry = try LocalHTTPServer { _ in trouble.response }
    let silent = try SilentPort()
    var url = "http://127.0.0.1:\(registry.port)/r.json"
    if trouble == .silent { url = "http://127.0.0.1:\(silent.port)/r.json" }
    if trouble == .nobodyListens { registry.stop() }
    let outcome = try await stage.get(
      stage.url(), registry: url, ["--timeout", "1.5"], seconds: 15)
    #expect(outcome.exitCode == 3, "\(outcome.stderr)")
    #expect(stage.server.counts.connections == 0)

    let verify = try await Tool.run(
      ["verify", "--key", stage.directory.path("pub.pem"), "--timeout", "1.5", url], seconds: 15)
    #expect(verify.exitCode == 3, "\(verify.stderr)")
    #expect(verify.stdout.isEmpty)
  }

  @Test("ends with 3 where the registry answers with an error", arguments: [404, 500])
  func status(code: Int) async throws {
    let stage = try GetStage()
    let registry = try LocalHTTPServer { _ in .text("{}", status: code) }
    let url = "http://127.0.0.1:\(registry.port)/r.json"
    let outcome = try await stage.get(stage.url(), registry: url)
    #expect(outcome.exitCode == 3 && outcome.stderr.contains("\(code)"))
    let verify = try await Tool.run("verify", "--key", stage.directory.path("pub.pem"), url)
    #expect(verify.exitCode == 3 && verify.stderr.contains("\(code)"))
  }

  @Test("verifies a registry that it fetches")
  func verifyURL() async throws {
    let stage = try GetStage()
    let document = [UInt8](try Data(contentsOf: URL(filePath: stage.registry)))
    let key = stage.directory.path("pub.pem")
    let clear = try LocalHTTPServer { _ in HTTPResponse(body: document) }
    let url = "http://127.0.0.1:\(clear.port)/r.json"
    #expect(try await Tool.run("verify", "--key", key, url).exitCode == 0)
    let secure = try LocalTLSServer(identity: stage.identity) { _ in HTTPResponse(body: document) }
    let https = "https://localhost:\(secure.port)/r.json"
    let ca = stage.directory.path("ca.pem")
    #expect(try await Tool.run("verify", "--key", key, "--ca", ca, https).exitCode == 0)
    #expect(try await Tool.run("verify", "--key", key, https).exitCode == 3)
    let elsewhere = try await Tool.run("verify", "--key", key, "http://registry.example/r.json")
    #expect(elsewhere.exitCode == 2)
  }
}
