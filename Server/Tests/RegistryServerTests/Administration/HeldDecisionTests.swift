import CanonicalJSON
import RegistryCore
import SslPinningRules
import Testing

@testable import RegistryServer

@Suite("One decision about many held keys", .timeLimit(.minutes(3)))
struct HeldDecisionTests {
  private static let hosts = (0..<12).map { "h\($0).example.com" }

  /// Twelve endpoints in two documents, which show keys under a CA that is new for them; the last two under another.
  private static func running(_ more: String = "") async throws -> AdministeredService {
    let keys = hosts.enumerated().map { "{fqdn: \($1), file: \($0 < 6 ? "a" : "b").json}" }
    let scripted = try ScriptedService(keys: "[\(keys.joined(separator: ", "))]", more: more)
    for (index, host) in hosts.enumerated() {
      scripted.observer.show(probe(UInt8(index + 1), issuer: 100), at: host)
    }
    try await scripted.start()
    let service = AdministeredService(scripted: scripted)
    for (index, host) in hosts.enumerated() {
      scripted.observer.show(
        probe(UInt8(index + 41), issuer: index < 10 ? 101 : 102), at: host)
      await scripted.service.probe(host)
    }
    return service
  }

  private static func probe(_ leaf: UInt8, issuer: UInt8) -> ProbeResult {
    let authority = SeenCertificate(
      pin: pin(issuer), subject: "CN=\(issuer)", issuer: "CN=\(issuer)")
    let leaf = SeenCertificate(pin: pin(leaf), subject: "CN=leaf", issuer: "CN=\(issuer)")
    return ProbeResult(observations: [
      ProbeObservation(
        address: "192.0.2.1:443", outcome: .accepted(SeenChain(leaf: leaf, above: [authority])))
    ])
  }

  private static func groups(_ service: AdministeredService) async throws -> (
    time: Int64, byIssuer: [JSONObject]
  ) {
    let answer = try await service.call("GET", "/pending/groups")
    return (
      try #require(answer["time"]?.integerValue),
      answer["byIssuer"]?.arrayValue?.compactMap(\.objectValue) ?? []
    )
  }

  private static func body(
    _ decision: String, issuer: UInt8? = nil, cause: String? = nil, until: Int64, keys: Int,
    reasons: [String]? = nil
  ) -> String {
    var object: JSONObject = [
      "decision": .string(decision), "until": .integer(until), "keys": .count(keys), "why": "x",
    ]
    object["issuer"] = issuer.map { .string(pin($0).base64) }
    object["cause"] = cause.map { .string($0) }
    object["reasons"] = reasons.map { .texts($0) }
    return String(decoding: JSONValue.object(object).canonicalBytes, as: UTF8.self)
  }

  private static func total(_ service: AdministeredService) async throws -> JSONValue? {
    try await service.call("GET", "/pending?limit=1")["total"]
  }

