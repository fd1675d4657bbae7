import Foundation
import TestSupport
import Testing

@testable import RegistryServer

@Suite("The listener of ui.listen") struct ConsoleListenerTests {
  private static func get(
    _ service: ScriptedService, at console: Bool, _ path: String, token: String? = nil,
    method: String = "GET"
  ) async throws -> (status: Int, headers: [String: String], body: [UInt8]) {
    let address = try #require(
      console ? service.service.consoleAddress : service.service.address)
    return try await HTTPProbe.fetch(
      "http://\(address)\(path)", headers: token.map { ["Authorization": "Bearer \($0)"] } ?? [:],
      method: method)
  }

  @Test(
    "has console and administration, and the listener for everybody has neither",
    arguments: [
      ("GET", "/", 200, 404), ("GET", "/console.js", 200, 404),
      ("GET", "/api/v1/admin/session", 200, 404), ("POST", "/api/v1/admin/denials", 400, 404),
      ("GET", "/api/v1/admin/nothing", 404, 404), ("GET", "/api/v1/www.example.com.json", 404, 200),
      ("GET", "/api/v1/www.example.com.json/statement", 404, 200), ("GET", "/metrics", 404, 200),
      ("GET", "/readyz", 200, 200), ("POST", "/api/v1/reports", 405, 400),
    ])
  func paths(method: String, path: String, console: Int, documents: Int) async throws {
    let service = try await AdministeredService.running(more: "ui: {listen: '127.0.0.1:0'}")
    let token = try service.token()
    #expect(service.scripted.service.consoleAddress != service.scripted.service.address)
    for (isConsole, status) in [(true, console), (false, documents)] {
      let answer = try await Self.get(
        service.scripted, at: isConsole, path, token: token, method: method)
      #expect(answer.status == status, "\(isConsole): \(answer.status)")
    }
    await service.stop()
    #expect(service.scripted.service.consoleAddress == nil)
  }

  @Test("without it both are at one, as ever")
  func one() async throws {
    let service = try await AdministeredService.running()
    #expect(service.scripted.service.consoleAddress == service.scripted.service.address)
    #expect(try await Self.get(service.scripted, at: true, "/").status == 200)
    await service.stop()
  }

  @Test("names in a probe's reasons are for tokens, and at the listener for everybody for nobody")
  func probes() async throws {
    let scripted = try ScriptedService(more: "ui: {listen: '127.0.0.1:0'}")
    try await scripted.start()
    let token = try AdministeredService(scripted: scripted).token()
    for (isConsole, token, hasNames) in [
      (true, token, true), (true, nil, false), (false, token, false),
    ] {
      let answer = try await Self.get(scripted, at: isConsole, "/readyz", token: token)
      let text = String(decoding: answer.body, as: UTF8.self)
      #expect(answer.status == 503 && text.contains("www.example.com") == hasNames, "\(text)")
    }
    await scripted.service.stop()
  }

  @Test(
    "in clear text it is on loopback, unless that is said, and on an address of its own",
    arguments: [
      ("ui: {listen: '127.0.0.1:7501'}", nil),
      ("ui: {listen: '10.0.0.1:7501'}", "clear text"),
      ("ui: {listen: ':7501'}", "clear text"),
      ("ui: {listen: '10.0.0.1:7501', insecure: true}", nil),
      ("ui: {listen: '10.0.0.1:7501', enabled: false}", nil),
      ("server: {certificate: a.pem, private_key: b.pem}\nui: {listen: '10.0.0.1:7501'}", nil),
      // The listener for everybody may be anywhere then.
      ("server: {listen: ':7500'}\nui: {listen: '127.0.0.1:7501'}", nil),
      ("ui: {listen: '127.0.0.1:7500'}", "server.listen"),
      ("metrics: {listen: '127.0.0.1:1'}\nui: {listen: '127.0.0.1:1'}", "metrics.listen"),
    ])
  func configurations(yaml: String, fault: String?) throws {
    var said: String?
    do {
      let read = try configuration("keys: [{fqdn: a.b}]\n\(yaml)")
      #expect(!read.isAdministrationExposed)
    } catch { said = "\(error)" }
    #expect((said == nil) == (fault == nil), "\(said ?? "")")
    if let fault { #expect(said?.contains(fault) == true && said?.contains("hint") == true) }
  }
}
