import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer

@Suite("A document that the configuration has no more", .timeLimit(.minutes(2)))
struct LeftDocumentTests {
  private static let host = "www.example.com"
  private static let storage = "{type: sqlite, dsn: DIR/registry.db}"

  private static func keys(_ file: String) -> String { "[{fqdn: \(host), file: \(file)}]" }

  @Test(
    "an endpoint that was taken out is not watched when it is configured again, and that is told")
  func takenOut() async throws {
    let both = "[{fqdn: \(Self.host), file: a.json}, {fqdn: other.example, file: a.json}]"
    let first = try ScriptedService(keys: both, storage: Self.storage)
    for host in [Self.host, "other.example"] {
      first.observer.show(.accepted(pin(1)), at: host)
    }
    try await first.start()
    for host in [Self.host, "other.example"] { await first.service.probe(host) }
    let answer = try await AdministeredService(scripted: first).call(
      "POST", "/documents/a.json/endpoints/other.example%3A443/remove", #"{"why": "gone"}"#)
    #expect(answer.status == 200)
    try await first.reload(keys: Self.keys("a.json"), storage: Self.storage)
    #expect(first.log.events("endpoint_taken_out").isEmpty)
    try await first.reload(keys: both, storage: Self.storage)
    #expect(
      first.log.events("endpoint_taken_out").map { $0["endpoint"] } == ["other.example:443"])
    await first.service.stop()
    let trial = try await ConfigurationTrial(first.configuration, at: first.clock.now())
    #expect(
      trial.warnings.contains {
        $0.hasPrefix("other.example:443 is configured in a.json and not watched: an administrator")
      })
  }

  @Test("a configuration that asks for another CA than people did is told")
  func differingTerms() async throws {
    let first = try ScriptedService(keys: Self.keys("a.json"), storage: Self.storage)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    // One endpoint is added for the host, and the other one gets terms.
    for (path, body) in [
      ("", #"{"fqdn": "\#(Self.host)", "port": 8443}"#),
      (
        "/\(Self.host)%3A443/terms",
        #"{"ca": ["\#(pin(101).base64)"], "match": "any", "force": true}"#
      ),
    ] {
      let answer = try await AdministeredService(scripted: first).call(
        "POST", "/documents/a.json/endpoints" + path, body)
      #expect((200...201).contains(answer.status))
    }
    // One that was not seen yet would take the terms over.
    await first.service.probe(Self.host)
    #expect(first.log.events("terms_differ").isEmpty)
    let asking = "[{fqdn: \(Self.host), file: a.json, ca: [\"\(pin(100).base64)\"], match: any}]"
    try await first.reload(keys: asking, storage: Self.storage)
    #expect(first.log.events("terms_differ").map { $0["file"] } == ["a.json", "a.json"])
    await first.service.stop()
    let next = try ScriptedService(keys: asking, storage: Self.storage, sharing: first)
    let trial = try await ConfigurationTrial(next.configuration, at: next.clock.now())
    for beginning in [
      "\(Self.host):443 in a.json does not go by ca", "in a.json, \(Self.host):443 and ",
    ] {
      #expect(trial.warnings.contains { $0.hasPrefix(beginning) })
    }
  }

  @Test(
    "an edit that takes a host out of what a person had it ask for is refused, and told after a restart"
  )
  func losesTerms() async throws {
    let (apart, together) = (
      "[{fqdn: n.test, file: a.json, domainName: n.test}, {fqdn: o.test, file: a.json}]",
      "[{fqdn: o.test, file: a.json, domainName: n.test}, {fqdn: o.test, file: a.json}]"
    )
    let first = try ScriptedService(keys: apart, storage: Self.storage)
    for host in ["n.test", "o.test"] { first.observer.show(.accepted(pin(1)), at: host) }
    try await first.start()
    for host in ["n.test", "o.test"] { await first.service.probe(host) }
    let answer = try await AdministeredService(scripted: first).call(
      "POST", "/documents/a.json/endpoints/n.test%3A443/terms",
      #"{"ca": ["\#(pin(101).base64)"], "match": "any", "why": "cannot announce"}"#)
    #expect(answer.status == 200)
    await #expect(throws: RegistryServiceError.self) {
      try await first.service.checkTerms(
        RegistryServerTests.configuration("keys: \(together)\n"))
    }
    try await first.service.checkTerms(
      RegistryServerTests.configuration("keys: \(apart)\n"))
    // A token's end in it counts all the same.
    let service = AdministeredService(scripted: first)
    let header = ["Authorization": "Bearer \(try service.token("lost"))"]
    let id = AdminTokenIssuer.id(of: try service.token("lost"))
    let edit = try RegistryServerTests.configuration(
      "keys: \(together)\nui: {revoked_tokens: [\"\(id)\"]}\n")
    #expect(try await service.call("GET", "/session", headers: header).status == 200)
    await first.service.readAgain { edit }
    #expect(first.log.events("configuration_refused").count == 1)
    #expect(try await service.call("GET", "/session", headers: header).status == 401)
    await first.service.stop()
    let next = try ScriptedService(keys: together, storage: Self.storage, sharing: first)
    let trial = try await ConfigurationTrial(next.configuration, at: next.clock.now())
    #expect(trial.warnings.contains { $0.hasPrefix("in a.json, n.test is asked for match all") })
    try await next.start()
    #expect(next.log.events("terms_differ").count == 1)
    next.observer.show(.accepted(pin(1)), at: "o.test")
    await next.service.probe("o.test")
    let document = try JSONValue(parsing: try await next.get("/api/v1/a.json").body)
    #expect(document.objectValue?["statement"]?.objectValue?["hosts"] == .array([]))
  }

  @Test("does not come back by an edit that asks the hosts it still lists for another CA")
  func backWithTerms() async throws {
    let both =
      "[{fqdn: b.test, file: a.json}, {fqdn: n.b.test, file: a.json}, {fqdn: c.test, file: c.json}]"
    let first = try ScriptedService(keys: both, storage: Self.storage)
    for host in ["b.test", "n.b.test", "c.test"] {
      first.observer.show(.accepted(pin(1)), at: host)
    }
    try await first.start()
    for host in ["b.test", "n.b.test", "c.test"] { await first.service.probe(host) }
    let others = "{fqdn: c.test, file: c.json}"
    func check(_ wild: String) async throws {
      try await first.service.checkTerms(
        RegistryServerTests.configuration(
          "keys: [{fqdn: b.test, file: a.json, domainName: \"*.b.test\"\(wild)}, \(others)]\n"))
    }
    let asking = ", ca: [\"\(pin(101).base64)\"]"
    await #expect(throws: RegistryServiceError.self) { try await check(asking) }
    try await first.reload(keys: "[\(others)]", storage: Self.storage)
    await #expect(throws: RegistryServiceError.self) { try await check(asking) }
    try await check("")
  }

  @Test("is told, and what it denies is denied in the others", arguments: [false, true])
  func left(isRestarted: Bool) async throws {
    let first = try ScriptedService(keys: Self.keys("old.json"), storage: Self.storage)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let answer = try await AdministeredService(scripted: first).call(
      "POST", "/denials", #"{"pin": "\#(pin(9).base64)", "why": "leaked"}"#)
    #expect(answer.status == 200)
    var second = first
    if isRestarted {
      await first.service.stop()
      second = try ScriptedService(
        keys: Self.keys("new.json"), storage: Self.storage, sharing: first)
      second.observer.show(.accepted(pin(1)), at: Self.host)
      try await second.start()
    } else {
      try await first.reload(keys: Self.keys("new.json"), storage: Self.storage)
    }
    await second.service.probe(Self.host)
    let document = try JSONValue(parsing: try await second.get("/api/v1/new.json").body)
    let statement = document.objectValue?["statement"]?.objectValue
    #expect(statement?["denied"] == .array([.string(pin(9).base64)]))
    #expect(second.log.events("document_left").map { $0["file"] } == ["old.json"])
    guard isRestarted else { return }
    let trial = try await ConfigurationTrial(second.configuration, at: second.clock.now())
    #expect(trial.warnings.contains { $0.hasPrefix("old.json was published and is not ") })
    // An allowance ends it, and it does not come back with the next start.
    let allowed = try await AdministeredService(scripted: second).call(
      "POST", "/allowances", #"{"pin": "\#(pin(9).base64)", "why": "it did not"}"#)
    #expect(allowed.status == 200)
    await second.service.stop()
    let third = try ScriptedService(
      keys: Self.keys("new.json"), storage: Self.storage, sharing: first)
    third.observer.show(.accepted(pin(1)), at: Self.host)
    try await third.start()
    let last = try JSONValue(parsing: try await third.get("/api/v1/new.json").body)
    #expect(last.objectValue?["statement"]?.objectValue?["denied"] == .array([]))
    await third.service.stop()
  }

  @Test(
    "an edit that moves a host away from a key that waits for a person is refused, and told after a restart"
  )
  func movesAway() async throws {
    let (before, after) = (
      "[{fqdn: m.test, file: a.json}, {fqdn: o.test, file: b.json}]",
      "[{fqdn: m.test, file: b.json}, {fqdn: o.test, file: b.json}]"
    )
    let first = try ScriptedService(keys: before, storage: Self.storage)
    for host in ["m.test", "o.test"] { first.observer.show(.accepted(pin(1)), at: host) }
    try await first.start()
    for host in ["m.test", "o.test"] { await first.service.probe(host) }
    func check(_ keys: String) async throws {
      try await first.service.checkTerms(RegistryServerTests.configuration("keys: \(keys)\n"))
    }
    try await check(after)
    // Decided after that check. The edit that is refused keeps nobody from deciding.
    for _ in 0..<2 {
      let answer = try await AdministeredService(scripted: first).call(
        "PATCH", "/documents/a.json/endpoints/m.test%3A443", #"{"approval": "manual"}"#)
      #expect(answer.status == 200)
      await #expect(throws: RegistryServiceError.self) {
        try await first.reload(keys: after, storage: Self.storage, judged: true)
      }
    }
    try await first.reload(keys: before, storage: Self.storage, judged: true)
    await #expect(throws: RegistryServiceError.self) { try await check(after) }
    await #expect(throws: RegistryServiceError.self) {
      try await check("[{fqdn: m.test, file: c.json}, {fqdn: o.test, file: b.json}]")
    }
    try await check(before)
    try await check(after.replacing("m.test, file", with: "m.test, approval: manual, file"))
    await first.service.stop()
    let next = try ScriptedService(keys: after, storage: Self.storage, sharing: first)
    let trial = try await ConfigurationTrial(next.configuration, at: next.clock.now())
    let beginning =
      "what people decided in a.json does not go along to b.json: the keys of m.test:443"
    #expect(trial.warnings.contains { $0.hasPrefix(beginning) })
    try await next.start()
    #expect(
      next.log.events("words_left").allSatisfy {
        $0["message"]?.stringValue?.hasPrefix(beginning) == true
      })
    #expect(next.log.events("words_left").count == 1)
    for host in ["m.test", "o.test"] {
      next.observer.show(.accepted(pin(1)), at: host)
      await next.service.probe(host)
    }
    await next.service.stop()
    // It is settled by then.
    let last = try ScriptedService(keys: after, storage: Self.storage, sharing: next)
    try await last.start()
    #expect(last.log.events("words_left").isEmpty)
  }

  @Test(
    "a new name that would end the watching of what people added is refused, and told after a restart"
  )
  func renamedBesideAdded() async throws {
    let first = try ScriptedService(keys: Self.keys("a.json"), storage: Self.storage)
    for host in [Self.host, "n.test"] { first.observer.show(.accepted(pin(1)), at: host) }
    try await first.start()
    func check(_ keys: String) async throws {
      try await first.service.checkTerms(RegistryServerTests.configuration("keys: \(keys)\n"))
    }
    let renamed = Self.keys("new.json")
    try await check(renamed)
    let answer = try await AdministeredService(scripted: first).call(
      "POST", "/documents/a.json/endpoints", #"{"fqdn": "n.test"}"#)
    #expect(answer.status == 201)
    for host in [Self.host, "n.test"] { await first.service.probe(host) }
    try await check(Self.keys("a.json"))
    await #expect(throws: RegistryServiceError.self) { try await check(renamed) }
    // Watched there, or in a third document. And nobody asks about a document that goes with all its hosts.
    for file in ["new.json", "third.json"] {
      try await check("[{fqdn: \(Self.host), file: new.json}, {fqdn: n.test, file: \(file)}]")
    }
    try await check("[{fqdn: o.test, file: new.json}]")
    await first.service.stop()
    let beginning =
      "what people decided in a.json does not go along to another document: n.test:443 was added"
    for isNew in [true, false] {
      let next = try ScriptedService(keys: renamed, storage: Self.storage, sharing: first)
      let trial = try await ConfigurationTrial(next.configuration, at: next.clock.now())
      #expect(trial.warnings.contains { $0.hasPrefix(beginning) } == isNew)
      try await next.start()
      let told = next.log.events("words_left").compactMap { $0["message"]?.stringValue }
      #expect(told.map { $0.hasPrefix(beginning) } == (isNew ? [true] : []))
      next.observer.show(.accepted(pin(1)), at: Self.host)
      await next.service.probe(Self.host)
      await next.service.stop()
    }
  }

  @Test(
    "a host that moved is not taken out of its old document while a key of it waits in the new one")
  func waitsElsewhere() async throws {
    let server = try ScriptedService(
      keys: "[{fqdn: m.test, file: a.json}, {fqdn: o.test, file: a.json}]", storage: Self.storage)
    for host in ["m.test", "o.test"] { server.observer.show(.accepted(pin(1)), at: host) }
    try await server.start()
    for host in ["m.test", "o.test"] { await server.service.probe(host) }
    // Before: the server probes what an edit brings by itself, and a key of before would be the first one there.
    server.observer.show(.accepted(pin(2)), at: "m.test")
    try await server.reload(
      keys: "[{fqdn: m.test, file: b.json, approval: manual}, {fqdn: o.test, file: a.json}]",
      storage: Self.storage, judged: true)
    for _ in 0..<4 { await server.service.probe("m.test") }
    let people = AdministeredService(scripted: server)
    func remove() async throws -> Int {
      try await people.call(
        "POST", "/documents/a.json/endpoints/m.test%3A443/remove", #"{"why": "moved"}"#
      ).status
    }
    #expect(try await remove() == 409)
    let approval = try await people.call(
      "POST", "/documents/b.json/endpoints/m.test%3A443/approve", #"{"pin": "\#(pin(2).base64)"}"#)
    #expect(approval.status == 200)
    // It was not seen by a probe since: a person said that it is the host's.
    #expect(try await remove() == 200)
  }

  @Test("denies no key any more, when it is back, that was allowed meanwhile")
  func allowedMeanwhile() async throws {
    let both = "[{fqdn: m.test, file: a.json}, {fqdn: o.test, file: b.json}]"
    let first = try ScriptedService(keys: both, storage: Self.storage)
    for host in ["m.test", "o.test"] { first.observer.show(.accepted(pin(1)), at: host) }
    try await first.start()
    for host in ["m.test", "o.test"] { await first.service.probe(host) }
    let service = AdministeredService(scripted: first)
    let body = #"{"pin": "\#(pin(9).base64)", "why": "leaked?"}"#
    #expect(try await service.call("POST", "/denials", body).status == 200)
    try await first.reload(keys: "[{fqdn: o.test, file: b.json}]", storage: Self.storage)
    #expect(try await service.call("POST", "/allowances", body).status == 200)
    try await first.reload(keys: both, storage: Self.storage)
    await first.service.probe("m.test")
    let document = try JSONValue(parsing: try await first.get("/api/v1/a.json").body)
    let statement = document.objectValue?["statement"]?.objectValue
    #expect(statement?["denied"] == .array([]))
  }

  @Test("a key that waits for a person waits where its host moves to another document, too")
  func heldElsewhere() async throws {
    let other = "{fqdn: o.test, file: b.json}"
    let first = try ScriptedService(
      keys: "[{fqdn: m.test, file: a.json}, \(other)]", storage: Self.storage)
    func show(_ key: UInt8, under authority: UInt8, at host: String = "m.test") async {
      first.observer.show(
        LedgerBench.probe([(LedgerBench.here, "", .key(key, under: authority))]), at: host)
      for _ in 0..<4 { await first.service.probe(host) }
    }
    for host in ["m.test", "o.test"] {
      first.observer.show(
        LedgerBench.probe([(LedgerBench.here, "", .key(1, under: 101))]), at: host)
    }
    try await first.start()
    await show(1, under: 101, at: "o.test")
    await show(1, under: 101)
    await show(9, under: 109)
    #expect(try await first.pins(in: "a.json")["m.test"] == [pin(1)])
    // In two edits: what is left of it does not say what waited.
    for keys in [other, "{fqdn: m.test, file: b.json}, \(other)"] {
      try await first.reload(keys: "[\(keys)]", storage: Self.storage)
    }
    await show(9, under: 109)
    #expect(try await first.pins(in: "b.json")["m.test"] == nil)
    await show(1, under: 101)
    #expect(try await first.pins(in: "b.json")["m.test"] == [pin(1)])
    await first.service.stop()
  }
}
