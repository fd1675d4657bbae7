import CanonicalJSON
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite(
  "A change is judged when its turn has come, not when it was asked for", .timeLimit(.minutes(3)))
struct JudgedInTurnTests {
  private static let on = "ui: {second_person: true}"
  private static let keys = "[{fqdn: www.example.com}]"
  private static let www = AdministeredService.file
  private static let endpoint = AdministeredService.endpoint

  @discardableResult
  private static func call(
    _ service: AdministeredService, as name: String, _ method: String, _ path: String,
    _ body: String? = nil
  ) async throws -> AdministeredService.Answer {
    let token = try service.token(name, ttl: 604_800)
    return try await service.call(
      method, path, body, headers: ["Authorization": "Bearer \(token)"])
  }

  private static func propose(
    _ service: AdministeredService, _ path: String, _ body: String
  ) async throws -> (id: String, warnings: [String]) {
    let answer = try await call(service, as: "alice", "POST", path, body)
    #expect(answer.status == 202, "\(answer.json)")
    let warnings = answer["proposal", "warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
    return (try #require(answer["proposal", "id"]?.stringValue), warnings)
  }

  private static func confirm(
    _ service: AdministeredService, as name: String, _ id: String
  ) async throws -> AdministeredService.Answer {
    try await call(service, as: name, "POST", "/proposals/\(id)/confirm", "{}")
  }

  private static func deny(_ pin: SPKIPin, _ more: String = "") -> String {
    #"{"pin":"\#(pin.base64)","why":"stolen"\#(more)}"#
  }

  private static func denied(_ service: AdministeredService) async throws -> [String] {
    let answer = try await call(service, as: "reader", "GET", "/denials")
    return answer["denials"]?.arrayValue?.compactMap { $0.objectValue?["by"]?.stringValue } ?? []
  }

  // MARK: - An endpoint that is added

  /// Without the other endpoint, what the new one shows first would be published under any CA.
  @Test(
    "an endpoint is added beside those that spoke for its hosts when it was proposed, or not at all",
    arguments: [AdministeredService.file, "other.example.net.json"], [false, true])
  func addedBeside(file: String, isTakenOut: Bool) async throws {
    let service = try await AdministeredService.running(
      keys:
        "[{fqdn: www.example.com}, {fqdn: api.example.com, file: \(Self.www)}, {fqdn: other.example.net}]",
      more: Self.on)
    let (id, warnings) = try await Self.propose(
      service, "/documents/\(file)/endpoints", #"{"fqdn":"www.example.com","port":8443}"#)
    #expect(warnings == ["its keys would count for www.example.com, *.www.example.com"])
    if isTakenOut {
      let answer = try await Self.call(
        service, as: "mallory", "DELETE", "\(Self.endpoint)?why=x")
      #expect(answer.status == 200, "\(answer.json)")
    }
    let answer = try await Self.confirm(service, as: "bob", id)
    #expect(answer.status == (isTakenOut ? 409 : 200), "\(answer.json)")
    #expect(answer["code"] == (isTakenOut ? "changed-meanwhile" : nil))
    await service.stop()
  }

  @Test("who confirms an endpoint of other hosts is told that what it shows first is published")
  func addedAlone() async throws {
    let service = try await AdministeredService.running(more: Self.on)
    let (id, warnings) = try await Self.propose(
      service, "/documents/\(Self.www)/endpoints",
      #"{"fqdn":"api.example.com","patterns":["api.example.com"]}"#)
    #expect(warnings.count == 2)
    #expect(warnings.first == "its keys would count for api.example.com")
    #expect(warnings.last?.contains("what it shows first is published") == true)
    #expect(try await Self.confirm(service, as: "bob", id).status == 200)
    await service.stop()
  }

  @Test(
    "one that was taken out comes back for the hosts that it was configured for when that was proposed, or not at all",
    arguments: [("www.example.com", 200), ("pay.example.net", 409)])
  func comesBack(host: String, status: Int) async throws {
    let api = "{fqdn: api.example.com, file: \(Self.www)}"
    func keys(_ host: String) -> String {
      "[{fqdn: www.example.com, domainName: \(host), file: \(Self.www)}, \(api)]"
    }
    let service = try await AdministeredService.running(
      keys: keys("www.example.com"), more: Self.on)
    let out = try await Self.call(service, as: "alice", "DELETE", "\(Self.endpoint)?why=x")
    #expect(out.status == 200, "\(out.json)")
    let (id, _) = try await Self.propose(
      service, "/documents/\(Self.www)/endpoints", #"{"fqdn":"www.example.com"}"#)
    try await service.scripted.reload(keys: keys(host), more: Self.on)
    let answer = try await Self.confirm(service, as: "bob", id)
    #expect(answer.status == status, "\(answer.json)")
    await service.stop()
  }

  // MARK: - What two people saw

  /// Either denial alone leaves the host a key.
  @Test("of two denials that two people confirm at once, the second is not what they saw")
  func deniedAtOnce() async throws {
    let service = try await AdministeredService.running(more: Self.on)
    let observations = [UInt8(1), 2].map { key in
      ProbeObservation(
        vantage: LedgerBench.here, address: "192.0.2.\(key)",
        outcome: .accepted(SeenChain(leaf: SeenCertificate(pin: pin(key)))))
    }
    service.scripted.observer.show(
      ProbeResult(observations: observations), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    let listed = try await service.published()["www.example.com"] ?? []
    try #require(Set(listed) == [pin(1), pin(2)])
    var ids: [String] = []
    for key in [UInt8(1), 2] {
      let (id, warnings) = try await Self.propose(
        service, "/denials", Self.deny(pin(key), #","force":true"#))
      #expect(warnings.isEmpty)
      ids.append(id)
    }
    let (one, other) = (ids[0], ids[1])
    let edits = service.scripted.service.services.edits
    edits.close()
    async let first = Self.confirm(service, as: "bob", one)
    #expect(await eventually { edits.waits == 1 })
    async let second = Self.confirm(service, as: "carol", other)
    edits.open()
    #expect(try await first.status == 200)
    let refused = try await second
    #expect(refused.status == 409 && refused["code"] == "changed-meanwhile", "\(refused.json)")
    #expect(try await Self.denied(service) == ["alice, confirmed by bob"])
    await service.stop()
  }

  @Test(
    "a change that waits is not made once a token that asks for it is ended",
    arguments: [("alice", 403), ("bob", 403), ("carol", 200), ("", 403)])
  func endedWhileItWaited(name: String, status: Int) async throws {
    let service = try await AdministeredService.running(more: Self.on)
    let (id, _) = try await Self.propose(service, "/denials", Self.deny(pin(9)))
    let edits = service.scripted.service.services.edits
    edits.close()
    async let answer = Self.confirm(service, as: "bob", id)
    #expect(await eventually { edits.waits == 1 })
    let ended = AdminTokenIssuer.id(
      of: try service.token(name.isEmpty ? "dave" : name, ttl: 604_800))
    // The end of an edit opens the gate.
    try await service.scripted.reload(
      keys: Self.keys, server: name.isEmpty ? ", key: a-key-for-the-tokens" : "",
      more: "ui: {second_person: true, revoked_tokens: ['\(ended)']}")
    let made = try await answer
    #expect(made.status == status, "\(made.json)")
    #expect(made["code"] == (status == 403 ? "token-ended" : nil))
    let document = try #require(service.scripted.service.duty.coordinators.first)
    #expect(await document.state.deniedPins.contains(pin(9)) == (status == 200))
    await service.stop()
  }

  @Test("a proposal waits no longer than the token counts that proposed it")
  func endedWithItsToken() async throws {
    let service = try await AdministeredService.running(more: Self.on)
    let issued = service.scripted.clock.now()
    let token = try service.token("alice", issued: issued, ttl: 600)
    let proposed = try await service.call(
      "POST", "/denials", Self.deny(pin(9)), headers: ["Authorization": "Bearer \(token)"])
    #expect(proposed.status == 202, "\(proposed.json)")
    #expect(proposed["proposal", "expires"]?.integerValue == issued + 600)
    let id = try #require(proposed["proposal", "id"]?.stringValue)
    let (late, _) = try await Self.propose(service, "/denials", Self.deny(pin(8)))
    service.scripted.clock.advance(600)
    let open = try await Self.call(service, as: "reader", "GET", "/proposals")
    #expect(open["proposals"]?.arrayValue?.count == 1)
    #expect(open["proposals", "0", "id"] == .string(late))
    #expect(try await Self.confirm(service, as: "bob", id).status == 404)
    #expect(try await Self.confirm(service, as: "bob", late).status == 200)
    await service.stop()
  }

  @Test(
    "what one person asked for, and waits while a second person is asked for by an edit, is proposed",
    arguments: ["/denials", AdministeredService.endpoint + "/stage"], [false, true])
  func secondPersonMeanwhile(path: String, isOn: Bool) async throws {
    let service = try await AdministeredService.running()
    let edits = service.scripted.service.services.edits
    edits.close()
    let body =
      path == "/denials" ? Self.deny(pin(9)) : #"{"pin":"\#(pin(9).base64)","note":"x"}"#
    async let answer = Self.call(service, as: "mallory", "POST", path, body)
    #expect(await eventually { edits.waits == 1 })
    try await service.scripted.reload(keys: Self.keys, more: isOn ? Self.on : "")
    #expect(try await answer.status == (isOn ? 202 : 200))
    #expect(try await Self.denied(service).isEmpty == (isOn || path != "/denials"))
    let isListed = try await service.published()["www.example.com"]?.contains(pin(9))
    #expect(isListed == (!isOn && path != "/denials"))
    await service.stop()
  }
}
