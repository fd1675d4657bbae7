import CanonicalJSON
import Foundation
import RegistryCore
import RegistryServer
import SslPinningRules
import TLSTools
import Testing

@Suite("What administrators see")
struct AdministrationReadingTests {
  private static let file = AdministeredService.file

  private static func chain(
    _ leaf: SPKIPin, issuer: UInt8 = 200, expires: Int64 = 1_790_000_000
  ) -> ProbeResult {
    let certificates = [
      SeenCertificate(
        pin: leaf, subject: "CN=www.example.com", issuer: "CN=CA", notBefore: 1_770_000_000,
        notAfter: expires),
      SeenCertificate(pin: pin(issuer), subject: "CN=CA", issuer: "CN=Root"),
    ]
    return ProbeResult(observations: [
      ProbeObservation(
        address: "192.0.2.1:443",
        outcome: .accepted(SeenChain(leaf: certificates[0], above: [certificates[1]])))
    ])
  }

  @Test("the overview names documents, keys, readiness, alerts and what expires next")
  func overview() async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com}, {fqdn: api.example.com, file: www.example.com.json}]")
    service.scripted.observer.show(Self.chain(pin(1)), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    service.scripted.observer.show(
      .refused(reason: "expired", presented: pin(3)), at: "api.example.com")
    await service.scripted.service.probe("api.example.com")
    let answer = try await service.call("GET", "/overview")
    let published = try #require(service.scripted.service.currentDocument(Self.file))
    #expect(answer["leader"] == true && answer["readiness", "ready"] == true)
    #expect(answer["version"] == .string(ServerVersion.current))
    #expect(answer["documents", "0", "published", "etag"] == .string(published.entityTag))
    #expect(answer["documents", "0", "published", "entries"] == 4)
    #expect(answer["documents", "0", "endpoints"] == 2)
    #expect(answer["documents", "0", "counts", "active"] == 2)
    #expect(answer["alertsTotal"] == 1 && answer["alerts", "0", "kind"] == "chain-refused")
    #expect(answer["alerts", "0", "endpoint"] == "api.example.com:443")
    let kinds = answer["expiries"]?.arrayValue?.map { $0.objectValue?["kind"] }
    #expect(kinds == ["document", "certificate"])
    #expect(answer["expiries", "1", "at"] == 1_790_000_000)
    let one = try await service.call("GET", "/overview?limit=1")
    #expect(one["expiries"]?.arrayValue?.count == 1 && one["expiriesTotal"] == 2)
    await service.stop()
  }

  @Test("where alerts are too many to be listed, no kind hides another")
  func kinds() async throws {
    let names = (0..<3).map { "{fqdn: h\($0).example.net, file: many.json}" }
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com, file: many.json}, \(names.joined(separator: ", "))]")
    service.scripted.observer.show(Self.chain(pin(1)), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    for index in 0..<3 {
      service.scripted.observer.show(
        .refused(reason: "expired", presented: pin(3)), at: "h\(index).example.net")
      await service.scripted.service.probe("h\(index).example.net")
    }
    service.scripted.clock.advance(60)
    service.scripted.observer.show(Self.chain(pin(2), issuer: 201), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    let answer = try await service.call("GET", "/overview?limit=2")
    #expect(answer["alertsTotal"] == 4)
    let alerts = answer["alerts"]?.arrayValue?.map { $0.objectValue?["kind"] }
    #expect(alerts == ["chain-refused", "key-held"])
    let refusing = answer["refusing", "endpoints"]?.arrayValue?.map { $0.objectValue?["kind"] }
    #expect(refusing == ["chain-refused", "key-held"])
    await service.stop()
  }

  @Test("a document without a key yet has nothing published")
  func waiting() async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com}, {fqdn: silent.example.org}]")
    let answer = try await service.call("GET", "/documents")
    #expect(answer["documents", "1", "file"] == "silent.example.org.json")
    #expect(answer["documents", "1", "published"] == .null)
    let detail = try await service.call("GET", "/documents/silent.example.org.json")
    #expect(detail["page", "items", "0", "health"] == "pending")
    #expect(detail["page", "items", "0", "lastProbe", "outcome"] == "unreachable")
    #expect(detail["page", "items", "0", "worstKeyState"] == .null)
    await service.stop()
  }

  @Test("endpoints come in pages, narrowed by a text and by health")
  func pages() async throws {
    let names = (0..<25).map { "{fqdn: h\($0).example.net, file: many.json}" }
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com, file: many.json}, \(names.joined(separator: ", "))]")
    func ids(_ query: String) async throws -> [String] {
      let page = try await service.call("GET", "/documents/many.json\(query)")["page", "items"]
      return page?.arrayValue?.compactMap { $0.objectValue?["id"]?.stringValue } ?? []
    }
    #expect(try await ids("").count == 26)
    #expect(
      try await ids("?offset=10&limit=3")
        == ["h9.example.net:443", "h10.example.net:443", "h11.example.net:443"])
    #expect(try await ids("?offset=26").isEmpty)
    #expect(try await ids("?q=EXAMPLE.COM") == ["www.example.com:443"])
    #expect(try await ids("?q=h1.&limit=5") == ["h1.example.net:443"])
    #expect(try await ids("?health=ok") == ["www.example.com:443"])
    #expect(try await ids("?health=ok&q=h1").isEmpty)
    let total = try await service.call("GET", "/documents/many.json?q=h2&limit=1")
    #expect(total["page", "total"] == 6 && total["endpoints"] == 26)
    await service.stop()
  }

  @Test(
    "a query that is not quite right is refused",
    arguments: [
      "/documents/FILE?offset=-1", "/documents/FILE?limit=0", "/documents/FILE?limit=1001",
      "/documents/FILE?limit=+5", "/documents/FILE?limit=1e2", "/documents/FILE?limit=",
      "/documents/FILE?limit=1&limit=2", "/documents/FILE?page=1", "/documents/FILE?health=good",
      "/documents/FILE/history?before=0", "/documents/FILE/history?before=x", "/overview?limit=0",
      "/pending?limit=1001", "/session?x", "/reports/summary?bucket=60",
      "/reports/summary?since=2&until=2", "/reports/summary?since=-1",
      "/reports/summary?host=a+b",
    ])
  func strictQueries(path: String) async throws {
    let service = try await AdministeredService.running()
    let answer = try await service.call("GET", path.replacing("FILE", with: Self.file))
    #expect(answer.status == 400, "\(answer.json)")
    await service.stop()
  }

  @Test("an endpoint shows its keys with their chains, who saw them and when they go")
  func endpoint() async throws {
    let service = try await AdministeredService.running()
    service.scripted.observer.show(Self.chain(pin(1)), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    // Another key from a CA that was never seen here: it is held.
    service.scripted.observer.show(
      Self.chain(pin(2), issuer: 201, expires: 1_800_000_000), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    let answer = try await service.call("GET", AdministeredService.endpoint)
    let missed = try #require(answer["keys", "0", "missedSince"]?.integerValue)
    #expect(answer["keys", "0", "state"] == "retiring")
    #expect(answer["keys", "0", "retiresAt"]?.integerValue == missed + 7 * 86_400)
    #expect(answer["keys", "0", "certificateExpires"] == 1_790_000_000)
    #expect(answer["candidates", "0", "state"] == "held")
    #expect(answer["candidates", "0", "reasons", "0", "reason"] == "new-issuer")
    #expect(answer["candidates", "0", "vantages"] == ["direct"])
    #expect(answer["candidates", "0", "chain", "0", "subject"] == "CN=www.example.com")
    #expect(answer["candidates", "0", "chain", "1", "notAfter"] == .null)
    #expect(answer["probe", "observations", "0", "address"] == "192.0.2.1:443")
    #expect(answer["probe", "observations", "0", "presented"] == .string(pin(2).base64))
    #expect(answer["probe", "observations", "0", "chain"]?.arrayValue?.count == 2)
    #expect(answer["alertList", "0", "kind"] == "key-held")
    #expect(answer["health"] == "refusing" && answer["worstKeyState"] == "held")
    #expect(answer["counts", "retiring"] == 1 && answer["counts", "held"] == 1)
    await service.stop()
  }

  @Test("a probe whose observations differ is mixed, with the first reason")
  func mixedProbe() async throws {
    let service = try await AdministeredService.running()
    service.scripted.observer.show(
      ProbeResult(observations: [
        ProbeObservation(
          address: "192.0.2.1:443",
          outcome: .accepted(SeenChain(leaf: SeenCertificate(pin: pin(1))))),
        ProbeObservation(address: "192.0.2.2:443", outcome: .unreachable(reason: "no answer")),
        ProbeObservation(
          address: "192.0.2.3:443", outcome: .refused(reason: "wrong name", presented: pin(4))),
      ]), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    let answer = try await service.call("GET", AdministeredService.endpoint)
    #expect(answer["lastProbe", "outcome"] == "mixed")
    #expect(answer["lastProbe", "reason"] == "no answer")
    #expect(answer["probe", "observations", "2", "presented"] == .string(pin(4).base64))
    #expect(answer["probe", "observations", "1", "presented"] == .null)
    await service.stop()
  }

  @Test("the history comes newest first, page by page, down to its first entry")
  func history() async throws {
    let service = try await AdministeredService.running()
    for byte in 2...5 {
      try await service.call(
        "POST", "\(AdministeredService.endpoint)/stage",
        #"{"pin":"\#(pin(UInt8(byte)).base64)"}"#)
    }
    var (numbers, events): ([Int64], [String]) = ([], [])
    var query = "?limit=2"
    for _ in 0..<10 {
      let page = try await service.call("GET", "/documents/\(Self.file)/history\(query)")
      for entry in page["entries"]?.arrayValue ?? [] {
        numbers.append(entry.objectValue?["number"]?.integerValue ?? 0)
        events.append(entry.objectValue?["event"]?.stringValue ?? "")
      }
      guard let next = page["next"]?.integerValue else { break }
      query = "?limit=2&before=\(next)"
    }
    #expect(numbers == [5, 4, 3, 2, 1])
    #expect(events == Array(repeating: "key_staged", count: 4) + ["key_published"])
    await service.stop()
  }

  @Test("the key sets show who must sign, who has, and which keys are here")
  func keySets() async throws {
    let service = try await AdministeredService.running()
    let signing = try testSigningKey.get()
    let none = try await service.call("GET", "/keysets")
    #expect(none["documents", "0", "sets"] == .array([]) && none["documents", "0", "epoch"] == 0)
    #expect(none["signingKey", "id"] == .string(signing.trustKey.roleKey.id.base64))

    let roots = [try TrustSigningKey.generate(.ed25519), try TrustSigningKey.generate(.p256)]
    var list = KeySetList(registry: Self.file)
    try list.append(
      root: try KeyRole(keys: roots.map(\.roleKey), threshold: 2),
      online: try KeyRole(keys: [signing.trustKey.roleKey], threshold: 1), expires: 1_900_000_000)
    try list.sign(with: roots[0])
    let directory = service.scripted.directory
    try FileManager.default.createDirectory(
      at: directory.file("keysets"), withIntermediateDirectories: true)
    try directory.write(list.json.canonicalBytes, to: "keysets/\(Self.file)")
    let half = try await service.call("GET", "/keysets")
    #expect(half["documents", "0", "epoch"] == 0 && half["documents", "0", "problem"] == .null)
    #expect(half["documents", "0", "sets", "0", "complete"] == false)
    #expect(half["documents", "0", "sets", "0", "published"] == false)
    #expect(half["documents", "0", "sets", "0", "required", "0", "missing"] == 1)
    let signed = half["documents", "0", "sets", "0", "root", "keys"]?.arrayValue?
      .map { $0.objectValue?["signed"] }
    #expect(signed == [true, false])

    try list.sign(with: roots[1])
    try directory.write(list.json.canonicalBytes, to: "keysets/\(Self.file)")
    // Whatever is signed next carries the new set.
    try await service.call(
      "POST", "\(AdministeredService.endpoint)/stage", #"{"pin":"\#(pin(2).base64)"}"#)
    let full = try await service.call("GET", "/keysets")
    #expect(full["documents", "0", "epoch"] == 1)
    #expect(full["documents", "0", "sets", "0", "complete"] == true)
    #expect(full["documents", "0", "sets", "0", "published"] == true)
    #expect(full["documents", "0", "sets", "0", "expires"] == 1_900_000_000)
    #expect(full["documents", "0", "sets", "0", "online", "keys", "0", "held"] == true)
    #expect(full["documents", "0", "sets", "0", "root", "keys", "0", "held"] == false)
    let expiries = try await service.call("GET", "/overview")["expiries"]?.arrayValue ?? []
    #expect(expiries.contains { $0.objectValue?["kind"] == "key-set" })

    try directory.write([UInt8]("{}".utf8), to: "keysets/\(Self.file)")
    let broken = try await service.call("GET", "/keysets")
    #expect(broken["documents", "0", "problem"]?.stringValue?.contains("cannot be used") == true)
    #expect(broken["documents", "0", "sets"]?.arrayValue?.count == 1)
    await service.stop()
  }

  @Test("reports are all zero before any came")
  func reports() async throws {
    let service = try await AdministeredService.running()
    let answer = try await service.call("GET", "/reports/summary?bucket=day&host=a.example")
    #expect(answer["collecting"] == true && answer["reports"] == 0)
    #expect(answer["bucket"] == "day" && answer["groups"] == [])
    #expect(answer["timeline"]?.arrayValue?.isEmpty == false)
    await service.stop()
  }
}
