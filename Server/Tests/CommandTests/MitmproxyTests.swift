import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A stock mitmproxy whose CA the client trusts")
struct MitmproxyTests {
  @Test("reads an unpinned request, and not a byte of a pinned one", arguments: ["file", "URL"])
  func manInTheMiddle(registryBy: String) async throws {
    let stage = try GetStage()
    let registryServer = try LocalHTTPServer {
      [bytes = try Data(contentsOf: URL(filePath: stage.registry))] _ in
      HTTPResponse(body: [UInt8](bytes))
    }
    defer { registryServer.stop() }
    let registry =
      registryBy == "file" ? stage.registry : "http://127.0.0.1:\(registryServer.port)/r.json"
    let proxy = try await Mitmproxy(upstreamCA: stage.directory.path("ca.pem"))
    // Whoever trusts this file trusts the attacker and the server's own CA.
    let both =
      try String(contentsOf: proxy.caCertificate, encoding: .utf8) + stage.authority.root.pem
    let ca = try stage.directory.write(both, to: "both.pem").path(percentEncoded: false)

    func curl(_ path: String) async throws -> ChildProcess.Outcome {
      try await ChildProcess.run(
        "curl", ["-sS", "--cacert", ca, "-x", proxy.url, stage.url(path)],
        environment: ["no_proxy": "", "NO_PROXY": ""])
    }
    func get(_ path: String, throughProxy: Bool) async throws -> ChildProcess.Outcome {
      try await stage.get(
        stage.url(path), registry: registry, trust: ["--ca", ca],
        environment: throughProxy ? ["https_proxy": proxy.url] : [:])
    }

    // The controls: he reads what is not pinned, and without him the pinned request is served.
    let unpinned = try await curl("/control")
    #expect(unpinned.stdout == "hello\n", "\(unpinned.stderr)")
    try await proxy.waitForLog(containing: "/control")
    #expect(try await get("/direct", throughProxy: false).stdout == "hello\n")
    let served = stage.server.requests.count

    let outcome = try await get("/secret", throughProxy: true)
    #expect(outcome.exitCode == 1)
    #expect(outcome.stdout.isEmpty)
    #expect(outcome.rule == "leaf-pin", "\(outcome.stderr)")
    #expect(outcome.stderr.contains("localhost"))
    #expect(outcome.stderr.contains(try stage.pin))
    // mitmproxy makes all its certificates with the key of its CA.
    let hisPin = try await Tool.run("pin", proxy.caCertificate.path(percentEncoded: false))
    #expect(outcome.stderr.contains(hisPin.stdout.prefix(44)))

    // He works still; and what he read since the control is the next unpinned request alone.
    #expect(try await curl("/after").stdout == "hello\n")
    try await proxy.waitForLog(containing: "/after")
    #expect(proxy.log.components(separatedBy: "GET ").count == 3)
    #expect(!proxy.log.contains("/secret"))
    #expect(stage.server.requests.dropFirst(served).map(\.path) == ["/after"])
    try await proxy.stop()
  }
}
