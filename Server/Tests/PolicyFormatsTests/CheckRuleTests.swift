import SslPinningRules
import Testing

@testable import PolicyFormats

/// What checks make of lists and servers, without either: pins by letter, the leaf first.
@Suite("rules of check")
struct CheckRuleTests {
  static let now: Int64 = 1_800_000_000
  static let day: Int64 = 86_400

  /// A server: the letters of the validated path of each key, and in how many days its certificate ends.
  static func endpoint(
    _ paths: String..., days: Int64 = 90, next: SeenEndpoint.Successor? = nil,
    complaint: String? = nil,
    obstacles: [String] = [], unseen: [String] = [], named name: String = "e.example:443"
  ) throws -> SeenEndpoint {
    SeenEndpoint(
      host: try HostName("e.example"), name: name,
      keys: .success(
        paths.map { letters in
          SeenEndpoint.Key(
            kind: letters.first == "R" ? "RSA" : "ECDSA", path: letters.map(Sample.pin),
            complaint: complaint, ends: now + days * day)
        }), next: next, obstacles: obstacles, unseen: unseen)
  }

  /// A key that is to come, without its certificate.
  static func key(_ letter: Character, unjudged: String? = nil) -> SeenEndpoint.Successor {
    .key(Sample.pin(letter), unjudged: unjudged)
  }

  /// A certificate that is to come.
  static func certificate(
    _ path: String, others: String..., complaint: String? = nil, begins days: Int64 = 0
  ) -> SeenEndpoint.Successor {
    .certificate(
      SeenEndpoint.Key(
        kind: "next", path: path.map(Sample.pin), otherPaths: others.map { $0.map(Sample.pin) },
        complaint: complaint, ends: now + 90 * day), begins: now + days * day)
  }

  /// The same with other paths to one key, and a CA that ends.
  static func single(
    _ path: String, others: String..., later: [String] = [], authorityDays: Int64? = nil
  ) throws -> SeenEndpoint {
    let key = SeenEndpoint.Key(
      kind: "ECDSA", path: path.map(Sample.pin), otherPaths: others.map { $0.map(Sample.pin) },
      laterPaths: later.map { $0.map(Sample.pin) }, complaint: nil, ends: now + 90 * day,
      authorityEnd: authorityDays.map { .init(name: "CN=CA", time: now + $0 * day) })
    return SeenEndpoint(
      host: try HostName("e.example"), name: "e.example:443", keys: .success([key]),
      next: Self.key("B"))
  }

  static func told(
    _ endpoints: [SeenEndpoint], under lists: [PinPolicy], within days: Int64 = 30
  ) -> [String] {
    EndpointCheck(at: now, within: days * day).findings(
      endpoints,
      under: lists.enumerated().map { CheckedPolicy(name: "list \($0.offset)", policy: $0.element) }
    ).map { "\($0.rule.rawValue) \($0.severity.rawValue)" }
  }

  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let list: String
    let server: @Sendable () throws -> SeenEndpoint
    let told: [String]

