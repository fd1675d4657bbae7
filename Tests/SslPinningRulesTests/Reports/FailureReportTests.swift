import CanonicalJSON
import SslPinningRules
import Testing

@Suite("What a failure report says")
struct FailureReportTests {
  private typealias Fixtures = ReportFixtures

  private static let stamp = RegistryStamp(
    version: .init(epoch: 2, version: 7), payloadDigest: "abcd", confirmed: 1_700_000_000)

  @Test("every member that TrustKit has, under its name and of its type, and ours beside them")
  func members() throws {
    let verdict = PinEvaluation(
      host: "a.example.com", outcome: .mismatch(.leaf), decision: .refuse,
      presented: [Fixtures.pin(1), Fixtures.pin(2)],
      expectedLeaf: [
        Pin(Fixtures.pin(3), expires: 1_700_000_000), Pin(Fixtures.pin(4), expires: 5),
      ],
      expectedCA: [Pin(Fixtures.pin(3), expires: 5)], registry: Self.stamp)
    let report = try #require(
      FailureReport(
        verdict, port: 8443, pattern: HostPattern("*.example.com"), chain: [[1, 2, 3]],
        includesForgiven: false))
    #expect(
      report.body(Fixtures.app) == [
        "app-bundle-id": .string("com.example.app"), "app-version": .string("1.2"),
        "app-platform": .string("IOS"), "app-platform-version": .string("15.0.1"),
        "app-vendor-id": .string("vendor"), "trustkit-version": .string("ssl-pinning/1"),
        "hostname": .string("a.example.com"), "port": .number(8443),
        "noted-hostname": .string("example.com"), "include-subdomains": .bool(true),
        "enforce-pinning": .bool(true),
        "validated-certificate-chain": .array([
          .string("-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----")
        ]),
        "known-pins": .array([
          .string("pin-sha256=\"AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=\""),
          .string("pin-sha256=\"BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ=\""),
        ]),
        "known-pins-expiration-date": .string("2023-11-14"), "validation-result": .number(1),
        "rule": .string("leaf-pin"),
        "presented-pins": .array([
          .string("pin-sha256=\"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\""),
          .string("pin-sha256=\"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\""),
        ]),
        "registry-payload-digest": .string("abcd"),
        "registry-confirmed": .string("2023-11-14T22:13:20Z"), "registry-epoch": .number(2),
        "registry-version": .number(7),
      ])
  }

  @Test("what is not known is said so, in the type that collectors expect")
  func unknown() throws {
    let report = try #require(FailureReport(Fixtures.verdict(), includesForgiven: false))
    var app = Fixtures.app
    app.vendorID = nil
    let body = report.body(app)
    #expect(body["port"] == .number(0))
    #expect(body["app-vendor-id"] == .string(""))
    #expect(body["noted-hostname"] == .string("www.example.com"))
    #expect(body["include-subdomains"] == .bool(false))
    #expect(body["validated-certificate-chain"] == .array([]))
    #expect(body["known-pins-expiration-date"] == .null)
    #expect(body["registry-confirmed"] == nil)
  }

  struct Case: Sendable {
    let outcome: PinEvaluation.Outcome
    let decision: PinEvaluation.Decision
    /// TrustKit's number; `nil` where nothing is to be reported.
    let result: Int32?
  }

  @Test(
    "which verdicts are reported, and by which of TrustKit's numbers",
    arguments: [
      Case(outcome: .matched, decision: .accept, result: nil),
      Case(outcome: .unlisted, decision: .accept, result: nil),
      Case(outcome: .clearText(scheme: "http"), decision: .refuse, result: nil),
      Case(outcome: .unreadableHost(.empty), decision: .refuse, result: nil),
      Case(outcome: .unlisted, decision: .refuse, result: 1),
      Case(outcome: .mismatch(.leaf), decision: .refuse, result: 1),
      Case(outcome: .mismatch(.ca), decision: .accept, result: 1),
      Case(outcome: .mismatch(.certificate), decision: .refuse, result: 1),
      Case(outcome: .noLivePin, decision: .refuse, result: 1),
      Case(outcome: .registryExpired(at: 5), decision: .refuse, result: 1),
      Case(outcome: .denied(ReportFixtures.pin(1)), decision: .refuse, result: 1),
      Case(outcome: .chainRejected(.wrongHost), decision: .refuse, result: 2),
      Case(outcome: .unjudged("why"), decision: .accept, result: 3),
    ])
  func reported(row: Case) {
    let report = FailureReport(
      Fixtures.verdict(row.outcome, row.decision), includesForgiven: true)
    let body = report?.body(Fixtures.app)
    #expect(body?["validation-result"]?.integerValue == row.result.map { Int64($0) })
    #expect(
      body?["enforce-pinning"] ?? .bool(row.decision == .refuse) == .bool(row.decision == .refuse))
  }

  @Test("what report-only let through is reported only where that is wanted")
  func forgiven() {
    let forgiven = Fixtures.verdict(.mismatch(.leaf), .accept)
    #expect(FailureReport(forgiven, includesForgiven: true) != nil)
    #expect(FailureReport(forgiven, includesForgiven: false) == nil)
    #expect(FailureReport(Fixtures.verdict(.unjudged(""), .accept), includesForgiven: false) != nil)
  }

  @Test("a chain's reason is said in full, or its beginning")
  func fault() throws {
    let long = String(repeating: "x", count: 500)
    for (reason, said) in [
      ("certificate has expired", "certificate has expired"), (long, String(long.prefix(200))),
    ] {
      let report = try #require(
        FailureReport(
          Fixtures.verdict(.chainRejected(.untrusted(code: 10, reason: reason))),
          includesForgiven: false))
      #expect(report.body(Fixtures.app)["chain-fault"] == .string(said))
    }
  }

  @Test(
    "a chain is told as far as it fits, leaf first",
    arguments: [
      ([10, 10], 2), ([32 << 10], 1), ([32 << 10, 1], 1), ([1, 32 << 10, 1], 1),
      ([(32 << 10) + 1], 0), ([Int](repeating: 1, count: 11), 10),
    ])
  func bounds(sizes: [Int], told: Int) throws {
    let report = try #require(
      FailureReport(
        Fixtures.verdict(), chain: sizes.map { [UInt8](repeating: 7, count: $0) },
        includesForgiven: false))
    #expect(report.body(Fixtures.app)["validated-certificate-chain"]?.arrayValue?.count == told)
  }

  @Test("the same failure again counts up; another host, rule, key, port or consequence does not")
  func inbox() throws {
    var inbox = ReportInbox()
    let others = [
      Fixtures.verdict(), Fixtures.verdict(host: "b"), Fixtures.verdict(.noLivePin),
      Fixtures.verdict(leaf: 2), Fixtures.verdict(leaf: nil),
      Fixtures.verdict(.mismatch(.leaf), .accept),
    ]
    for round in 0..<3 {
      for verdict in others {
        inbox.add(try #require(FailureReport(verdict, includesForgiven: true)), at: Int64(round))
      }
    }
    inbox.add(
      try #require(FailureReport(others[0], port: 1, includesForgiven: true)), at: 7)
    #expect(inbox.items.count == others.count + 1)
    #expect(inbox.items.first?.tally == ReportTally(count: 3, first: 0, last: 2))
    #expect(inbox.items.last?.tally == ReportTally(count: 1, first: 7, last: 7))
  }

  @Test(
    "a flood of different failures is bounded and counted; repeats of known ones go on counting")
  func flood() throws {
    var inbox = ReportInbox()
    for number in 0..<(ReportInbox.mostReports + 5) {
      let verdict = Fixtures.verdict(host: "h\(number)")
      inbox.add(try #require(FailureReport(verdict, includesForgiven: true)), at: 1)
    }
    inbox.add(
      try #require(FailureReport(Fixtures.verdict(host: "h0"), includesForgiven: true)), at: 2)
    #expect(inbox.items.count == ReportInbox.mostReports)
    #expect(inbox.dropped == 5)
    #expect(inbox.items.first?.tally.count == 2)
  }
}
