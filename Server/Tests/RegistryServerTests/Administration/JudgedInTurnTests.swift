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

  /// One endpoint shows the denied key alone; the other one lists it, too, and shows that or another one.
  @Test(
    "a forced denial is confirmed also if it locks out fewer hosts than two people saw, and not if it locks out more",
    arguments: [(1, 2, 200), (2, 2, 200), (2, 1, 409)] as [(UInt8, UInt8, Int)])
  func lockedOut(then: UInt8, now: UInt8, status: Int) async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com}, {fqdn: api.example.com, file: \(Self.www)}]", more: Self.on)
    await service.show(pin(then), at: "api.example.com")
    let (id, warnings) = try await Self.propose(
      service, "/denials", Self.deny(pin(1), #","force":true"#))
    #expect(warnings.count == 1)
    #expect(warnings.first?.contains("api.example.com") == (then == 1), "\(warnings)")
    await service.show(pin(now), at: "api.example.com")
    let answer = try await Self.confirm(service, as: "bob", id)
    #expect(answer.status == status, "\(answer.json)")
    #expect(answer["code"] == (status == 409 ? "changed-meanwhile" : nil))
    #expect(try await Self.denied(service).isEmpty == (status == 409))
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

  /// As `ssl-pinning admin` proposes it, whose token counts for a minute.
  private static func proposeByTool(
    _ service: AdministeredService
  ) async throws -> (id: String, token: String) {
    let token = try service.token("alice", ttl: 60)
    let proposed = try await service.call(
      "POST", "/denials", deny(pin(9)), headers: ["Authorization": "Bearer \(token)"])
    #expect(proposed.status == 202, "\(proposed.json)")
    let at = try #require(proposed["proposal", "at"]?.integerValue)
    #expect(proposed["proposal", "expires"]?.integerValue == at + Proposal.life)
    return (try #require(proposed["proposal", "id"]?.stringValue), token)
  }

  @Test(
    "what the tool proposes by a token of a minute can be confirmed for a day, and is over then",
    arguments: [(0, 200), (60, 200), (3600, 200), (86_000, 200), (86_400, 404)] as [(Int64, Int)])
  func outlivesItsToken(later: Int64, status: Int) async throws {
    let service = try await AdministeredService.running(more: Self.on)
    let (id, _) = try await Self.proposeByTool(service)
    service.scripted.clock.advance(later)
    let answer = try await Self.confirm(service, as: "bob", id)
    #expect(answer.status == status, "\(answer.json)")
    #expect(try await Self.denied(service).isEmpty == (status != 200))
    let late = try await Self.confirm(service, as: "carol", id)
    #expect(late.status == 404)
    await service.stop()
  }

  @Test(
    "what a token proposed that is over by now is not confirmed if the token was revoked, or the key of all tokens changed",
    arguments: [("", 200), ("revoked", 403), ("key", 409)])
  func endedWithItsToken(how: String, status: Int) async throws {
    let service = try await AdministeredService.running(more: Self.on)
    let (id, token) = try await Self.proposeByTool(service)
    service.scripted.clock.advance(3600)
    let ended = how == "revoked" ? ", revoked_tokens: ['\(AdminTokenIssuer.id(of: token))']" : ""
    let key = how == "key" ? ", key: a-key-for-the-tokens" : ""
    try await service.scripted.reload(
      keys: Self.keys, server: key, more: "ui: {second_person: true\(ended)}")
    let issuer = try AdminTokenIssuer(
      configuration(
        """
        keys: \(Self.keys)
        server: {listen: "127.0.0.1:0"\(key)}
        tls: {dir: "\(service.scripted.directory.path())"}
        """))
    let bob = try issuer.token(for: "bob", at: service.scripted.clock.now(), ttl: 60)
    let answer = try await service.call(
      "POST", "/proposals/\(id)/confirm", "{}", headers: ["Authorization": "Bearer \(bob)"])
    #expect(answer.status == status, "\(answer.json)")
    let document = try #require(service.scripted.service.duty.coordinators.first)
    #expect(await document.state.deniedPins.contains(pin(9)) == (status == 200))
    await service.stop()
  }

  @Test(
    "whoever looks for a proposal that is gone is told all that may be, and where to find out")
  func takenBack() async throws {
    let service = try await AdministeredService.running(more: Self.on)
    let (id, _) = try await Self.proposeByTool(service)
    let back = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/withdraw", "{}")
    #expect(back.status == 200, "\(back.json)")
    let late = try await Self.confirm(service, as: "bob", id)
    #expect(late.status == 404, "\(late.json)")
    #expect(late.hint?.contains("the history tells what was made") == true, "\(late.json)")
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
