import Foundation
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Listeners, and what strangers are told", .timeLimit(.minutes(2))) struct ListenerTests {
  private static let file = "www.example.com.json"

  private static func text(_ address: ListenAddress?, _ path: String, token: String? = nil)
    async throws -> (status: Int, body: String)
  {
    let headers = token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
    let answer = try await HTTPProbe.fetch(
      "http://\(try #require(address))\(path)", headers: headers)
    return (answer.status, String(decoding: answer.body, as: UTF8.self))
  }

  @Test("metrics have a listener of their own where one is configured, and are nowhere else")
  func metrics() async throws {
    let service = try await AdministeredService.running(
      more: "metrics: {listen: '127.0.0.1:0'}")
    let (own, other) = (
      service.scripted.service.metricsAddress, service.scripted.service.address
    )
    #expect(own != other)
    #expect(try await Self.text(own, "/metrics").body.contains("ssl_pinning_leader 1"))
    #expect(try await Self.text(other, "/metrics").status == 404)
    #expect(try await Self.text(own, "/api/v1/\(Self.file)").status == 404)
    #expect(try await Self.text(own, "/api/v1/admin/session").status == 404)
    #expect(try await Self.text(other, "/api/v1/\(Self.file)").status == 200)
    for path in ["/livez", "/readyz", "/startupz", "/health/liveness", "/health/readiness"] {
      #expect(try await Self.text(own, path).status == 200, "\(path)")
      #expect(try await Self.text(other, path).status == 200, "\(path)")
    }
    await service.stop()
  }

  @Test(
    "take as many connections as the limit of open files leaves beside probes, and no more than they should",
    arguments: [
      // The limit, all connections that are wanted; what documents and metrics take of them.
      (65_536, 1024, 1024, 128), (1924, 1024, 1024, 128), (1923, 1024, 1023, 127),
      (1524, 1024, 624, 78), (1012, 1024, 112, 48), (948, 1024, 48, 48), (256, 1024, 48, 48),
      (0, 1024, 48, 48), (3076, 2176, 1024, 128), (3075, 2176, 1023, 127), (1524, 2176, 293, 48),
    ])
  func descriptors(limit: Int, all: Int, documents: Int, metrics: Int) {
    #expect(DescriptorLimit.connections(1024, of: all, within: limit) == documents)
    #expect(DescriptorLimit.connections(128, of: all, within: limit) == metrics)
    // No listener has less than it takes to be of use, however few it wants.
    #expect(DescriptorLimit.connections(7, of: all, within: limit) == 7)
  }

  @Test("without one metrics are beside the documents")
  func beside() async throws {
    let service = try await AdministeredService.running()
    #expect(service.scripted.service.metricsAddress == service.scripted.service.address)
    let answer = try await Self.text(service.scripted.service.address, "/metrics")
    #expect(answer.status == 200)
    #expect(service.scripted.log.events("metrics_public").isEmpty)
    await service.stop()
  }

  @Test("reasons are named to administrators and at the metrics' listener, and to nobody else")
  func reasons() async throws {
    let service = try await AdministeredService.running(
      more: "metrics: {listen: '127.0.0.1:0'}")
    let (own, other) = (
      service.scripted.service.metricsAddress, service.scripted.service.address
    )
    await service.scripted.service.readAgain { () throws(ConfigurationError) in
      throw .unreadable(path: "/etc/secret.yaml", reason: "it is gone")
    }
    for path in ["/readyz", "/health/readiness"] {
      let strangers = try await Self.text(other, path)
      #expect(strangers == (200, "{\"reasons\":[\"configuration\"],\"status\":\"ready\"}\n"))
      #expect(try await Self.text(other, path, token: "x.y.z") == strangers)
      #expect(try await Self.text(own, path).body.contains("/etc/secret.yaml"))
      let administrators = try await Self.text(other, path, token: try service.token())
      #expect(administrators.body.contains("/etc/secret.yaml"))
    }
    await service.stop()
  }

  @Test("probes count and log tokens that are no good: nobody tries one after another out there")
  func badTokens() async throws {
    let server = try ScriptedService()
    try await server.start()
    var answers: [Int] = []
    for number in 0..<20 {
      answers.append(
        try await server.get("/readyz", headers: ["Authorization": "Bearer \(number)"]).status)
    }
    #expect(answers.filter { $0 == 429 }.count >= 8 && answers[0] != 429)
    #expect(server.log.events("admin_request").contains { $0["path"]?.stringValue == "/readyz" })
    // Who sends no token is told as before.
    #expect(try await server.get("/readyz").status != 429)
    await server.service.stop()
  }

  @Test("a refused configuration is a metric until one is taken")
  func reload() async throws {
    let service = try await AdministeredService.running()
    let running = service.scripted.service
    let same = try configuration(
      "keys: [{fqdn: www.example.com}]\nserver: {listen: '127.0.0.1:0'}\nstorage: {type: memory}\n"
        + "tls: {dir: \"\(service.scripted.directory.path())\", dump_interval: 1h}")
    await running.readAgain { () throws(ConfigurationError) in
      throw .unreadable(path: "x", reason: "y")
    }
    #expect(try await Self.text(running.address, "/readyz").body.contains("configuration"))
    let page = try await Self.text(running.address, "/metrics").body
    #expect(page.contains("ssl_pinning_configuration_reload_success 0\n"))
    await running.readAgain { () throws(ConfigurationError) in same }
    #expect(try await !Self.text(running.address, "/readyz").body.contains("configuration"))
    var after = page
    for _ in 0..<100 where !after.contains("ssl_pinning_configuration_reload_success 1\n") {
      // why: the page of metrics is made once a second.
      try await Task.sleep(nanoseconds: 50_000_000)
      after = try await Self.text(running.address, "/metrics").body
    }
    #expect(after.contains("ssl_pinning_configuration_reload_success 1\n"))
    await service.stop()
  }

  @Test("in clear text other machines administer nothing, unless that is said")
  func exposed() async throws {
    for (more, status) in [("", 403), ("ui: {insecure: true}", 200)] {
      let service = try await AdministeredService.running(listen: "0.0.0.0:0", more: more)
      let address = service.scripted.service.address
      let call = try await Self.text(
        address, "/api/v1/admin/session", token: try service.token())
      #expect(call.status == status, "\(call)")
      #expect(call.body.contains("hint") == (status == 403))
      #expect(try await Self.text(address, "/").status == (status == 403 ? 404 : 200))
      #expect(try await Self.text(address, "/api/v1/\(Self.file)").status == 200)
      #expect(
        service.scripted.log.events("administration_off").count == (status == 403 ? 1 : 0))
      #expect(service.scripted.log.events("metrics_public").count == 1)
      await service.stop()
    }
  }

  @Test("on loopback without a named proxy the log says that callers share limits")
  func shared() async throws {
    for (server, count) in [("", 1), (", trusted_proxies: [127.0.0.1]", 0)] {
      let service = try await AdministeredService.running(server: server)
      #expect(service.scripted.log.events("callers_share_limits").count == count)
      await service.stop()
    }
  }

  @Test("ten thousand endpoints fit into a configuration")
  func large() throws {
    let keys = (0..<10_000).map { index in
      let name = "a-rather-long-name-\(index).example.com"
      return "  - {fqdn: \(name), domainName: \"*.\(name)\", file: \(name).json, port: 443}\n"
    }
    let text = "keys:\n" + keys.joined()
    #expect(text.utf8.count > 1 << 20)
    #expect(try configuration(text).documents.count == 10_000)
  }
}
