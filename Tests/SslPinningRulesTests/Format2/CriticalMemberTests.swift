import CanonicalJSON
import Testing

@testable import SslPinningRules

@Suite("Members that must not be ignored")
struct CriticalMemberTests {
  private static let start = RegistrySimulator.start

  /// A member that nobody knows, and the list that says so.
  private static func demanding(_ name: String = "x") -> [(String, JSONValue)] {
    [(name, .bool(true)), ("critical", .array([.string(name)]))]
  }

  /// An entry of `hosts` that demands what nobody knows.
  private static func host(_ pattern: String, _ name: String) -> JSONValue {
    var entry: JSONObject = ["domainName": .string(pattern)]
    for (name, value) in demanding(name) { entry[name] = value }
    return .object(entry)
  }

  /// What is no list of unknown members. `x` is there, `absent` is not, and `known` every client knows.
  private static func badLists(known: String) -> [JSONValue] {
    [
      .array([]), .string("x"), .null, .bool(true), .array([.number(1)]),
      .array([.string("x"), .string("x")]), .array([.string("absent")]),
      .array([.string("x"), .string(known)]), .array([.string("critical")]),
    ]
  }

  @Test("as many as a thief can write are read in no time", .timeLimit(.minutes(1)))
  func many() throws {
    let names = (0..<200_000).map { "n\($0)" }
    var members =
      try JSONValue(
        parsing: Array("{\(names.map { "\"\($0)\":0" }.joined(separator: ","))}".utf8)
      ).objectValue ?? [:]
    members["critical"] = .array(names.map { .string($0) })
    #expect(try members.criticalMembers(beside: []) == Array(names.prefix(64)))
    members["critical"] = .array((names + ["n7"]).map { .string($0) })
    #expect(throws: DocumentFault.member("critical")) {
      try members.criticalMembers(beside: [])
    }
  }

  @Test("a statement that demands what is not known is refused; what is believed stays in force")
  func statement() throws {
    var registry = RegistrySimulator()
    let client = try registry.client()
    registry.version = 2
    registry.pins = [("a.example", 2)]
    registry.extraStatementMembers = Self.demanding()
    let update = try client.update(with: registry)
    #expect(update.refusal == .clientTooOld(["x"]))
    #expect(update.refusal?.description.contains("hint: ") == true)
    #expect(update.registry.stamp == client.stamp)
    #expect(try update.registry.accepts(leaf: 1))
    // No first document is exempt: half understood, it would pin wider than was meant.
    #expect(throws: RegistryError.clientTooOld(["x"])) { try registry.client() }
    // Only the registry's keys can say so.
    registry.online = [2]
    #expect(
      try client.update(with: registry).refusal
        == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 0))))
    // The control: the same member, not critical.
    registry.online = [0]
    registry.extraStatementMembers.removeLast()
    #expect(try client.update(with: registry).refusal == nil)
  }

  @Test("an entry that demands what is not known refuses its own hosts alone, report-only or not")
  func hostEntry() throws {
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 2)]
    registry.extraStatementMembers = [("hosts", .array([Self.host("a.example", "port")]))]
    let client = try registry.client()
    let restarted = try TrustedRegistry(
      restoring: StoredState(decoding: client.state.encoded), under: RegistrySimulator.trust(),
      at: Self.start)
    for client in [client, restarted] {
      for enforcement in [PolicyEntry.Enforcement.enforce, .reportOnly] {
        let verdict = try client.verdict(enforcement: enforcement)
        #expect(verdict.outcome == .clientTooOld(["port"]))
        #expect(verdict.decision == .refuse)
        // The next statement may demand it no longer.
        #expect(verdict.couldChangeAfterRefresh)
      }
      #expect(try client.accepts("b.example", leaf: 2))
      let problem = RegistryProblem.unknownDemands(try HostPattern("a.example"), ["port"])
      #expect(try client.policy().problems == [problem])
      #expect(try client.policy(trust: .pinnedKeysOnly).problems == [problem])
      #expect(problem.description.contains("hint: "))
    }
    // A statement that demands nothing more frees them.
    registry.version = 2
    registry.extraStatementMembers = []
    #expect(try client.update(with: registry).registry.accepts())
  }

  @Test("all patterns that match a host demand together")
  func united() throws {
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.other", 2)]
    registry.extraStatementMembers = [
      ("hosts", .array([Self.host("**.example", "y"), Self.host("*.example", "x")]))
    ]
    let client = try registry.client()
    #expect(try client.verdict().outcome == .clientTooOld(["x", "y"]))
    #expect(try client.accepts("b.other", leaf: 2))
  }

  @Test(
    "a thief's demands are named in part: one refuses as well as all, and each refusal is kept",
    arguments: [1, 63, 64, 65, 1000])
  func namedInPart(count: Int) throws {
    let names = (0..<count).map { "n\(1000 + $0)" }
    func demanding(_ pattern: String, _ names: [String]) -> JSONValue {
      var entry = JSONObject(names.map { ($0, JSONValue.null) })
      entry["domainName"] = .string(pattern)
      entry["critical"] = .array(names.map(JSONValue.string))
      return .object(entry)
    }
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.other", 2)]
    registry.extraStatementMembers = [
      (
        "hosts",
        .array([demanding("**.example", Array(names.suffix(64))), demanding("*.example", names)])
      )
    ]
    let client = try registry.client()
    let verdict = try client.verdict()
    #expect(verdict.outcome == .clientTooOld(Array(names.prefix(64))))
    #expect(verdict.decision == .refuse)
    #expect(try client.accepts("b.other", leaf: 2))
    // Those of a statement are in the error that its refusal leaves behind.
    registry.version = 2
    registry.extraStatementMembers =
      names.map { ($0, JSONValue.null) } + [("critical", .array(names.map(JSONValue.string)))]
    #expect(try client.update(with: registry).refusal == .clientTooOld(Array(names.prefix(64))))
    // One that names a member twice, or an absent one, is invalid wherever that stands.
    for bad in [names[0], "absent"] {
      registry.extraStatementMembers[count].1 = .array((names + [bad]).map(JSONValue.string))
      #expect(
        try client.update(with: registry).refusal == .invalidStatement(.member("critical")))
    }
  }

  @Test("a key set that demands what is not known ends the walk; the sets before it are believed")
  func keySet() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 2)
    let client = try registry.client()
    let before = registry
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([4]), signedBy: [0],
      extra: Self.demanding())
    (registry.epoch, registry.online) = (2, [4])
    let update = try client.update(with: registry)
    #expect(update.refusal == .invalidKeySet(epoch: 2, .unknownCritical(["x"])))
    #expect(update.registry.keySetEpoch == 1)
    #expect(try update.registry.accepts())
    #expect(throws: RegistryError.invalidKeySet(epoch: 2, .unknownCritical(["x"]))) {
      try registry.client()
    }
    // The control: the same member, not critical.
    var other = before
    try other.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([4]), signedBy: [0],
      extra: [("x", .bool(true))])
    (other.epoch, other.online) = (2, [4])
    #expect(try client.update(with: other).refusal == nil)
  }

  @Test("an empty list, and one that names what is absent, known or named, is invalid")
  func badStatements() throws {
    var registry = RegistrySimulator()
    let client = try registry.client()
    registry.version = 2
    for list in Self.badLists(known: "issued") {
      registry.extraStatementMembers = [("x", .null), ("critical", list)]
      let refusal = try client.update(with: registry).refusal
      #expect(refusal == .invalidStatement(.member("critical")), "\(list)")
    }
    for list in Self.badLists(known: "domainName") {
      let entry = JSONValue.object([
        "domainName": .string("a.example"), "x": .null, "critical": list,
      ])
      registry.extraStatementMembers = [("hosts", .array([entry]))]
      let refusal = try client.update(with: registry).refusal
      #expect(refusal == .invalidStatement(.member("critical")), "\(list)")
    }
  }

  @Test("the same in a key set makes it invalid")
  func badKeySets() throws {
    for list in Self.badLists(known: "root") {
      var registry = RegistrySimulator()
      try registry.add(
        root: SimulatedKeys.role([0]), online: SimulatedKeys.role([2]), signedBy: [0],
        extra: [("x", .null), ("critical", list)])
      (registry.epoch, registry.online) = (1, [2])
      #expect(throws: RegistryError.invalidKeySet(epoch: 1, .member("critical")), "\(list)") {
        try registry.client()
      }
    }
  }
}
