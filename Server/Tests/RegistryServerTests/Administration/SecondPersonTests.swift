import CanonicalJSON
import Foundation
import RegistryCore
import RegistryStores
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("A second person", .timeLimit(.minutes(3))) struct SecondPersonTests {
  private static let on = "ui: {second_person: true}"
  private static let endpoint = AdministeredService.endpoint

  private static func running(_ more: String = on) async throws -> AdministeredService {
    let service = try await AdministeredService.running(more: more)
    await service.show(pin(1))
    return service
  }

  private static func body(_ pin: SPKIPin, _ more: String = "") -> String {
    #"{"pin":"\#(pin.base64)","why":"x"\#(more)}"#
  }

  /// Calls as somebody.
  @discardableResult
  private static func call(
    _ service: AdministeredService, as name: String, _ method: String, _ path: String,
    _ body: String? = nil, issued: Int64? = nil, ttl: Int64 = 604_800
  ) async throws -> AdministeredService.Answer {
    let token = try service.token(name, issued: issued, ttl: ttl)
    return try await service.call(
      method, path, body, headers: ["Authorization": "Bearer \(token)"])
  }

  private static func propose(
    _ service: AdministeredService, _ pin: SPKIPin, _ more: String = ""
  ) async throws -> String {
    let answer = try await call(service, as: "alice", "POST", "/denials", body(pin, more))
    #expect(answer.status == 202, "\(answer.json)")
    return try #require(answer["proposal", "id"]?.stringValue)
  }

  private static func waiting(_ service: AdministeredService) async throws -> [String] {
    let answer = try await call(service, as: "reader", "GET", "/proposals")
    return answer["proposals"]?.arrayValue?.compactMap { $0.objectValue?["id"]?.stringValue } ?? []
  }

  private static func denied(_ service: AdministeredService) async throws -> [String] {
    let answer = try await call(service, as: "reader", "GET", "/denials")
    return answer["denials"]?.arrayValue?.compactMap { $0.objectValue?["by"]?.stringValue } ?? []
  }

  @Test("a denial is proposed by one, changes nothing, and is made when another confirms it, once")
  func denial() async throws {
    let service = try await Self.running()
    let before = try await service.published()
    let id = try await Self.propose(service, pin(9))
    #expect(try await Self.denied(service).isEmpty)
    #expect(try await service.published() == before)
    #expect(try await Self.waiting(service) == [id])
    let story = try await Self.call(service, as: "bob", "GET", "/proposals")
    #expect(story["proposals", "0", "who"] == "alice")
    #expect(story["proposals", "0", "what"] == "deny")
    #expect(story["proposals", "0", "pin"] == .string(pin(9).base64))
    #expect(service.scripted.log.events("change_proposed").count == 1)
    // Asked for again, it is the same one.
    #expect(try await Self.propose(service, pin(9)) == id)
    let made = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(made.status == 200 && made.changes.count == 1, "\(made.json)")
    #expect(try await Self.denied(service) == ["alice, confirmed by bob"])
    #expect(try await Self.waiting(service).isEmpty)
    // Nor a second time.
    let again = try await Self.call(service, as: "carol", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(again.status == 404)
    await service.stop()
  }

  @Test(
    "sees the request without what could hide a part of it, and what the first one was warned of")
  func canonical() async throws {
    let service = try await Self.running()
    let blanks = String(repeating: " ", count: 5000)
    let hidden = "{\"why\":\"x\"," + blanks + "\"\\u0070in\":\"\(pin(9).base64)\"}"
    let answer = try await Self.call(service, as: "alice", "POST", "/denials", hidden)
    #expect(answer.status == 202, "\(answer.json)")
    let seen = try await Self.call(service, as: "bob", "GET", "/proposals")
    #expect(seen["proposals", "0", "request"] == .string(#"{"pin":"\#(pin(9).base64)","why":"x"}"#))
    let warnings = try #require(answer["warnings"]?.arrayValue)
    #expect(!warnings.isEmpty)
    #expect(
      seen["proposals", "0", "warnings"]?.arrayValue.map { warnings.starts(with: $0) } == true)
    #expect(seen["proposals", "0", "warnings"]?.arrayValue?.count == warnings.count - 1)
    // Whom it locks out stands in no request.
    _ = try await Self.propose(service, pin(1), #","force":true"#)
    let forced = try await Self.call(service, as: "bob", "GET", "/proposals")
    let told = forced["proposals", "1", "warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
    #expect(
      told == ["no key that their servers show would be left: *.www.example.com, www.example.com"])
    await service.stop()
  }

  @Test(
    "nobody is his own second person: neither by the same token, nor by another of his name",
    arguments: [("alice", 0), ("alice", 1), ("Alice", 1), ("ALICE", 0)] as [(String, Int64)])
  func oneself(name: String, later: Int64) async throws {
    let service = try await Self.running()
    let id = try await Self.propose(service, pin(9))
    let answer = try await Self.call(
      service, as: name, "POST", "/proposals/\(id)/confirm", "{}",
      issued: service.scripted.clock.now() - later)
    #expect(answer.status == 403, "\(answer.json)")
    #expect(try await Self.denied(service).isEmpty)
    #expect(try await Self.waiting(service) == [id])
    // Nor who may only see.
    let reader = try service.token("bob", scope: .read)
    let read = try await service.call(
      "POST", "/proposals/\(id)/confirm", "{}", headers: ["Authorization": "Bearer \(reader)"])
    #expect(read.status == 403)
    await service.stop()
  }

  @Test("what puts a key on a list, denies one or ends a denial needs one; the rest does not")
  func kinds() async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com}, {fqdn: api.example.com, file: www.example.com.json}]",
      more: Self.on)
    // Published beside pin(1): its CA is known.
    await service.show(pin(2))
    let file = "/documents/\(AdministeredService.file)"
    let calls: [(String, String, String?, Int)] = [
      ("POST", "\(Self.endpoint)/stage", Self.body(pin(5)).replacing("why", with: "note"), 202),
      ("POST", "\(file)/endpoints", #"{"fqdn":"b.example"}"#, 202),
      ("PATCH", Self.endpoint, #"{"approval":"auto"}"#, 202),
      ("POST", "/denials", Self.body(pin(9)), 202),
      ("PATCH", Self.endpoint, #"{"interval":"30s"}"#, 200),
      ("PATCH", Self.endpoint, #"{"paused":true}"#, 200),
      // Without any key, what it shows next would be its first one.
      ("POST", "\(Self.endpoint)/revoke", Self.body(pin(2), #","force":true"#), 202),
      ("POST", "\(Self.endpoint)/revoke", Self.body(pin(1)), 200),
      ("DELETE", "\(file)/endpoints/api.example.com%3A443?why=x", nil, 200),
    ]
    for (method, path, body, status) in calls {
      let answer = try await Self.call(service, as: "alice", method, path, body)
      #expect(answer.status == status, "\(path): \(answer.json)")
    }
    // An error is told at once, and proposes nothing.
    let count = try await Self.waiting(service).count
    let wrong = try await Self.call(
      service, as: "alice", "POST", "\(Self.endpoint)/approve", Self.body(pin(7)))
    #expect(wrong.status == 404)
    let bare = try await Self.call(service, as: "alice", "POST", "/denials", Self.body(pin(2)))
    #expect(bare.status == 409 && bare.json["hosts"] != nil)
    #expect(try await Self.waiting(service).count == count)
    await service.stop()
  }

  @Test("an approval is confirmed as it was seen, or not at all")
  func approval() async throws {
    let service = try await Self.running()
    try await service.call("PATCH", Self.endpoint, #"{"approval":"manual"}"#)
    for id in try await Self.waiting(service) {
      try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    }
    await service.show(pin(2))
    let asked = try await Self.call(
      service, as: "alice", "POST", "\(Self.endpoint)/approve", Self.body(pin(2)))
    #expect(asked.status == 202, "\(asked.json)")
    let id = try #require(asked["proposal", "id"]?.stringValue)
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    // Meanwhile the key is shown under another authority.
    service.scripted.observer.show(
      LedgerBench.probe([(LedgerBench.here, "", .key(2, under: 77))]), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    let stale = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(stale.status == 409, "\(stale.json)")
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    // It still waits, can be taken back, and what is proposed anew is another one.
    #expect(try await Self.waiting(service) == [id])
    let back = try await Self.call(
      service, as: "alice", "POST", "/proposals/\(id)/withdraw", "{}")
    #expect(back.status == 200 && back["proposal", "id"] == .string(id))
    let anew = try await Self.call(
      service, as: "alice", "POST", "\(Self.endpoint)/approve", Self.body(pin(2)))
    let other = try #require(anew["proposal", "id"]?.stringValue)
    #expect(other != id)
    let made = try await Self.call(service, as: "bob", "POST", "/proposals/\(other)/confirm", "{}")
    #expect(made.status == 200, "\(made.json)")
    #expect(try await service.published()["www.example.com"] == [pin(1), pin(2)])
    await service.stop()
  }

  @Test(
    "approval: auto is confirmed for the keys that waited when it was proposed, or not at all",
    arguments: [false, true])
  func waitingKeys(another: Bool) async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com, approval: manual}]", more: Self.on)
    let asked = try await Self.call(
      service, as: "alice", "PATCH", Self.endpoint, #"{"approval":"auto"}"#)
    let id = try #require(asked["proposal", "id"]?.stringValue)
    if another { await service.show(pin(2)) }
    let answer = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(answer.status == (another ? 409 : 200), "\(answer.json)")
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    await service.stop()
  }

  /// An edit of the configuration in between has an endpoint speak for a host more, or leaves keys of one behind.
  @Test(
    "a change is confirmed for the hosts that it was proposed for, or not at all",
    arguments: [
      ("stage", #","note":"x""#), ("revoke", #","why":"x","force":true"#), ("", #""why":"x""#),
    ], [false, true])
  func hosts(row: (command: String, more: String), isLeft: Bool) async throws {
    let (command, more) = row
    let www = "{fqdn: www.example.com, domainName: \"*.example.com\", file: www.example.com.json}"
    let api = "{fqdn: api.example.com, domainName: api.example.com, file: www.example.com.json}"
    let pay = "{fqdn: www.example.com, domainName: pay.example.net, file: www.example.com.json}"
    let service = try await AdministeredService.running(keys: "[\(www), \(api)]", more: Self.on)
    let asked =
      command.isEmpty
      ? try await Self.call(
        service, as: "alice", "POST", "\(Self.endpoint)/terms",
        #"{"ca":["\#(pin(71).base64)","\#(pin(72).base64)"],"force":true,\#(more)}"#)
      : try await Self.call(
        service, as: "alice", "POST", "\(Self.endpoint)/\(command)",
        #"{"pin":"\#(pin(command == "stage" ? 5 : 1).base64)"\#(more)}"#)
    #expect(asked.status == 202, "\(asked.json)")
    let id = try #require(asked["proposal", "id"]?.stringValue)
    try await service.scripted.reload(
      keys: isLeft ? "[\(www)]" : "[\(www), \(api), \(pay)]", more: Self.on)
    let stale = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    // What was left behind has no part in the others.
    let isAnother = !isLeft || command == "revoke"
    #expect(stale.status == (isAnother ? 409 : 200), "\(stale.json)")
    await service.stop()
  }

  @Test(
    "a confirmation that waits for an edit of the configuration is judged by what the edit says",
    arguments: [
      ("www.example.com", "pay.example.net", 409), ("api.example.com", "api.example.com", 200),
    ] as [(String, String, Int)])
  func editedMeanwhile(fqdn: String, host: String, status: Int) async throws {
    let www = "{fqdn: www.example.com, domainName: www.example.com, file: www.example.com.json}"
    let more = "{fqdn: \(fqdn), domainName: \(host), file: www.example.com.json}"
    let service = try await AdministeredService.running(keys: "[\(www)]", more: Self.on)
    let asked = try await Self.call(
      service, as: "alice", "POST", "\(Self.endpoint)/stage",
      #"{"pin":"\#(pin(5).base64)","note":"x"}"#)
    let id = try #require(asked["proposal", "id"]?.stringValue)
    let edits = service.scripted.service.services.edits
    edits.close()
    async let answer = Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(await eventually { edits.waits == 1 })
    // Its end opens the gate.
    try await service.scripted.reload(keys: "[\(www), \(more)]", more: Self.on)
    #expect(try await answer.status == status)
    let isMade = try await service.published()["www.example.com"]?.contains(pin(5))
    #expect(isMade == (status == 200))
    await service.stop()
  }

  @Test("a day later it is over, and told")
  func expiry() async throws {
    let service = try await Self.running()
    let id = try await Self.propose(service, pin(9))
    service.scripted.clock.advance(Proposal.life)
    #expect(try await Self.waiting(service).isEmpty)
    let answer = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(answer.status == 404)
    await service.scripted.service.proposals.tidy(at: service.scripted.clock.now())
    #expect(service.scripted.log.events("proposal_expired").count == 1)
    #expect(try await Self.denied(service).isEmpty)
    await service.stop()
  }

  @Test("what a revoked token proposed is not confirmed")
  func revoked() async throws {
    let service = try await Self.running()
    let token = try service.token("alice", ttl: 604_800)
    let id = try await Self.propose(service, pin(9))
    try await service.scripted.reload(
      keys: "[{fqdn: www.example.com}]",
      more: "ui: {second_person: true, revoked_tokens: ['\(AdminTokenIssuer.id(of: token))']}")
    let answer = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(answer.status == 403 && answer.error?.contains("revoked") == true, "\(answer.json)")
    #expect(try await Self.denied(service).isEmpty)
    await service.stop()
  }

  @Test(
    "a change of server.key ends what tokens of the key before proposed; another edit does not",
    arguments: [false, true])
  func endedKey(isChanged: Bool) async throws {
    let service = try await Self.running()
    let id = try await Self.propose(service, pin(9))
    let (keys, key) = ("[{fqdn: www.example.com}]", isChanged ? ", key: a-key-for-the-tokens" : "")
    try await service.scripted.reload(keys: keys, server: key, more: Self.on)
    let issuer = try AdminTokenIssuer(
      configuration(
        """
        keys: \(keys)
        server: {listen: "127.0.0.1:0"\(key)}
        tls: {dir: "\(service.scripted.directory.path())"}
        """))
    let token = try issuer.token(for: "bob", at: service.scripted.clock.now(), ttl: 3600)
    let answer = try await service.call(
      "POST", "/proposals/\(id)/confirm", "{}", headers: ["Authorization": "Bearer \(token)"])
    #expect(answer.status == (isChanged ? 409 : 200), "\(answer.json)")
    #expect(answer.error?.contains("the key of all tokens") == (isChanged ? true : nil))
    await service.stop()
  }

  @Test("what a server that is killed was about to make is not lost: it waits again")
  func killed() async throws {
    let service = try await Self.running()
    let (book, clock) = (service.scripted.service.proposals, service.scripted.clock)
    let id = try await Self.propose(service, pin(9))
    // How a confirmation begins. No more comes of this one.
    _ = try await book.begin(id, at: clock.now())
    for path in ["confirm", "withdraw"] {
      let answer = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/\(path)", "{}")
      #expect(answer.status == 409, "\(answer.json)")
    }
    #expect(try await Self.waiting(service) == [id])
    #expect(try await Self.denied(service).isEmpty)
    clock.advance(Proposal.longestConfirmation)
    let made = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(made.status == 200 && made.changes.count == 1, "\(made.json)")
    #expect(try await Self.denied(service) == ["alice, confirmed by bob"])
    #expect(try await Self.waiting(service).isEmpty)
    await service.stop()
  }

  @Test("what is being carried out is not over, whatever the time, and what fails waits again")
  func marks() async throws {
    let book = ProposalBook(store: MemoryStore())
    let proposal = Proposal(
      route: "POST /denials", path: [:], query: [], body: "{}", what: "deny", why: "x", basis: "",
      who: "alice", token: "t", at: 0, expires: 100)
    let id = try await book.add(proposal).id
    let begun = try await book.begin(id, at: 90)
    #expect(begun.id == id)
    #expect(try await book.list(at: 150).map(\.id) == [id])
    // Somebody else's mark is not taken away.
    await book.settle(proposal, isMade: false, at: 95)
    #expect(try await book.list(at: 150).map(\.id) == [id])
    await book.settle(begun, isMade: false, at: 95)
    #expect(try await book.list(at: 96) == [proposal])
    #expect(try await book.list(at: 150).isEmpty)
  }

  @Test(
    "what is being carried out is not taken back or confirmed again, however long that takes",
    arguments: [false, true])
  func renewed(isMade: Bool) async throws {
    let (book, clock, gate) = (ProposalBook(store: MemoryStore()), SteppedClock(), Gate())
    let proposal = Proposal(
      route: "POST /denials", path: [:], query: [], body: "{}", what: "deny", why: "x", basis: "",
      who: "alice", token: "t", at: clock.now(), expires: clock.now() + Proposal.life)
    let id = try await book.add(proposal).id
    let begun = try await book.begin(id, at: clock.now())
    let work = Task { () async -> APIError? in
      do throws(APIError) {
        try await book.carryOut(begun, clock: clock) { () async throws(APIError) -> Void in
          await gate.wait()
          if !isMade { throw APIError(409, "not now") }
        }
        return nil
      } catch { return error }
    }
    for _ in 0..<6 {
      #expect(await eventually { clock.sleepers == 1 })
      clock.advance(milliseconds: Proposal.renewal * 1000)
    }
    #expect(await eventually { clock.sleepers == 1 })
    await #expect(throws: APIError.self) { _ = try await book.withdraw(id, at: clock.now()) }
    await #expect(throws: APIError.self) { _ = try await book.begin(id, at: clock.now()) }
    gate.open()
    #expect((await work.value == nil) == isMade)
    #expect(try await book.list(at: clock.now()) == (isMade ? [] : [proposal]))
    #expect(clock.sleepers == 0)
  }

  @Test("of two servers on one store, and of many who confirm at once, one makes it")
  func twoServers() async throws {
    let yaml = "{type: sqlite, dsn: \"DIR/registry.db\"}"
    let one = try ScriptedService(storage: yaml, more: Self.on)
    one.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await one.start()
    await one.service.probe("www.example.com")
    let other = try ScriptedService(storage: yaml, more: Self.on, sharing: one)
    other.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await other.start(isLeading: false)
    let services = [one, other].map(AdministeredService.init)
    let id = try await Self.propose(services[0], pin(9))
    #expect(try await Self.waiting(services[1]) == [id])
    let answers = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
      for index in 0..<8 {
        group.addTask {
          let answer = try await Self.call(
            services[index % 2], as: "bob\(index)", "POST", "/proposals/\(id)/confirm", "{}")
          return (answer.status, answer.changes.count)
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(answers.filter { $0.0 == 200 }.count == 1, "\(answers)")
    #expect(answers.allSatisfy { [200, 404, 409].contains($0.0) }, "\(answers)")
    // Whoever did not make it hears of it from the store.
    for service in services {
      var denied: [String] = []
      for attempt in 0..<300 {
        denied = try await Self.denied(service)
        guard denied.isEmpty else { break }
        // why: a server follows the store in its own time; slower than callers are limited.
        try await Task.sleep(for: .milliseconds(100 + attempt))
      }
      #expect(denied.count == 1)
    }
    await other.service.stop()
    await one.service.stop()
  }

  @Test(
    "a record that somebody wrote into the store confirms nothing, and keeps nobody from proposing")
  func forged() async throws {
    let yaml = "{type: sqlite, dsn: \"DIR/registry.db\"}"
    let scripted = try ScriptedService(storage: yaml, more: Self.on)
    scripted.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await scripted.start()
    await scripted.service.probe("www.example.com")
    let service = AdministeredService(scripted: scripted)
    let id = try await Self.propose(service, pin(9))
    // As whoever can write to the store would have it: alice did not ask for that.
    let base = try SQLiteStore(path: scripted.directory.path("registry.db"))
    let record = try #require(try await base.record(named: ProposalBook.recordName))
    let text = String(decoding: record.bytes, as: UTF8.self)
    let edited = text.replacing(pin(9).base64, with: pin(8).base64)
    #expect(edited != text)
    _ = try await base.replace(
      ProposalBook.recordName, version: record.version, with: Array(edited.utf8))
    #expect(try await Self.waiting(service).isEmpty)
    let answer = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(answer.status == 404)
    #expect(!scripted.log.events("proposals_not_believed").isEmpty)
    let next = try await Self.propose(service, pin(9))
    #expect(try await Self.waiting(service) == [next])
    // An older record under its old version is none either.
    _ = try await base.replace(
      ProposalBook.recordName,
      version: try #require(try await base.record(named: ProposalBook.recordName)).version,
      with: record.bytes)
    #expect(try await Self.waiting(service).isEmpty)
    #expect(try await Self.denied(service).isEmpty)
    await base.close()
    await service.stop()
  }

  @Test("is off by default, and switched on and off at SIGHUP")
  func setting() async throws {
    let service = try await Self.running("")
    let alone = try await Self.call(service, as: "alice", "POST", "/denials", Self.body(pin(8)))
    #expect(alone.status == 200)
    try await service.scripted.reload(keys: "[{fqdn: www.example.com}]", more: Self.on)
    let id = try await Self.propose(service, pin(9))
    try await service.scripted.reload(keys: "[{fqdn: www.example.com}]")
    // What was proposed before still needs another one.
    let own = try await Self.call(service, as: "alice", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(own.status == 403)
    let made = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(made.status == 200)
    await service.stop()
  }

  @Test("one person cannot keep others from proposing")
  func limits() async throws {
    let service = try await Self.running()
    for byte in 0..<UInt8(ProposalBook.mostOfOne) {
      _ = try await Self.propose(service, pin(byte + 20))
    }
    let refused = try await Self.call(service, as: "alice", "POST", "/denials", Self.body(pin(99)))
    #expect(refused.status == 409)
    let other = try await Self.call(service, as: "bob", "POST", "/denials", Self.body(pin(99)))
    #expect(other.status == 202)
    await service.stop()
  }
}