    init(
      _ name: String, _ list: String, _ server: @escaping @Sendable () throws -> SeenEndpoint,
      _ told: String...
    ) {
      (testDescription, self.list, self.server, self.told) = (name, list, server, told)
    }
  }

  static let rows: [Row] = [
    Row("its key is listed", "e.example LB", { try endpoint("LMN") }),
    Row("another is", "e.example AB", { try endpoint("LMN") }, "refused error"),
    Row("its CA is listed as a leaf", "e.example MB", { try endpoint("LMN") }, "refused error"),
    Row("its CA is listed", "e.example - M", { try endpoint("LMN") }),
    Row("its leaf is listed as a CA", "e.example - L", { try endpoint("LMN") }, "refused error"),
    Row("both are demanded and there", "e.example LB N", { try endpoint("LMN") }),
    Row("both, and the CA is another", "e.example LB C", { try endpoint("LMN") }, "refused error"),
    Row("one is enough", "e.example LB C any", { try endpoint("LMN") }),
    Row("the list is for others", "x.example LB", { try endpoint("LMN") }, "not-pinned warning"),
    Row("both kinds of key are listed", "e.example LR", { try endpoint("LMN", "RMN") }),
    Row(
      "one of two kinds is", "e.example LB", { try endpoint("LMN", "RMN") }, "one-key-of-two error"),
    Row("none of two kinds is", "e.example AB", { try endpoint("LMN", "RMN") }, "refused error"),
    Row(
      "its certificate ends soon, and no other key is let in", "e.example L",
      { try endpoint("LMN", days: 29) }, "leaf-expires warning"),
    Row("it ends later", "e.example L", { try endpoint("LMN", days: 31) }),
    Row("it ends soon, and a backup is listed", "e.example LB", { try endpoint("LMN", days: 29) }),
    Row(
      "it ends soon, and its CA is enough", "e.example - M", { try endpoint("LMN", days: 29) }),
    Row(
      "it ends soon, and its CA is demanded beside the one leaf", "e.example L M",
      { try endpoint("LMN", days: 29) }, "leaf-expires warning"),
    Row("its next key is listed", "e.example LB", { try endpoint("LMN", next: key("B")) }),
    Row(
      "its next key is not", "e.example LB", { try endpoint("LMN", next: key("C")) },
      "backup-refused error"),
    Row(
      "its next key is let in under the same CA alone", "e.example - M",
      { try endpoint("LMN", next: key("C")) }, "backup-refused info"),
    Row(
      "its next key is let in by itself, or under the same CA", "e.example LB M any",
      { try endpoint("LMN", next: key("B")) }),
    Row(
      "its next certificate is under another CA", "e.example LB M",
      { try endpoint("LMN", next: certificate("BO")) }, "backup-refused error"),
    Row(
      "its next certificate is under another CA that is listed", "e.example LB MO",
      { try endpoint("LMN", next: certificate("BO")) }),
    Row(
      "another path of its next certificate has the CA", "e.example LB M",
      { try endpoint("LMN", next: certificate("BO", others: "BM")) }),
    Row(
      "its next certificate is for another host", "e.example LB",
      { try endpoint("LMN", next: certificate("B", complaint: "for other host names")) },
      "backup-refused error"),
    Row(
      "the path of its next certificate is not known", "e.example LB M",
      { try endpoint("LMN", next: key("B", unjudged: "no issuer")) }, "backup-refused warning"),
    Row(
      "neither is its key listed", "e.example L",
      { try endpoint("LMN", next: key("B", unjudged: "no issuer")) },
      "backup-refused warning", "backup-refused error"),
    Row(
      "another of its paths has the CA", "e.example LB O",
      { try single("LMN", others: "LMPO", "LQ") }, "backup-refused warning"),
    Row(
      "none of its paths has the CA", "e.example LB R",
      { try single("LMN", others: "LMPO") }, "refused error", "backup-refused error"),
    Row(
      "a CA of its path ends soon", "e.example LB",
      { try single("LMN", authorityDays: 29) }, "ca-expires warning"),
    Row("a CA of its path ends later", "e.example LB", { try single("LMN", authorityDays: 31) }),
    Row(
      "the listed CA ends soon, and another path goes on without it", "e.example LB N",
      { try single("LMN", others: "LMO", later: ["LMO"]) }, "backup-refused warning",
      "ca-expires warning"),
    Row(
      "a CA ends soon, and a path with a listed one goes on", "e.example LB N",
      { try single("LMO", others: "LMN", later: ["LMP", "LMN"]) }, "backup-refused warning"),
    Row(
      "nobody accepts its chain", "e.example LB", { try endpoint("L", complaint: "expired") },
      "untrusted-chain error"),
    Row(
      "its key is listed, and no client gets as far", "e.example LB",
      { try endpoint("LMN", obstacles: ["192.0.2.1:443 offers TLSv1.1 at most"]) },
      "outdated-tls error"),
    Row(
      "one of its addresses is silent", "e.example LB",
      { try endpoint("LMN", unseen: ["192.0.2.1:443 is passed over"]) }, "unreachable warning"),
    Row(
      "it is away", "e.example LB",
      {
        SeenEndpoint(
          host: try HostName("e.example"), name: "e.example:443", keys: .failure(.init("refused")))
      }, "unreachable error"),
  ]

  @Test("say what clients would do with a server", arguments: rows)
  func server(row: Row) throws {
    #expect(Self.told([try row.server()], under: [try Sample.policy(row.list)]) == row.told)
  }

  static let unlistedRows:
    [(list: String, format: PolicyFormat, isNamed: Bool, told: [String], hint: String?)] = [
      ("x.example LB", .registry, true, ["refused error"], nil),
      ("x.example LB", .registry, false, ["not-pinned warning"], nil),
      ("x.example LB", .nsPinnedDomains, true, ["not-pinned error"], nil),
      ("x.example LB", .nsPinnedDomains, false, ["not-pinned warning"], nil),
      ("*.e.example LB", .registry, true, ["refused error"], "*.e.example is for"),
      ("*.x.example LB", .registry, true, ["refused error"], nil),
      ("*.example LB", .registry, true, [], nil), ("**.e.example LB", .registry, true, [], nil),
      ("e.example LB", .nsPinnedDomains, true, [], nil),
    ]

  @Test(
    "a host that somebody names and no entry has is an error: clients of a registry refuse it",
    arguments: unlistedRows)
  func unlisted(
    row: (list: String, format: PolicyFormat, isNamed: Bool, told: [String], hint: String?)
  ) throws {
    let list = PinPolicy(
      format: row.format, rules: try Sample.policy(row.list).rules, overlap: .united)
    let found = EndpointCheck(at: Self.now, within: 0).findings(
      [try Self.endpoint("LMN")], under: [CheckedPolicy(name: "list", policy: list)],
      named: row.isNamed ? [try HostName("e.example")] : [])
    #expect(found.map { "\($0.rule.rawValue) \($0.severity.rawValue)" } == row.told)
    for finding in found {
      #expect(finding.message.contains("hint: \(row.hint ?? "")") == (row.hint != nil))
    }
  }

  @Test(
    "a host that somebody names is an error only if no list has it, and none takes it out",
    arguments: [
      (["x.example AB", "y.example AB"], ["not-pinned error", "refused error"]),
      (["e.example LB", "y.example AB"], ["not-pinned warning"]),
      (["x.example AB", "e.example LB"], ["not-pinned warning"]),
      (["x.example AB"], ["not-pinned error"]),
      (["e.example exempt"], ["not-pinned warning"]),
      (["e.example exempt", "y.example AB"], ["not-pinned warning", "not-pinned warning"]),
    ])
  func severalLists(lists: [String], told: [String]) throws {
    let policies = try lists.enumerated().map { index, list in
      // The first is an app's own list, the second its registry.
      let host = list.replacing(" exempt", with: "")
      let rules =
        try host == list
        ? Sample.policy(list).rules
        : [HostRule(PolicyEntry(Sample.pattern(host)), isExempt: true)]
      return CheckedPolicy(
        name: "\(index)",
        policy: PinPolicy(
          format: index == 0 ? .android : .registry, rules: rules,
          overlap: index == 0 ? .mostSpecific : .united))
    }
    let found = EndpointCheck(at: Self.now, within: 0).findings(
      [try Self.endpoint("LMN")], under: policies, named: [try HostName("e.example")])
    #expect(found.map { "\($0.rule.rawValue) \($0.severity.rawValue)" } == told)
  }

  @Test("judge the next certificate by the pins that count once it begins", arguments: [0, 20])
  func begins(days: Int64) throws {
    let pins = [
      Pin(Sample.pin("L")), Pin(Sample.pin("B"), expires: Self.now + 10 * Self.day),
    ]
    let list = PinPolicy(
      format: .registry,
      rules: [HostRule(PolicyEntry(try Sample.pattern("e.example"), leaf: PinSet(pins)))],
      overlap: .united)
    let server = try Self.endpoint("LMN", next: Self.certificate("BM", begins: days))
    #expect(Self.told([server], under: [list]) == (days == 0 ? [] : ["backup-refused error"]))
  }

  @Test("go by other paths as clients do: by those of a registry, and of no other format")
  func otherPaths() throws {
    let server = try Self.single("LMN", others: "LMPO")
    let rules = try Sample.policy("e.example LB O").rules
    for (format, told) in [(PolicyFormat.registry, 0), (.nsPinnedDomains, 2), (.android, 2)] {
      let list = PinPolicy(format: format, rules: rules, overlap: .united)
      let errors = Self.told([server], under: [list]).filter { $0.hasSuffix("error") }
      #expect(errors.count == told, "\(format)")
    }
    let denied = PinPolicy(
      format: .registry, rules: try Sample.policy("e.example LB").rules, overlap: .united,
      denied: [Sample.pin("N")])
    #expect(Self.told([server], under: [denied]).isEmpty)
  }

  @Test("say at which address a key is shown, if others show other keys")
  func addresses() throws {
    func key(_ path: String, _ address: String) -> SeenEndpoint.Key {
      SeenEndpoint.Key(
        kind: "ECDSA", path: path.map(Sample.pin), complaint: nil, ends: nil
      ).at(address)
    }
    let server = SeenEndpoint(
      host: try HostName("e.example"), name: "e.example:443",
      keys: .success([key("LM", "192.0.2.1:443"), key("AM", "192.0.2.2:443")]))
    let found = EndpointCheck(at: Self.now, within: 0).findings(
      [server], under: [CheckedPolicy(name: "list", policy: try Sample.policy("e.example LB"))])
    #expect(found.map(\.rule) == [.oneKeyOfTwo])
    #expect(found.first?.message.contains("ECDSA key at 192.0.2.2:443") == true)
  }

  @Test("tell of report-only lists, denied keys, and each list by itself")
  func severities() throws {
    var entry = PolicyEntry(try Sample.pattern("e.example"), leaf: Sample.pins("AB"))
    entry.enforcement = .reportOnly
    let reporting = PinPolicy(format: .trustKit, rules: [HostRule(entry)], overlap: .mostSpecific)
    let server = try Self.endpoint("LMN")
    #expect(Self.told([server], under: [reporting]) == ["refused warning"])
    let denied = PinPolicy(
      format: .registry, rules: try Sample.policy("e.example LB").rules, overlap: .united,
      denied: [Sample.pin("M")])
    #expect(Self.told([server], under: [denied]) == ["refused error"])
    #expect(
      Self.told([server], under: [try Sample.policy("e.example LB"), denied]) == ["refused error"])
    let one = try Sample.policy("e.example L")
    #expect(Self.told([try Self.endpoint("LMN", days: 60)], under: [one], within: 90).count == 1)
  }

  @Test("tell of hosts that only report, and of none that refuse or are taken out")
  func reporting() throws {
    func rule(
      _ host: String, _ enforcement: PolicyEntry.Enforcement, isExempt: Bool = false
    ) throws -> HostRule {
      var entry = PolicyEntry(try Sample.pattern(host), leaf: Sample.pins("AB"))
      entry.enforcement = enforcement
      return HostRule(entry, isExempt: isExempt)
    }
    let policy = PinPolicy(
      format: .trustKit,
      rules: [
        try rule("**.reports.example", .reportOnly), try rule("refuses.example", .enforce),
        try rule("free.reports.example", .reportOnly, isExempt: true),
      ], overlap: .mostSpecific)
    let found = PolicyCheck(at: Self.now, within: 0) { _ in false }
      .findings([CheckedPolicy(name: "list", policy: policy)])
    #expect(
      found.map { "\($0.rule.rawValue) \($0.severity.rawValue) \($0.host) \($0.policy)" } == [
        "report-only warning **.reports.example list"
      ])
  }

  @Test("tell once of a key that endpoints share, and not of one endpoint with two names of keys")
  func shared() throws {
    let list = try Sample.policy("e.example LRB")
    let servers = [
      try Self.endpoint("LMN"), try Self.endpoint("LMN", "RMN", named: "e.example:8443"),
      try Self.endpoint("RMN", named: "e.example:9443"),
    ]
    let found = EndpointCheck(at: Self.now, within: 0).findings(
      servers, under: [CheckedPolicy(name: "list", policy: list)])
    #expect(
      found.map { "\($0.rule.rawValue) \($0.host)" } == [
        "shared-key e.example:443, e.example:8443", "shared-key e.example:8443, e.example:9443",
      ])
    #expect(Self.told([servers[0]], under: [list]).isEmpty)
  }

  static let ends: [(days: Int64, within: Int64, told: [String])] = [
    (31, 30, []), (29, 30, ["pin-expires warning in 29 days"]), (29, 7, []),
    (1, 30, ["pin-expires warning in 1 day"]), (0, 30, ["pin-expires warning since 0 days"]),
    (-1, 30, ["pin-expires warning since 1 days"]), (-2, 30, ["pin-expires info since 2 days"]),
  ]

  @Test(
    "tell of a pin that ends within the days, as of one that counts while it does", arguments: ends)
  func pinEnds(row: (days: Int64, within: Int64, told: [String])) throws {
    let entry = PolicyEntry(
      try Sample.pattern("e.example"),
      leaf: PinSet([
        Pin(Sample.pin("A"), expires: Self.now + row.days * Self.day), Pin(Sample.pin("B")),
        Pin(Sample.pin("C")),
      ]))
    let policy = PinPolicy(format: .registry, rules: [HostRule(entry)], overlap: .united)
    let found = PolicyCheck(at: Self.now, within: row.within * Self.day) { _ in false }
      .findings([CheckedPolicy(name: "list", policy: policy)])
    #expect(
      found.map {
        "\($0.rule.rawValue) \($0.severity.rawValue) \($0.message.split(separator: " ends ").last ?? "")"
      } == row.told)
  }

  static let listRows: [(list: [String], told: [String])] = [
    (["e.example AB"], []),
    (["e.example A"], ["no-backup-pin"]),
    (["e.example AB C"], ["no-backup-pin"]),
    (["e.example A C any"], []),
    (["e.example AB AC"], ["same-pin-leaf-and-ca"]),
    (["e.example AB AB any"], []),
    (["*.co.uk AB"], ["public-suffix"]),
    (["**.co.uk AB"], ["public-suffix"]),
    (["co.uk AB"], []),
    (["*.e.co.uk AB"], []),
    (["api.e.example AB", "*.e.example ABC"], ["widened-host"]),
    (["api.e.example AB", "*.e.example AB"], []),
    (["api.e.example AB", "*.x.example CD"], []),
    (["api.e.example AB", "**.e.example AC"], ["widened-host"]),
  ]

  @Test("tell of lists what is wrong by itself", arguments: listRows)
  func list(row: (list: [String], told: [String])) throws {
    let policies = try row.list.map { try Sample.policy($0) }
    let policy = PinPolicy(
      format: .registry, rules: policies.flatMap(\.rules), overlap: .united)
    let found = PolicyCheck(at: Self.now, within: 0) { $0 == "co.uk" }
      .findings([CheckedPolicy(name: "list", policy: policy)])
    #expect(found.map(\.rule.rawValue) == row.told)
  }

  @Test("tell as an error what has a list refused as a whole, and as a warning what is unclear")
  func wholeList() {
    let policy = PinPolicy(
      format: .android, rules: [], overlap: .mostSpecific,
      remarks: [PolicyRemark(.refused, "a.example", ""), PolicyRemark(.unclear, "b.example", "")])
    let found = PolicyCheck(at: Self.now, within: 0) { _ in false }
      .findings([CheckedPolicy(name: "list", policy: policy)])
    #expect(
      found.map { "\($0.rule.rawValue) \($0.host) \($0.severity.rawValue)" } == [
        "unreadable-entry a.example error", "unreadable-entry b.example warning",
      ])
  }

  @Test("tell what lists differ in, and nothing of one list or of order")
  func drift() throws {
    func told(_ lists: String...) throws -> [String] {
      let checked = try lists.enumerated().map {
        CheckedPolicy(name: "\($0.offset)", policy: try Sample.policy($0.element))
      }
      return PolicyCheck(at: Self.now, within: 0) { _ in false }.findings(checked)
        .filter { [.drift, .missingHost].contains($0.rule) }
        .map { "\($0.rule.rawValue) \($0.policy)" }
    }
    #expect(try told("e.example AB").isEmpty)
    #expect(try told("e.example AB", "e.example BA").isEmpty)
    #expect(try told("e.example AB", "e.example AC") == ["drift 1"])
    #expect(try told("e.example AB", "e.example AB C") == ["drift 1"])
    #expect(try told("e.example AB", "e.example AB", "x.example AB").count == 3)
    // A format that does not tell leaf from CA says less, and no other thing.
    #expect(try told("e.example AB", "e.example AB AB any").isEmpty)
  }

  @Test(
    "tell of a host that one list does not refuse, by exemption or as report-only, and another does"
  )
  func exempt() throws {
    let wide = try Sample.policy("**.e.example AB AB any").rules
    func told(_ rule: HostRule) -> [String] {
      PolicyCheck(at: Self.now, within: 0) { _ in false }.findings([
        CheckedPolicy(
          name: "one",
          policy: PinPolicy(format: .trustKit, rules: wide + [rule], overlap: .mostSpecific)),
        CheckedPolicy(
          name: "other", policy: PinPolicy(format: .android, rules: wide, overlap: .mostSpecific)),
      ]).filter { [.drift, .missingHost].contains($0.rule) }
        .map { "\($0.rule.rawValue) \($0.host) \($0.policy)" }
    }
    let pattern = try Sample.pattern("x.e.example")
    var reporting = PolicyEntry(
      pattern, leaf: Sample.pins("AB"), ca: Sample.pins("AB"), match: .any)
    #expect(told(HostRule(reporting)).isEmpty)
    reporting.enforcement = .reportOnly
    #expect(told(HostRule(reporting)) == ["drift x.e.example other"])
    #expect(
      told(HostRule(PolicyEntry(pattern), isExempt: true)) == ["missing-host x.e.example one"])
  }

  @Test("tell of a list, and of pinning, that ends")
  func listEnds() throws {
    let rule = try Sample.policy("e.example AB").rules[0]
    func told(list: Int64?, pinning: Int64?) -> [String] {
      let policy = PinPolicy(
        format: .android,
        rules: [HostRule(rule.entry, unpinnedFrom: pinning.map { Self.now + $0 * Self.day })],
        overlap: .mostSpecific)
      return PolicyCheck(at: Self.now, within: 30 * Self.day) { _ in false }.findings([
        CheckedPolicy(name: "", policy: policy, ends: list.map { Self.now + $0 * Self.day })
      ]).map { "\($0.rule.rawValue) \($0.severity.rawValue)" }
    }
    #expect(told(list: nil, pinning: nil).isEmpty)
    #expect(told(list: 31, pinning: 31).isEmpty)
    #expect(told(list: 29, pinning: 29) == ["list-expires warning", "pinning-ends warning"])
    #expect(told(list: 0, pinning: 0) == ["list-expires error", "pinning-ends error"])
  }

  @Test("tell which roots a trust store lacks, by key")
  func roots() {
    let wanted = ["A", "B"].map { TrustStoreCheck.Root(pin: Sample.pin($0), name: "CN=\($0)") }
    let found = TrustStoreCheck.findings(
      store: "store", holds: [Sample.pin("B"), Sample.pin("C")], wanted: wanted)
    #expect(found.map(\.host) == ["CN=A"])
    #expect(found.map(\.rule) == [.missingRoot])
    #expect(found.map(\.severity) == [.error])
  }
}
