import CanonicalJSON
import RegistryCore
import SslPinningRules
import Testing

@testable import RegistryServer

@Suite("Reports are told apart")
struct ReportPictureTests {
  private typealias Factory = ReportFactory
  private static let now = Factory.now

  /// Key 1 is listed for `a.example` and what is below it, key 2 waits there; key 3 is another endpoint's.
  private static func knowledge() throws -> KeyKnowledge {
    var known = KeyKnowledge()
    let own = [HostPattern.exact(try HostName("a.example")), try HostPattern("*.a.example")]
    known.note(pin(1), listedSince: now - 86_400, own)
    known.note(pin(2), listedSince: nil, own)
    known.note(pin(3), listedSince: 0, [try HostPattern("b.example")])
    known.note(probed: now + 10, own)
    known.note(probed: now - 10, [try HostPattern("b.example")])
    return known
  }

  /// The class of each leaf in a summary of these reports.
  private static func classes(_ reports: [CollectedReport]) throws -> [UInt8: String] {
    var ledger = ReportLedger()
    for report in reports { ledger.add(report, at: now) }
    let summary = ReportSummary(of: ledger, at: now, known: try knowledge())
    return Dictionary(
      ledger.listed.groups.values.map {
        ($0.key.leafPin?.bytes[0] ?? 0, summary.verdict(of: $0).kind.rawValue)
      }, uniquingKeysWith: { "\($0), \($1)" })
  }

  private static func report(
    _ host: String, _ leaf: UInt8, _ standing: ChainStanding = .unverified, names: Bool? = true,
    issuer: String = "CN=proxy", isSelfIssued: Bool = false, result: Int64? = 2
  ) throws -> CollectedReport {
    var report = try Factory.report(host, leaf: leaf, result: result)
    report.standing = standing
    (report.chain.namesHost, report.chain.issuer) = (names, issuer)
    report.chain.isSelfIssued = isSelfIssued
    return report
  }