  @Test("keys are grouped by CA and by reason, with who waits, and can be listed by both")
  func groups() async throws {
    let service = try await Self.running()
    let groups = try await Self.groups(service).byIssuer
    #expect(groups.map { $0["name"] } == ["CN=101", "CN=102"])
    #expect(groups.map { $0["keys"] } == [10, 2])
    #expect(groups.map { $0["documents"] } == [2, 1])
    #expect(groups.map { $0["shown"] } == [10, 2])
    #expect(groups.first?["endpoints"]?.arrayValue?.count == 5)
    #expect(
      groups.first?["before"]
        == .array([
          .object(["issuer": .string(pin(100).base64), "name": .null, "keys": .integer(10)])
        ]))
    #expect(groups.first?["assent"] == .array([]) && groups.first?["confirming"] == 0)
    let causes = try await service.call("GET", "/pending/groups")["byCause", "0", "cause"]
    #expect(causes == "new-issuer")
    let issuer = pin(102).base64.replacing("+", with: "%2B").replacing("/", with: "%2F")
    let few = try await service.call(
      "GET", "/pending?cause=new-issuer&sort=endpoint&issuer=\(issuer)")
    #expect(few["total"] == 2 && few["items", "0", "endpoint"] == "h10.example.com:443")
    #expect(few["items", "0", "candidate", "witnesses", "0", "vantage"] == "direct")
    #expect(try await service.call("GET", "/pending?cause=manual")["total"] == 0)
    await service.stop()
  }

  @Test("all keys of a CA are approved by one call, in every document, and no others")
  func approve() async throws {
    let service = try await Self.running()
    let time = try await Self.groups(service).time
    let answer = try await service.call(
      "POST", "/pending/decide", Self.body("approve", issuer: 101, until: time, keys: 10))
    #expect(answer.status == 200 && answer["keys"] == 10, "\(answer.json)")
    #expect(answer.changes == Array(repeating: "key_approved", count: 10))
    let documents = answer["documents"]?.arrayValue?.compactMap(\.objectValue) ?? []
    #expect(documents.map { $0["changes"] } == [6, 4])
    #expect(documents.allSatisfy { $0["error"] == .null })
    #expect(try await Self.total(service) == 2)
    let again = try await service.call(
      "POST", "/pending/decide", Self.body("approve", issuer: 101, until: time, keys: 10))
    #expect(again.status == 404)
    await service.stop()
  }

  @Test("a key that came after the page was read, and more than were read, are in no decision")
  func unread() async throws {
    let service = try await Self.running()
    let time = try await Self.groups(service).time
    let few = try await service.call(
      "POST", "/pending/decide", Self.body("approve", issuer: 101, until: time, keys: 9))
    #expect(few.status == 409 && few.error?.contains("10 keys") == true)
    let early = try await service.call(
      "POST", "/pending/decide", Self.body("approve", cause: "new-issuer", until: 5, keys: 99))
    #expect(early.status == 404)
    for body in [
      #"{"decision":"approve","until":5,"keys":1,"why":"x"}"#,
      #"{"decision":"approve","cause":"manual","keys":1,"why":"x"}"#,
      #"{"decision":"approve","cause":"manual","until":5,"why":"x"}"#,
      #"{"decision":"approve","cause":"manual","until":5,"keys":1,"why":""}"#,
      #"{"decision":"allow","cause":"manual","until":5,"keys":1,"why":"x"}"#,
    ] {
      #expect(try await service.call("POST", "/pending/decide", body).status == 400, "\(body)")
    }
    #expect(try await Self.total(service) == 12)
    await service.stop()
  }

  @Test("an approval of many is about keys that are shown, a denial about all")
  func shown() async throws {
    let service = try await Self.running()
    // One probe may be that of another server of a fleet.
    service.scripted.observer.show(Self.probe(1, issuer: 100), at: Self.hosts[0])
    for _ in 0..<3 { await service.scripted.service.probe(Self.hosts[0]) }
    let paused = "/documents/a.json/endpoints/\(Self.hosts[1])%3A443"
    #expect(try await service.call("PATCH", paused, #"{"paused":true}"#).status == 200)
    let (time, groups) = try await Self.groups(service)
    #expect(groups.first?["keys"] == 10 && groups.first?["shown"] == 8)
    #expect(
      groups.first?["gone"]?.arrayValue?.compactMap { $0.objectValue?["endpoint"]?.stringValue }
        == Self.hosts.prefix(2).map { "\($0):443" })
    let answer = try await service.call(
      "POST", "/pending/decide", Self.body("approve", issuer: 101, until: time, keys: 10))
    #expect(answer.status == 200 && answer["keys"] == 8, "\(answer.json)")
    #expect(try await Self.total(service) == 4)
    let none = try await service.call(
      "POST", "/pending/decide", Self.body("approve", issuer: 101, until: time, keys: 10))
    #expect(none.status == 409 && none.error == "no endpoint shows such a key any more")
    let denial = try await service.call(
      "POST", "/pending/decide", Self.body("deny", issuer: 101, until: time, keys: 10))
    #expect(denial.status == 200 && denial["keys"] == 2)
    await service.stop()
  }

  @Test("a key that was said to be left out is in no approval because it is shown again")
  func shownAgain() async throws {
    let service = try await Self.running()
    let scripted = service.scripted
    scripted.observer.show(Self.probe(1, issuer: 100), at: Self.hosts[0])
    scripted.observer.show(.unreachable(reason: "it ended"), at: Self.hosts[1])
    for host in Self.hosts.prefix(2) {
      for _ in 0..<3 { await scripted.service.probe(host) }
    }
    let (time, groups) = try await Self.groups(service)
    let group = try #require(groups.first)
    #expect(group["keys"] == 10 && group["shown"] == 8)
    func decide() async throws -> AdministeredService.Answer {
      let object: JSONObject = [
        "decision": "approve", "issuer": .string(pin(101).base64), "until": .integer(time),
        "keys": 10, "digest": try #require(group["digest"]), "why": "x",
      ]
      return try await service.call(
        "POST", "/pending/decide",
        String(decoding: JSONValue.object(object).canonicalBytes, as: UTF8.self))
    }
    scripted.observer.show(Self.probe(41, issuer: 101), at: Self.hosts[0])
    await scripted.service.probe(Self.hosts[0])
    #expect(try await decide().status == 409)
    scripted.observer.show(Self.probe(1, issuer: 100), at: Self.hosts[0])
    for _ in 0..<9 { await scripted.service.probe(Self.hosts[0]) }
    let answer = try await decide()
    #expect(answer.status == 200 && answer["keys"] == 8, "\(answer.json)")
    await service.stop()
  }

  @Test("nothing is decided about keys that wait for another reason than was read")
  func otherReason() async throws {
    let service = try await Self.running()
    let time = try await Self.groups(service).time
    func decide(_ reasons: [String]) async throws -> Int {
      try await service.call(
        "POST", "/pending/decide",
        Self.body("approve", issuer: 101, until: time, keys: 10, reasons: reasons)
      ).status
    }
    #expect(try await decide([]) == 409)
    #expect(try await decide(["manual", "sudden-change"]) == 409)
    #expect(try await Self.total(service) == 12)
    #expect(try await decide(["manual", "new-issuer", "sudden-change"]) == 200)
    await service.stop()
  }

  @Test("keys that a clock ahead of this one first saw are on the page, and can be decided about")
  func seenLater() async throws {
    let service = try await Self.running()
    service.scripted.clock.advance(-300)
    let time = try await Self.groups(service).time
    let answer = try await service.call(
      "POST", "/pending/decide", Self.body("approve", issuer: 101, until: time, keys: 10))
    #expect(answer.status == 200 && answer["keys"] == 10, "\(answer.json)")
    await service.stop()
  }

  @Test("a decision that names the keys that were read is about no others")
  func named() async throws {
    let service = try await Self.running()
    let (time, groups) = try await Self.groups(service)
    let group = try #require(groups.first { $0["issuer"]?.stringValue == pin(101).base64 })
    let digests = groups.compactMap { $0["digest"]?.stringValue }
    #expect(Set(digests).count == groups.count)
    func decide(_ digest: String) async throws -> Int {
      let object: JSONObject = [
        "decision": "approve", "issuer": .string(pin(101).base64), "until": .integer(time),
        "keys": try #require(group["keys"]), "digest": .string(digest), "why": "x",
      ]
      return try await service.call(
        "POST", "/pending/decide",
        String(decoding: JSONValue.object(object).canonicalBytes, as: UTF8.self)
      ).status
    }
    let own = try #require(group["digest"]?.stringValue)
    for other in digests where other != own { #expect(try await decide(other) == 409) }
    #expect(try await Self.total(service) == 12)
    #expect(try await decide(own) == 200)
    await service.stop()
  }

  @Test("all keys that wait for a reason are denied by one call, everywhere")
  func deny() async throws {
    let service = try await Self.running()
    let time = try await Self.groups(service).time
    let answer = try await service.call(
      "POST", "/pending/decide", Self.body("deny", cause: "new-issuer", until: time, keys: 12))
    #expect(answer.status == 200 && answer.changes.count == 24, "\(answer.json)")
    let denials = try await service.call("GET", "/denials")
    #expect(denials["denials"]?.arrayValue?.count == 12)
    #expect(denials["denials", "0", "files"]?.arrayValue?.count == 2)
    #expect(try await Self.total(service) == 0)
    await service.stop()
  }

  @Test("a document takes a decision as a whole or not at all")
  func atomic() throws {
    func held(_ pin: SPKIPin) -> EndpointKeys {
      var candidate = CandidateKey(
        firstSeen: 5, chain: SeenChain(leaf: SeenCertificate(pin: pin)))
      candidate.reasons = [.manual]
      return EndpointKeys(
        keys: [KnownKey(pin: RegistryServerTests.pin(1), firstSeen: 1, lastSeen: 1)],
        held: [pin: candidate])
    }
    let endpoints = try ["a.example", "b.example"].map { WatchedEndpoint(fqdn: try HostName($0)) }
    var state = DocumentState()
    state.keysByEndpoint["a.example:443"] = held(pin(2))
    state.keysByEndpoint["b.example:443"] = held(pin(3))
    let before = state
    let request = DocumentState.Request(who: "alice", at: 9, why: "x")
    func decide(
      _ pins: [UInt8], under issuer: SPKIPin? = nil, _ state: inout DocumentState
    ) throws -> [String] {
      let keys = zip(endpoints, pins).map {
        HeldKey(file: "f", endpoint: $0.0.id, pin: pin($0.1))
      }
      return try state.decide(
        HeldDecision(.approve, keys, under: issuer), in: "f", configured: endpoints, request
      ).map(\.endpoint)
    }
    #expect(throws: AdministrationError.self) { try decide([2, 4], &state) }
    #expect(state == before)
    #expect(throws: AdministrationError.otherIssuer(pin(3))) {
      try decide([2, 3], under: pin(2), &state)
    }
    #expect(state == before)
    let made = try decide([2, 3], &state)
    #expect(made == endpoints.map(\.id))
    // Approved already: nothing is left to do, and nothing is wrong.
    let again = try decide([2, 3], &state)
    #expect(again.isEmpty)
  }

  @Test("is proposed where a second person has to confirm, and made of what was seen")
  func secondPerson() async throws {
    let service = try await Self.running("ui: {second_person: true}")
    func call(_ name: String, _ path: String, _ body: String) async throws
      -> AdministeredService.Answer
    {
      let token = try service.token(name)
      return try await service.call(
        "POST", path, body, headers: ["Authorization": "Bearer \(token)"])
    }
    let time = try await Self.groups(service).time
    let proposed = try await call(
      "alice", "/pending/decide", Self.body("approve", issuer: 102, until: time, keys: 2))
    #expect(
      proposed.status == 202 && proposed["proposal", "what"] == "approve-all", "\(proposed.json)")
    #expect(try await Self.total(service) == 12)
    let id = try #require(proposed["proposal", "id"]?.stringValue)
    let made = try await call("bob", "/proposals/\(id)/confirm", "{}")
    #expect(made.status == 200 && made.changes.count == 2, "\(made.json)")
    #expect(try await Self.total(service) == 10)
    await service.stop()
  }
}
