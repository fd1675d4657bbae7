import FaultLab
import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("get through a proxy")
struct GetProxyTests {
  @Test("shows the server's status and fields, and nothing of the proxy's answer to CONNECT")
  func answer() async throws {
    let stage = try GetStage { _ in
      HTTPResponse(status: 404, headers: [HTTPField("X-From", "the server")], body: [0x0A])
    }
    let proxy = try InterceptingProxy.tunnelling()
    defer { proxy.stop() }
    let direct = try await stage.get(stage.url(), ["--include", "--fail"])
    let through = try await stage.get(
      stage.url(), ["--include", "--fail"],
      environment: ["https_proxy": "http://127.0.0.1:\(proxy.port)"])
    #expect(direct.stdout.contains("404") && direct.stdout.contains("the server"))
    func lines(_ outcome: ChildProcess.Outcome) -> [String] {
      outcome.stdout.split(separator: "\n").filter { !$0.lowercased().hasPrefix("date:") }
        .map(String.init).sorted()
    }
    #expect(lines(through) == lines(direct), "\(through.stderr)")
    #expect(through.exitCode == direct.exitCode && through.exitCode == 1)
    #expect(proxy.tunnels.map(\.port) == [stage.server.port])
  }

  @Test("is refused where the proxy speaks TLS itself under a key that is not the server's")
  func secureProxy() async throws {
    let stage = try GetStage()
    let proxy = try LocalTLSServer(identity: stage.authority.issue(names: ["localhost"])) { _ in
      .text("read by the proxy")
    }
    let outcome = try await stage.get(
      stage.url(), environment: ["https_proxy": "https://localhost:\(proxy.port)"])
    #expect(outcome.exitCode == 1 && outcome.rule == "leaf-pin", "\(outcome.stderr)")
    #expect(await proxy.waitUntilIdle())
    #expect(proxy.counts.applicationBytesReceived == 0)
    #expect(stage.server.counts.connections == 0)
  }
}
