import CanonicalJSON
import Foundation
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer

@Suite("Terms of hosts in the administration") struct TermsTests {
  private static let path = "\(AdministeredService.endpoint)/terms"

  /// What the statement that readers get says of hosts.
  private static func hosts(_ service: AdministeredService) async throws -> JSONValue? {
    let answer = try await service.scripted.get("/api/v1/\(AdministeredService.file)")
    let document = try JSONValue(parsing: answer.body).objectValue
    return document?["statement"]?.objectValue?["hosts"]
  }

  private static func settings(
    _ host: String, _ cas: [SPKIPin], _ match: String, _ enforces: Bool
  ) -> JSONValue {
    .object([
      "domainName": .string(host), "ca": .array(cas.map { .string($0.base64) }),
      "match": .string(match), "enforce": .bool(enforces),
    ])
  }

  @Test(
    "are published at once for all hosts of the endpoint, part by part, and shown with their price")
  func published() async throws {
    let service = try await AdministeredService.running()
    #expect(try await Self.hosts(service) == [])
    let cas = #"["\#(pin(101).base64)","\#(pin(100).base64)"]"#
    let any = try await service.call(
      "POST", Self.path, #"{"ca":\#(cas),"match":"any","why":"cannot announce"}"#)
    #expect(any.status == 200 && any.changes == ["terms_changed"])
    #expect(any["warnings", "0"]?.stringValue?.contains("whoever gets a certificate") == true)
    let names = ["www.example.com", "*.www.example.com"]
    func expected(_ match: String, _ enforces: Bool) -> JSONValue {
      .array(names.map { Self.settings($0, [pin(100), pin(101)], match, enforces) })
    }
    #expect(try await Self.hosts(service) == expected("any", false))
    let on = try await service.call("POST", Self.path, #"{"enforce":"on"}"#)
    #expect(on["warnings", "0"]?.stringValue?.contains("irreversible") == true)
    #expect(try await Self.hosts(service) == expected("any", true))
    let shown = try await service.call("GET", AdministeredService.endpoint)
    #expect(shown["terms", "match"] == "any" && shown["terms", "enforce"] == "on")
    #expect(shown["terms", "ca", "0"] == .string(pin(100).base64))
    #expect(try await service.call("POST", Self.path, #"{"enforce":"on"}"#).changes.isEmpty)
    let off = try await service.call("POST", Self.path, #"{"enforce":"app","ca":[],"match":"all"}"#)
    #expect(off["warnings", "0"]?.stringValue?.contains("keep it until") == true)
    #expect(try await Self.hosts(service) == [])
    await service.stop()
  }

  @Test("set by two at once are both in force: what a call leaves out stays as the other has it")
  func atOnce() async throws {
    let service = try await AdministeredService.running()
    // Both calls are read before either is made.
    let edits = service.scripted.service.services.edits
    edits.close()
    let cas = #"["\#(pin(100).base64)","\#(pin(101).base64)"]"#
    async let named = service.call("POST", Self.path, #"{"ca":\#(cas),"match":"any"}"#).status
    async let enforced = service.call("POST", Self.path, #"{"enforce":"on"}"#).status
    #expect(await eventually { edits.waits == 2 })
    edits.open()
    #expect(try await named == 200)
    #expect(try await enforced == 200)
    let names = ["www.example.com", "*.www.example.com"]
    #expect(
      try await Self.hosts(service)
        == .array(names.map { Self.settings($0, [pin(100), pin(101)], "any", true) }))
    await service.stop()
  }

  @Test(
    "are refused if they say nothing, or what cannot be",
    arguments: [
      (#"{"why":"x"}"#, 400), (#"{"match":"any"}"#, 400), (#"{"match":"some"}"#, 400),
      (#"{"enforce":true}"#, 400), (#"{"ca":["root.pem"]}"#, 400), (#"{"ca":"x"}"#, 400),
    ])
  func refused(_ body: String, _ status: Int) async throws {
    let service = try await AdministeredService.running()
    #expect(try await service.call("POST", Self.path, body).status == status)
    #expect(try await Self.hosts(service) == [])
    await service.stop()
  }

  @Test("that the servers' path does not meet go by force alone, and the refusal names the hosts")
  func force() async throws {
    let service = try await AdministeredService.running()
    let body = #"{"ca":["\#(pin(100).base64)"]"#
    let refused = try await service.call("POST", Self.path, body + "}")
    #expect(refused.status == 409)
    #expect(refused["hosts"] == ["www.example.com", "*.www.example.com"])
    #expect(try await service.call("POST", Self.path, body + #","force":true}"#).status == 200)
    await service.scripted.service.probe("www.example.com")
    let overview = try await service.call("GET", "/overview")
    #expect(overview["alerts", "0", "kind"] == "ca-missing")
    #expect(overview["refusing", "total"] == 1)
    #expect(try await service.call("GET", AdministeredService.endpoint)["health"] == "refusing")
    await service.stop()
  }

  @Test(
    "wait for a second person, who confirms what the first one saw, and are for deciding tokens alone"
  )
  func people() async throws {
    let service = try await AdministeredService.running(more: "ui: {second_person: true}")
    let reader = try service.token("eve", scope: .read)
    let denied = try await service.call(
      "POST", Self.path, #"{"enforce":"on"}"#, headers: ["Authorization": "Bearer \(reader)"])
    #expect(denied.status == 403)
    let proposed = try await service.call("POST", Self.path, #"{"enforce":"on","why":"ready"}"#)
    #expect(proposed.status == 202 && proposed["proposal", "what"] == "set-terms")
    #expect(try await Self.hosts(service) == [])
    let id = try #require(proposed["proposal", "id"]?.stringValue)
    let bob = ["Authorization": "Bearer \(try service.token("bob"))"]
    let done = try await service.call("POST", "/proposals/\(id)/confirm", "{}", headers: bob)
    #expect(done.status == 200)
    #expect(try await Self.hosts(service)?.arrayValue?.count == 2)
    // Whom forced ones lock out stands in no request.
    let ca = #"{"ca":["\#(pin(100).base64)"],"why":"x","force":"#
    #expect(try await service.call("POST", Self.path, ca + "false}").status == 409)
    let forced = try await service.call("POST", Self.path, ca + "true}")
    #expect(
      forced["warnings"]?.arrayValue?.last
        == "no CA above their servers' keys would be asked for: *.www.example.com, www.example.com")
    await service.stop()
  }

  @Test("come from the configuration, stay until it says otherwise, and need statements")
  func configured() async throws {
    let keys = "[{fqdn: www.example.com, domainName: x.test, file: www.example.com.json"
    let service = try await AdministeredService.running(
      keys: keys + ", ca: ['\(pin(7).base64)', '\(pin(8).base64)'], match: any, enforce: on}]")
    #expect(
      try await Self.hosts(service) == [Self.settings("x.test", [pin(7), pin(8)], "any", true)])
    try await service.scripted.reload(keys: keys + "}]")
    await service.scripted.service.probe("www.example.com")
    #expect(try await Self.hosts(service) == [])
    await service.stop()
    let plain = try await AdministeredService.running(more: "publish: {statements: false}")
    let answer = try await plain.call("POST", Self.path, #"{"enforce":"on"}"#)
    #expect(answer.status == 409 && answer.hint == "publish.statements: true")
    await plain.stop()
  }
}
