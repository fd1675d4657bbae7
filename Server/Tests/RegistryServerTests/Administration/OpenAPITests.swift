import CanonicalJSON
import Foundation
import SslPinningPlatform
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("docs/openapi.yaml")
struct OpenAPITests {
  private typealias Operation = OpenAPIDocument.Operation

  private func document() throws -> OpenAPIDocument { try OpenAPIDocument.shared.get() }

  @Test("every path and method in it is served, and every one that is served is in it")
  func routes() throws {
    let directory = try makeKeyDirectory()
    let administration = RegistryAdministration(
      coordinators: { [] }, store: MemoryStore(), clock: SteadyClock(TestClock()), changed: { _ in }
    )
    let services = CoordinatorServices(
      signing: Locked(try DocumentSigner(directory: directory.path())), store: MemoryStore(),
      published: PublishedDocuments(files: []), health: ServiceHealth(), log: .silent)
    let routes = AdministrationRoutes(
      administration: administration, services: services, isLeading: { false },
      reports: NoReports(clock: TestClock()), version: "")
    let described = try document().operations.map { "\($0.method) \($0.path)" }
    let served = routes.all.map { "\($0.method.rawValue) \($0.pattern)" }
    #expect(Set(described) == Set(served))
    #expect(described.count == served.count)
  }

