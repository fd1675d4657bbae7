import CanonicalJSON
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// A server that never read a record, since somebody changed it, and an edit that gives its hosts to another document.
@Suite("A document whose record was never believed", .timeLimit(.minutes(3)))
struct UnreadDocumentTests {
  private static let storage = "{type: sqlite, dsn: \"DIR/registry.db\"}"

  /// What an edit does to the document that is not believed.
  enum Edit: String, CaseIterable, Sendable {
    /// It has another name.
    case renamed
    /// One of its hosts is another document's.
    case moved

    var before: String {
      self == .renamed
        ? "[{fqdn: m.test, file: a.json}]"
        : "[{fqdn: m.test, file: a.json}, {fqdn: n.test, file: a.json}, {fqdn: o.test, file: b.json}]"
    }

    var after: String { before.replacing("m.test, file: a.json", with: "m.test, file: b.json") }
  }

  /// A server whose database is changed while it is stopped.
  private struct Stage {
    let first: ScriptedService

    init(_ edit: Edit) async throws {
      first = try ScriptedService(keys: edit.before, storage: UnreadDocumentTests.storage)
      for host in ["m.test", "n.test", "o.test"] { show(1, under: 101, at: host, of: first) }
      try await first.start()
      for host in ["m.test", "n.test", "o.test"] { await first.service.probe(host) }
      let answer = try await AdministeredService(scripted: first).call(
        "POST", "/denials", #"{"pin": "\#(pin(9).base64)", "why": "leaked"}"#)
      try #require(answer.status == 200)
      await first.service.stop()
    }

    /// Has the record of the first document changed by somebody without the key.
    func tamper(
      _ text: String = "\"firstSeen\":1", with other: String = "\"firstSeen\":2"
    ) async throws {
      let base = try first.configuration.storage.open()
      let record = try #require(try await base.record(named: "a.json"))
      let before = String(decoding: record.bytes, as: UTF8.self)
      let bytes = [UInt8](before.replacing(text, with: other).utf8)
      try #require(bytes != record.bytes)
      _ = try await base.replace("a.json", version: record.version, with: bytes)
      await base.close()
    }

    /// The next server, to which an attacker shows himself at the host that moves.
    func next(_ keys: String) async throws -> ScriptedService {
      let next = try ScriptedService(
        keys: keys, storage: UnreadDocumentTests.storage, sharing: first)
      for host in ["n.test", "o.test"] { show(1, under: 101, at: host, of: next) }
      show(7, under: 109, at: "m.test", of: next)
      try await next.start()
      return next
    }

    func show(_ key: UInt8, under authority: UInt8, at host: String, of server: ScriptedService) {
      server.observer.show(
        LedgerBench.probe([(LedgerBench.here, "", .key(key, under: authority))]), at: host)
    }
  }

  /// What the document lists for the host that moved, and what it denies; `nil` if there is none.
  private static func listed(_ server: ScriptedService) async throws -> [SPKIPin]? {
    guard server.service.currentDocument("b.json") != nil else { return nil }
    return try await server.pins(in: "b.json")["m.test"]
  }

  private static func denied(_ server: ScriptedService) throws -> JSONValue? {
    let bytes = try #require(server.service.currentDocument("b.json")).bytes
    return try JSONValue(parsing: bytes).objectValue?["statement"]?.objectValue?["denied"]
  }

  @Test(
    "gives its hosts away with what its last document lists and denies: no first sight, and it is told",
    arguments: Edit.allCases, [false, true])
  func givesAway(_ edit: Edit, isRestarted: Bool) async throws {
    let stage = try await Stage(edit)
    try await stage.tamper()
    let server = try await stage.next(isRestarted ? edit.after : edit.before)
    #expect(server.log.events("seal_broken").count == 1)
    if !isRestarted {
      try await server.reload(keys: edit.after, storage: Self.storage)
    }
    for _ in 0..<4 { await server.service.probe("m.test") }
    #expect(try await Self.listed(server) == nil)
    stage.show(1, under: 101, at: "m.test", of: server)
    for _ in 0..<4 { await server.service.probe("m.test") }
    #expect(try await Self.listed(server) == [pin(1)])
    #expect(try Self.denied(server) == .array([.string(pin(9).base64)]))
    let left = server.log.events("document_left").map { $0["file"] }
    #expect(left == (edit == .renamed ? ["a.json"] : []))
    let told = server.log.events("words_left").compactMap { $0["message"]?.stringValue }
    #expect(told.count == (isRestarted ? 1 : 0))
    #expect(told.allSatisfy { $0.contains("in a.json") && $0.contains("m.test:443") })
    await server.service.stop()
  }

  @Test(
    "gives no host away by SIGHUP: nobody knows what people decided about it",
    arguments: Edit.allCases)
  func keepsWords(_ edit: Edit) async throws {
    let stage = try await Stage(edit)
    try await stage.tamper()
    let server = try await stage.next(edit.before)
    await #expect(throws: RegistryServiceError.self) {
      try await server.reload(keys: edit.after, storage: Self.storage, judged: true)
    }
    // Other edits are taken.
    let more = edit.before.replacing("]", with: ", {fqdn: p.test, file: p.json}]")
    try await server.reload(keys: more, storage: Self.storage, judged: true)
    await server.service.stop()
    // The same edit, once the record is there.
    let repair = try StoreRepair(server.configuration)
    _ = try await repair.reset("a.json", to: .anew, at: server.clock.now())
    await repair.close()
    let next = try await stage.next(edit.before)
    try await next.reload(keys: edit.after, storage: Self.storage, judged: true)
    await next.service.stop()
  }

  @Test("denies nothing by a statement that its keys did not sign, and lists what they signed")
  func forgedStatement() async throws {
    let stage = try await Stage(.renamed)
    try await stage.tamper(pin(9).base64, with: pin(8).base64)
    let server = try await stage.next(Edit.renamed.after)
    for _ in 0..<4 { await server.service.probe("m.test") }
    #expect(try await Self.listed(server) == nil)
    stage.show(1, under: 101, at: "m.test", of: server)
    for _ in 0..<4 { await server.service.probe("m.test") }
    #expect(try await Self.listed(server) == [pin(1)])
    #expect(try Self.denied(server) == .array([]))
    await server.service.stop()
  }
}
