import CanonicalJSON
import HTTPServing
import SslPinningRules
import TLSTools
import Testing

@testable import RegistryServer

@Suite("Probes say whether the server is alive, started and ready, and why not")
struct HealthTests {
  private struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var facts: HealthFacts
    var isStarted: Bool
    var isReady: Bool
    var testDescription: String { name }
  }

  private static let full = HealthFacts.Failure(kind: .store, reason: "disk full")

  private static let cases = [
    Case(
      name: "before watching began", facts: HealthFacts(waitingFiles: ["a"]), isStarted: false,
      isReady: false),
    Case(
      name: "while first probes are missing",
      facts: HealthFacts(waitingFiles: ["a"], missingFirstProbes: 2),
      isStarted: false, isReady: false),
    Case(
      name: "one of two documents published, probes missing",
      facts: HealthFacts(waitingFiles: ["a"], hasDocument: true, missingFirstProbes: 1),
      isStarted: false, isReady: false),
    Case(
      name: "every document from the store, nobody probed yet",
      facts: HealthFacts(hasDocument: true, missingFirstProbes: 7), isStarted: true, isReady: true),
    Case(
      name: "every document from the store, before watching began",
      facts: HealthFacts(hasDocument: true), isStarted: true, isReady: true),
    Case(
      name: "probed everywhere, one endpoint is down",
      facts: HealthFacts(waitingFiles: ["a"], hasDocument: true, missingFirstProbes: 0),
      isStarted: true, isReady: true),
    Case(
      name: "probed everywhere, all endpoints are down",
      facts: HealthFacts(waitingFiles: ["a"], missingFirstProbes: 0), isStarted: true,
      isReady: false
    ),
    Case(
      name: "the store fails",
      facts: HealthFacts(hasDocument: true, missingFirstProbes: 0, failures: ["a": Self.full]),
      isStarted: true, isReady: true),
    Case(
      name: "nobody leads",
      facts: HealthFacts(hasDocument: true, missingFirstProbes: 0, leaderTrouble: "nobody leads"),
      isStarted: true, isReady: true),
    Case(
      name: "stopping",
      facts: HealthFacts(hasDocument: true, missingFirstProbes: 0, isStopping: true),
      isStarted: true, isReady: false),
    Case(
      name: "the store has not answered since the start",
      facts: HealthFacts(hasDocument: true, missingFirstProbes: 0, awaitedStore: "away"),
      isStarted: false, isReady: false),
    Case(
      name: "nothing is configured", facts: HealthFacts(missingFirstProbes: 0), isStarted: true,
      isReady: false),
  ]

  @Test("decides by what is published and probed", arguments: cases)
  private func decisions(_ test: Case) {
    #expect(test.facts.startup.isGood == test.isStarted)
    #expect(test.facts.readiness.isGood == test.isReady)
    #expect(test.facts.liveness.isGood)
    #expect(test.facts.startup.reasons.isEmpty == test.isStarted)
    #expect(test.facts.readiness.code == (test.isReady ? 200 : 503))
  }

  @Test("names what is missing, and of very many documents the first")
  func reasons() {
    let files = (0..<500).map { "\($0).json" }
    let facts = HealthFacts(
      waitingFiles: files, missingFirstProbes: 3,
      failures: ["x": HealthFacts.Failure(kind: .store, reason: "why")], isStopping: true)
    #expect(facts.startup.reasons.first == "3 endpoints have not been probed yet")
    #expect(facts.startup.reasons.last == "480 more documents wait likewise")
    let reasons = facts.readiness.reasons
    #expect(reasons.count == 23)
    #expect(reasons.first == "the server is stopping")
    #expect(reasons.last == "x: why")
  }

  @Test("names what waits in order, until it is published, and whatever an edit brings")
  func waiting() throws {
    let documents = PublishedDocuments(files: ["c", "a", "d", "b", "a"])
    func publish(_ file: String) throws -> Bool {
      let key = RegistryKey(
        pattern: try HostPattern("a.example"), pin: .success(pin(1)), expires: 2)
      let json = try RegistryDocument(registry: file, keys: [key]).signed(format1Key: nil)
      return documents.publish(
        PublishedDocument(
          file: file, bytes: JSONValue.object(json).canonicalBytes, document: json, signed: 1))
    }
    #expect(documents.waitingFiles == ["a", "b", "c", "d"] && !documents.hasDocument)
    for (file, left) in [("b", ["a", "c", "d"]), ("b", ["a", "c", "d"]), ("d", ["a", "c"])] {
      #expect(try publish(file))
      #expect(documents.waitingFiles == left && documents.hasDocument)
    }
    // What is not configured is not published, and nothing waits less.
    #expect(try !publish("bb"))
    #expect(documents.waitingFiles == ["a", "c"])
    documents.serve(files: ["e", "b", "c"])
    #expect(documents.waitingFiles == ["c", "e"] && documents.hasDocument)
    documents.serve(files: ["e"])
    #expect(documents.waitingFiles == ["e"] && !documents.hasDocument)
    #expect(try publish("e"))
    #expect(ServiceHealth().facts(of: documents) == HealthFacts(hasDocument: true))
  }

  @Test("strangers are told the kinds of trouble, and no name of a file, a host or a database")
  func strangers() {
    let facts = HealthFacts(
      waitingFiles: ["secret.json"], missingFirstProbes: 1,
      failures: [
        "secret.json": HealthFacts.Failure(kind: .store, reason: "postgres://secret:5432 is gone"),
        "files/secret.json": HealthFacts.Failure(kind: .files, reason: "/secret is full"),
        "other.json": HealthFacts.Failure(kind: .signing, reason: "no secret key"),
      ], refusedConfiguration: "line 7: secret", isStopping: true)
    let told = facts.readiness.forStrangers
    #expect(
      told.reasons == ["stopping", "waiting", "store", "signing", "files", "configuration"])
    #expect(told.status == facts.readiness.status && told.code == facts.readiness.code)
    #expect(facts.startup.forStrangers.reasons == ["probes", "waiting"])
    #expect(facts.readiness.reasons.last == "the configuration was not read again: line 7: secret")
    for report in [told, facts.startup.forStrangers, facts.liveness.forStrangers] {
      #expect(!String(decoding: report.body(accept: nil).bytes, as: UTF8.self).contains("secret"))
    }
  }

  @Test("answers in JSON, and in text for whoever prefers that")
  func bodies() {
    let report = HealthReport(status: "not ready", isGood: false, reasons: ["a: b", "c"])
    let json = report.body(accept: nil)
    #expect(json.contentType == "application/json")
    #expect(
      String(decoding: json.bytes, as: UTF8.self)
        == "{\"reasons\":[\"a: b\",\"c\"],\"status\":\"not ready\"}\n")
    let text = report.body(accept: "text/plain")
    #expect(text.contentType == "text/plain; charset=utf-8")
    #expect(String(decoding: text.bytes, as: UTF8.self) == "not ready\na: b\nc\n")
  }

  @Test(
    "reads Accept by its weights, the most specific range first",
    arguments: [
      (nil, false), ("", false), ("*/*", false), ("text/plain", true), ("TEXT/Plain", true),
      ("text/*", true), ("application/json", false), ("application/json, text/plain", false),
      ("application/json;q=0.5, text/plain;q=0.9", true), ("text/plain;q=0.5, */*", false),
      ("text/plain;q=0", false), ("application/json;q=0, */*;q=0.1", true),
      ("text/html, text/plain;q=0.8, */*;q=0.1", true), (";;,=,q=5", false),
      ("text/plain; charset=utf-8; q=0.7 , application/*;q=0.2", true),
      ("text/plain;q=nan, */*;q=0.1", true), ("text/plain, text/plain;q=0", true),
    ] as [(String?, Bool)])
  func accept(_ header: String?, _ isPlain: Bool) {
    #expect(AcceptHeader.prefers("text/plain", to: "application/json", header) == isPlain)
  }
}