  @Test("by what this server knows of the key: at the host, at another, or nowhere")
  func keys() throws {
    var listed = try Self.report("a.example", 1)
    listed.wasListed = true
    let found = try Self.classes([
      listed, try Self.report("x.a.example", 2, .seen), try Self.report("a.example", 3, .verified),
      try Self.report("x.a.example", 4, .verified), try Self.report("b.example", 5, .verified),
    ])
    #expect(
      found == [
        1: "old-app", 2: "own-key", 3: "listed-elsewhere", 4: "interception", 5: "unknown",
      ])
  }

  @Test(
    "a proxy by the issuer that several hosts share, self-signed ones as one; a portal by its leaf")
  func several() throws {
    var reports: [CollectedReport] = []
    for (index, host) in ["a.example", "x.a.example"].enumerated() {
      let leaf = UInt8(20 + index)
      reports += [
        try Self.report(host, leaf),
        try Self.report(host, leaf + 10, issuer: "CN=\(host)", isSelfIssued: true),
        try Self.report(host, leaf + 20, issuer: "CN=of \(host)"),
        try Self.report(host, 60, names: false),
      ]
    }
    let found = try Self.classes(reports)
    #expect([20, 21, 30, 31].map { found[$0] } == Array(repeating: "inspecting-proxy", count: 4))
    #expect([40, 41].map { found[$0] } == ["unknown", "unknown"])
    #expect(found[60] == "captive-portal, captive-portal")
  }

  @Test("no proxy by a chain that the app found valid, or whose issuer was not sent")
  func noProxy() throws {
    var reports: [CollectedReport] = []
    for (index, host) in ["a.example", "x.a.example"].enumerated() {
      let leaf = UInt8(20 + index)
      var cut = try Self.report(host, leaf + 30)
      cut.chain.lacksIssuer = true
      reports += [
        try Self.report(host, leaf, result: 1), try Self.report(host, leaf + 10, result: nil),
        try Self.report(host, leaf + 20), cut,
      ]
    }
    let found = try Self.classes(reports)
    #expect([20, 21, 30, 31, 50, 51].allSatisfy { found[$0] == "unknown" })
    #expect([40, 41].allSatisfy { found[$0] == "inspecting-proxy" })
  }

  @Test("what a group was when its newest report came is kept in the store")
  func stored() throws {
    var ledger = ReportLedger()
    for (isListed, names) in [(true, true), (false, nil)] as [(Bool, Bool?)] {
      var report = try Self.report(
        "a.example", isListed ? 1 : 2, names: names, isSelfIssued: isListed)
      (report.wasListed, report.chain.lacksIssuer) = (isListed, !isListed)
      ledger.add(report, at: Self.now)
    }
    let read = try ReportLedger(decoding: ledger.encoded, limits: ReportLedger.Limits())
    #expect(read.listed.groups == ledger.listed.groups)
  }

  @Test(
    "a key's apps are the reports of its busiest hour, at the hosts that are meant, within a day")
  func meeting() throws {
    var ledger = ReportLedger()
    for (host, hoursAgo, count) in [
      ("a.example", 0, 2), ("x.a.example", 0, 3), ("a.example", 5, 4), ("a.example", 30, 50),
      ("b.example", 0, 9),
    ] as [(String, Int64, Int)] {
      for _ in 0..<count {
        ledger.add(try Factory.report(host, leaf: 2), at: Self.now - hoursAgo * 3600)
      }
    }
    let picture = ReportSummary(of: ledger, at: Self.now).picture
    let patterns = [try HostPattern("a.example"), try HostPattern("*.a.example")]
    #expect(
      picture.meeting(pin(2), patterns)
        == ReportPicture.Meeting(apps: 5, reports: 9, last: Self.now))
    #expect(picture.meeting(pin(7), patterns) == ReportPicture.Meeting())
    #expect(picture.hourly.count == 24 && picture.hourly.last == 14 && picture.hourly[18] == 4)
  }

  @Test("interceptions are one for each key, at whatever hosts, whoever reports them, and bounded")
  func interceptions() throws {
    var ledger = ReportLedger()
    for leaf in 10...40 as ClosedRange<UInt8> {
      for app in ["one", "two"] {
        var report = try Self.report("a.example", leaf, .verified)
        report.app = app
        ledger.add(report, at: Self.now)
      }
    }
    let summary = ReportSummary(of: ledger, at: Self.now, known: try Self.knowledge())
    #expect(summary.picture.reports[.interception] == 62)
    #expect(summary.picture.verified == 62)
    #expect(summary.picture.interceptions.count == ReportPicture.mostInterceptions)
    #expect(summary.picture.interceptions.allSatisfy { $0.reports == 2 })

    // Hosts below a wildcard can be invented: they crowd no other key out.
    for name in 0..<30 {
      ledger.add(try Self.report("x\(name).a.example", 9, .verified), at: Self.now)
    }
    let crowded = ReportSummary(of: ledger, at: Self.now, known: try Self.knowledge()).picture
    #expect(crowded.interceptions.count == ReportPicture.mostInterceptions)
    #expect(crowded.interceptions.count { $0.pin == pin(9) } == 1)
    #expect(crowded.interceptions.first?.hosts.count == 30)
  }

  @Test(
    "keys with fewer reports than twenty others are told together, the newest first, and again once they are more"
  )
  func otherInterceptions() throws {
    var ledger = ReportLedger()
    func conditions() throws -> [Condition] {
      ReportSummary(of: ledger, at: Self.now, known: try Self.knowledge()).picture.conditions
    }
    for leaf in 10..<30 as Range<UInt8> {
      for app in ["one", "two"] {
        var report = try Self.report("a.example", leaf, .verified)
        report.app = app
        ledger.add(report, at: Self.now - 60)
      }
    }
    let twenty = try conditions()
    #expect(twenty.count == 20 && twenty.allSatisfy { $0.pin != nil && $0.listed.isEmpty })
    ledger.add(try Self.report("a.example", 8, .verified), at: Self.now - 50)
    let one = try #require(try conditions().last)
    #expect(one.pin == nil && one.message.hasSuffix(": a.example \(pin(8).base64)"))
    ledger.add(try Self.report("x.a.example", 9, .verified), at: Self.now - 40)
    let both = try conditions()
    let two = try #require(both.last)
    #expect(both.count == 21 && two.identity == one.identity && two.since == Self.now - 50)
    #expect(
      two.message.hasSuffix(": x.a.example \(pin(9).base64), a.example \(pin(8).base64)"))
    #expect(one.listed.isStrictSubset(of: two.listed))
  }

  @Test("each app version has its own line over time")
  func versions() throws {
    var ledger = ReportLedger()
    for (version, hoursAgo) in [("1", 0), ("1", 2), ("2", 2)] as [(String, Int64)] {
      ledger.add(try Factory.report(version: version), at: Self.now - hoursAgo * 3600)
    }
    let json = ReportSummary(of: ledger, at: Self.now)
      .json(since: Self.now - 2 * 3600, until: Self.now + 1, bucket: .hour)
    let versions = json["versions"]?.arrayValue?.compactMap(\.objectValue) ?? []
    #expect(versions.map { $0["version"] } == ["1", "2"])
    let lines = versions.map { version in
      version["timeline"]?.arrayValue?.map { $0.arrayValue?.last?.integerValue ?? -1 } ?? []
    }
    #expect(lines == [[1, 0, 1], [1, 0, 0]])
  }
}