  /// A call for each operation, in an order in which each finds what it needs.
  private static let calls: [(id: String, path: String, body: String?, status: Int)] = {
    let endpoint = AdministeredService.endpoint
    let file = "/documents/\(AdministeredService.file)"
    func key(_ byte: UInt8) -> String { #"{"pin":"\#(pin(byte).base64)""# }
    return [
      ("overview", "/overview", nil, 200), ("session", "/session", nil, 200),
      ("documents", "/documents", nil, 200), ("document", file, nil, 200),
      ("history", "\(file)/history", nil, 200), ("pending", "/pending", nil, 200),
      ("pendingGroups", "/pending/groups", nil, 200), ("listEndings", "/endings", nil, 200),
      ("searchEndpoints", "/endpoints", nil, 200),
      (
        "decideHeld", "/pending/decide",
        #"{"decision":"deny","cause":"manual","until":1,"keys":1,"why":"x"}"#, 404
      ),
      ("keysets", "/keysets", nil, 200), ("tokens", "/tokens", nil, 200),
      ("reportSummary", "/reports/summary", nil, 200),
      ("endpoint", endpoint, nil, 200),
      ("approveKey", "\(endpoint)/approve", key(2) + #","why":"x"}"#, 200),
      ("stageKey", "\(endpoint)/stage", key(3) + "}", 200),
      ("revokeKey", "\(endpoint)/revoke", key(3) + "}", 200),
      ("denyKey", "/denials", key(0) + #","why":"x"}"#, 200), ("denials", "/denials", nil, 200),
      ("denyKey", "/denials", key(4) + #","why":"x"}"#, 200),
      ("allowKey", "/denials/" + String(repeating: "A", count: 43), nil, 200),
      ("allowNamedKey", "/allowances", key(4) + "}", 200),
      ("changeEndpoint", endpoint, #"{"interval":"30s"}"#, 200),
      ("setTerms", "\(endpoint)/terms", #"{"enforce":"on","why":"x"}"#, 200),
      ("addEndpoint", "\(file)/endpoints", #"{"fqdn":"b.example"}"#, 201),
      ("removeEndpoint", "\(file)/endpoints/b.example%3A443", nil, 200),
      ("changeEndpointByPost", "\(endpoint)/change", #"{"interval":"40s"}"#, 200),
      ("addEndpoint", "\(file)/endpoints", #"{"fqdn":"c.example"}"#, 201),
      ("removeEndpointByPost", "\(file)/endpoints/c.example%3A443/remove", #"{"why":"x"}"#, 200),
      ("tombstones", "/tombstones", nil, 200), ("proposals", "/proposals", nil, 200),
      ("confirmProposal", "/proposals/none/confirm", "{}", 404),
      ("withdrawProposal", "/proposals/none/withdraw", "{}", 404),
      ("adoptClock", "/clock/adopt", #"{"why":"x"}"#, 200),
    ]
  }()

  @Test("a real server answers each operation as it says")
  func served() async throws {
    let operations = try document().operations
    #expect(Set(Self.calls.map(\.id)) == Set(operations.map(\.id)))
    let service = try await AdministeredService.running()
    try await service.call("PATCH", AdministeredService.endpoint, #"{"approval":"manual"}"#)
    await service.show(pin(2))
    for call in Self.calls {
      let operation = try #require(operations.first { $0.id == call.id })
      let method = operation.method
      if call.id == "adoptClock" { service.scripted.clock.setWrong(by: 86_400) }
      #expect(
        try document().operation(method, call.path)?.id == call.id, "\(call.id): another path")
      // The call itself compares the answer with the description.
      let answer = try await service.call(method, call.path, call.body)
      #expect(answer.status == call.status, "\(call.id): \(answer.json)")
    }
    await service.stop()
  }

  @Test("the sums of real reports are what it says")
  func reports() throws {
    var endpointKeys = ReportLedger()
    let now = ReportFactory.now
    for leaf in 1...3 {
      endpointKeys.add(try ReportFactory.report(leaf: UInt8(leaf), id: "\(leaf)"), at: now)
    }
    var bare = try ReportFactory.report("b.example", result: nil)
    (bare.app, bare.version, bare.platform) = ("", "", "")
    bare.chain = PresentedChain(leafPin: nil)
    endpointKeys.add(bare, at: now)
    endpointKeys.add(try ReportFactory.report("x.example"), isListed: false, at: now)
    var json = ReportSummary(of: endpointKeys, at: now)
      .json(since: now - 7200, until: now + 1, bucket: .hour)
    json["collecting"] = true
    #expect(json["reports"] == 4 && json["groups"]?.arrayValue?.count == 4)
    let problems = try document().schemas.problems(
      .object(json), ["$ref": "#/components/schemas/ReportSummary"])
    #expect(problems.isEmpty, "\(problems)")
  }

  @Test("every example is what its schema asks for")
  func examples() throws {
    let document = try document()
    var count = 0
    func check(_ content: JSONValue?, at place: String) {
      guard let media = content?.objectValue?["application/json"]?.objectValue,
        let example = media["example"]
      else { return }
      count += 1
      let problems = document.schemas.problems(example, media["schema"], at: place)
      #expect(problems.isEmpty, "\(problems)")
    }
    for operation in document.operations {
      check(operation.json["requestBody"]?.objectValue?["content"], at: operation.id)
      for (status, response) in operation.json["responses"]?.objectValue ?? JSONObject() {
        check(
          OpenAPIDocument.resolve(response, in: document.root)?["content"],
          at: "\(operation.id) \(status)")
      }
    }
    #expect(count > 60)
  }

  @Test("every operation has an id of its own, its path's parameters, and the refusals of all")
  func operations() throws {
    let document = try document()
    #expect(Set(document.operations.map(\.id)).count == document.operations.count)
    for operation in document.operations {
      let inPath = operation.path.split(separator: "/").filter { $0.hasPrefix("{") }
        .map { String($0.dropFirst().dropLast()) }
      let described = operation.parameters.filter { $0["in"] == "path" }
        .compactMap { $0["name"]?.stringValue }
      #expect(inPath == described, "\(operation.id)")
      #expect(operation.parameters.allSatisfy { $0["schema"] != nil }, "\(operation.id)")
      let statuses = Set(operation.json["responses"]?.objectValue?.keys ?? [])
      #expect(statuses.isSuperset(of: ["400", "401", "403", "429"]), "\(operation.id)")
      #expect(
        (operation.json["requestBody"] != nil) == statuses.contains("413"), "\(operation.id)")
    }
    #expect(document.root["security"] == [["token": []]])
    #expect(document.operations.allSatisfy { $0.json["security"] == nil })
  }

  @Test("every schema is used, and every reference leads to one")
  func references() throws {
    let document = try document()
    var seen: Set<String> = []
    func walk(_ value: JSONValue) {
      switch value {
      case .object(let object):
        if let reference = object["$ref"]?.stringValue {
          #expect(
            OpenAPIDocument.resolve(value, in: document.root) != nil, "\(reference) leads nowhere")
          seen.insert(reference)
        }
        for (_, value) in object { walk(value) }
      case .array(let elements): elements.forEach(walk)
      default: break
      }
    }
    walk(.object(document.root))
    for (name, schema) in document.schemas.schemas {
      let unknown = SchemaCheck.unknownKeywords(in: schema)
      #expect(unknown.isEmpty, "\(name): \(unknown)")
      #expect(seen.contains("#/components/schemas/\(name)"), "\(name) is not used")
    }
  }

  @Test("a body has no members but those described: others are refused")
  func strictBodies() throws {
    let document = try document()
    for operation in document.operations {
      guard let body = operation.json["requestBody"]?.objectValue else { continue }
      let media = body["content"]?.objectValue?["application/json"]?.objectValue
      let schema = OpenAPIDocument.resolve(media?["schema"], in: document.root)
      #expect(schema?["additionalProperties"] == false, "\(operation.id)")
    }
  }

  @Test(
    "the comparison notices what is missing, too much, of another type, and not known to it",
    arguments: [
      (#"{"a":1}"#, true), (#"{"a":1,"b":null}"#, true), (#"{"a":1,"b":"x"}"#, true),
      (#"{"a":1,"c":["x"]}"#, true), ("{}", false), (#"{"a":"1"}"#, false), (#"{"a":1.5}"#, false),
      (#"{"a":11}"#, false), (#"{"a":null}"#, false), (#"{"a":1,"b":"z"}"#, false),
      (#"{"a":1,"c":["xxx"]}"#, false), (#"{"a":1,"c":"x"}"#, false), (#"{"a":1,"d":1}"#, false),
      (#"{"a":1,"g":"AB="}"#, true), (#"{"a":1,"g":"A="}"#, false), (#"{"a":1,"g":"AB=="}"#, false),
      (#"{"a":1,"e":1}"#, false), (#"{"a":1,"f":1}"#, false), ("[]", false),
    ])
  func schemaCheck(value: String, isGood: Bool) throws {
    let schema = try JSONValue(
      parsing: [UInt8](
        #"""
        {"type":"object","required":["a"],"properties":{"a":{"type":"integer","maximum":10},
         "b":{"type":"string","nullable":true,"enum":["x","y",null]},
         "c":{"type":"array","items":{"$ref":"#/components/schemas/S"}},
         "e":{"type":"integer","multipleOf":1},"f":{"$ref":"#/components/schemas/T"},
         "g":{"type":"string","pattern":"^[A-Z]{2}=$"}}}
        """#.utf8))
    let check = SchemaCheck(schemas: ["S": ["type": "string", "maxLength": 2]])
    let problems = check.problems(try JSONValue(parsing: [UInt8](value.utf8)), schema)
    #expect(problems.isEmpty == isGood, "\(problems)")
  }
}
