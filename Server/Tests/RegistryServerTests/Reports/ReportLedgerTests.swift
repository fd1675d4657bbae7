import SslPinningRules
import Testing

@testable import RegistryServer

@Suite("Reports are counted in groups, so many at most")
struct ReportLedgerTests {
  private typealias Factory = ReportFactory
  private static let now = Factory.now

  @Test("the same failure again only counts up, and keeps when it was first and last seen")
  func repeats() throws {
    var endpointKeys = ReportLedger()
    for (second, count) in [(0, 1), (10, 5), (7300, 2)] {
      endpointKeys.add(try Factory.report(count: Int64(count)), at: Self.now + Int64(second))
    }
    #expect(endpointKeys.listed.groups.count == 1)
    let group = try #require(endpointKeys.listed.groups.values.first)
    #expect((group.reports, group.failures) == (3, 8))
    #expect((group.first, group.last) == (Self.now, Self.now + 7300))
    #expect(group.hours.cells.map(\.count) == [2, 1])
    #expect(group.days.cells.map(\.count) == [3])
  }

  @Test("another host, chain, app, version or result is another group; another rule is not")
  func groups() throws {
    var endpointKeys = ReportLedger()
    var other = try Factory.report()
    other.chain.digest = nil
    var rule = try Factory.report()
    rule.rule = "ca-pin"
    rule.platform = "MACOS"
    let reports = [
      try Factory.report(), try Factory.report("api.example.com"), try Factory.report(leaf: 2),
      other,
      try Factory.report(app: "b"), try Factory.report(version: "2"), try Factory.report(result: 2),
      try Factory.report(result: nil), rule,
    ]
    for report in reports { endpointKeys.add(report, at: Self.now) }
    #expect(endpointKeys.listed.groups.count == 8)
    let both = try #require(endpointKeys.listed.groups[ReportGroupKey(rule)])
    #expect((both.reports, both.rule, both.platform) == (2, "ca-pin", "MACOS"))
  }

  @Test("a full table drops the least recently seen, and counts them")
  func bounded() throws {
    var limits = ReportLedger.Limits()
    (limits.groups, limits.groupsOfOneHost) = (10, 10)
    var endpointKeys = ReportLedger(limits: limits)
    for index in 0..<10 {
      endpointKeys.add(try Factory.report("h\(index).example"), at: Self.now + Int64(index))
    }
    // The oldest is seen again, so the second is the least recently seen.
    endpointKeys.add(try Factory.report("h0.example"), at: Self.now + 20)
    endpointKeys.add(try Factory.report("new.example"), at: Self.now + 21)
    #expect(endpointKeys.listed.groups.count == 10)
    #expect(endpointKeys.counts["h0.example 1"] == 2)
    #expect(endpointKeys.counts["h1.example 1"] == nil)
    #expect(endpointKeys.counts["new.example 1"] == 1)
    #expect((endpointKeys.listed.droppedGroups, endpointKeys.listed.droppedReports) == (1, 1))
    // All twelve reports are still in the line over time.
    #expect(endpointKeys.listed.hours.count(since: 0, until: .max) == 12)
  }

  @Test("a flood of chains of one host does not push out other hosts")
  func oneHost() throws {
    var limits = ReportLedger.Limits()
    (limits.groups, limits.groupsOfOneHost) = (100, 20)
    var endpointKeys = ReportLedger(limits: limits)
    for index in 0..<50 { endpointKeys.add(try Factory.report("h\(index).example"), at: Self.now) }
    for index in 0..<5000 {
      endpointKeys.add(
        try Factory.report("victim.example", version: "\(index)"), at: Self.now + Int64(index))
    }
    #expect(endpointKeys.listed.groups.count == 70)
    #expect(endpointKeys.listed.droppedGroups == 4980)
    #expect(endpointKeys.counts["h0.example 1"] == 1)
  }

  @Test("reports about hosts that nobody lists never push out those that are listed")
  func unlisted() throws {
    var endpointKeys = ReportLedger()
    endpointKeys.add(try Factory.report(), at: Self.now)
    for index in 0..<3000 {
      endpointKeys.add(
        try Factory.report("\(index).attacker.example"), isListed: false,
        at: Self.now + Int64(index))
    }
    #expect(endpointKeys.listed.groups.count == 1)
    #expect(endpointKeys.unlisted.groups.count <= 500)
    #expect(Int64(endpointKeys.unlisted.groups.count) + endpointKeys.unlisted.droppedGroups == 3000)
    #expect(endpointKeys.listed.hours.count(since: 0, until: .max) == 1)
  }

  @Test("after thirty days a group is forgotten, and hours after two")
  func tidying() throws {
    var endpointKeys = ReportLedger()
    let day: Int64 = 86_400
    endpointKeys.add(try Factory.report("old.example"), at: Self.now)
    endpointKeys.add(try Factory.report("new.example"), at: Self.now)
    endpointKeys.add(try Factory.report("new.example"), at: Self.now + 29 * day)
    endpointKeys.tidy(at: Self.now + 29 * day)
    #expect(endpointKeys.listed.groups.count == 2)
    let group = try #require(
      endpointKeys.listed.groups[ReportGroupKey(Factory.report("new.example"))])
    #expect((group.hours.cells.count, group.days.cells.count) == (1, 2))
    endpointKeys.tidy(at: Self.now + 31 * day)
    #expect(endpointKeys.counts == ["new.example 1": 2])
    endpointKeys.tidy(at: Self.now + 90 * day)
    #expect(endpointKeys.isEmpty)
  }

  @Test("counts stay where JSON can say them, whatever is added")
  func saturation() throws {
    var group = ReportGroup(try Factory.report(), at: Self.now)
    for _ in 0..<3 {
      group.add(
        try Factory.report(), as: ReportNews(reports: ReportCount.most, failures: ReportCount.most),
        at: Self.now)
    }
    #expect((group.reports, group.failures) == (ReportCount.most, ReportCount.most))
    #expect(group.hours.cells.map(\.count) == [ReportCount.most])
  }

  @Test(
    "an hour counts for every time that has a second of it",
    arguments: [
      (3600, 7200, 1), (3600, 3601, 1), (7199, 9000, 1), (7200, 9000, 0), (0, 3600, 0),
      (0, 3601, 1),
      (5000, 5000, 1),
    ] as [(Int64, Int64, Int64)])
  func hourBorders(_ since: Int64, _ until: Int64, _ count: Int64) {
    var buckets = ReportBuckets.recentHours
    buckets.add(1, at: 3600)
    #expect(buckets.count(since: since, until: until) == count)
  }

  @Test("times before 1970 and a clock that is set back do no harm")
  func oddTimes() throws {
    var endpointKeys = ReportLedger()
    for time: Int64 in [-1, -86_401, Self.now, 0, Self.now - 5000] {
      endpointKeys.add(try Factory.report(), at: time)
    }
    let group = try #require(endpointKeys.listed.groups.values.first)
    #expect(group.days.cells.map(\.start) == group.days.cells.map(\.start).sorted())
    #expect((group.first, group.last) == (-86_401, Self.now))
    endpointKeys.tidy(at: Self.now)
    #expect(endpointKeys.listed.groups.values.first?.days.count(since: 0, until: .max) == 2)
  }

  @Test("a report that came before counts only what it says more")
  func memory() throws {
    var memory = ReportMemory(limit: 2)
    #expect(memory.news(of: try Factory.report()) == ReportNews(reports: 1, failures: 1))
    #expect(memory.news(of: try Factory.report()) == ReportNews(reports: 1, failures: 1))
    let first = try Factory.report(count: 3, id: "a-0")
    #expect(memory.news(of: first) == ReportNews(reports: 1, failures: 3))
    #expect(memory.news(of: first) == nil)
    #expect(memory.news(of: try Factory.report(count: 2, id: "a-0")) == nil)
    #expect(
      memory.news(of: try Factory.report(count: 8, id: "a-0"))
        == ReportNews(reports: 0, failures: 5))
    // The same name from another host is another report.
    #expect(
      memory.news(of: try Factory.report("b.example", count: 3, id: "a-0"))
        == ReportNews(reports: 1, failures: 3))
    // The oldest of more than two is forgotten.
    _ = memory.news(of: try Factory.report(id: "b-0"))
    #expect(memory.news(of: first) == ReportNews(reports: 1, failures: 3))
    #expect(memory.news(of: try Factory.report(id: "b-0")) == nil)
  }

  @Test(
    "a host is listed as clients match it",
    arguments: [
      ("www.example.com", true), ("a.example.com", true), ("example.com", false),
      ("a.b.example.com", false), ("deep.below.any.test", true), ("any.test", true),
      ("notany.test", false), ("192.0.2.1", true), ("192.0.2.2", false),
      ("::ffff:192.0.2.1", false),
      ("com", false),
    ])
  func listedHosts(_ host: String, _ isListed: Bool) throws {
    let hosts = ListedHosts(
      try ["www.example.com", "*.example.com", "**.any.test", "192.0.2.1"].map {
        try HostPattern($0)
      })
    #expect(hosts.contains(try HostName(host)) == isListed)
  }

  @Test(
    "what strangers make up, or replay under many names, pushes out no proof",
    arguments: [ChainStanding.unverified, .verified])
  func proof(_ standing: ChainStanding) throws {
    var endpointKeys = ReportLedger(limits: ReportLedger.Limits(groups: 1000))
    for version in ["1", "2", "3"] {
      var proof = try ReportFactory.report(leaf: 7, version: version)
      proof.standing = .verified
      endpointKeys.add(proof, at: ReportFactory.now)
    }
    for number in 0..<1300 {
      var report = try ReportFactory.report(leaf: 8, version: "\(number)")
      report.standing = standing
      if standing == .unverified {
        // Whoever makes chains up makes each up anew.
        var digest = [UInt8](repeating: 0, count: 32)
        (digest[0], digest[1]) = (UInt8(number / 256), UInt8(number % 256))
        report.chain.digest = CertificateFingerprint(digest: digest)
      }
      endpointKeys.add(report, at: ReportFactory.now + 1 + Int64(number))
    }
    #expect(endpointKeys.counts["www.example.com 7"] == 3)
    #expect(endpointKeys.listed.groups.count <= 100 && endpointKeys.listed.droppedGroups >= 1200)
  }

  @Test(
    "of each host and key that was not listed the newest proof outlasts any flood; of a listed key none does"
  )
  func lastProof() throws {
    var endpointKeys = ReportLedger(limits: ReportLedger.Limits(groups: 1000))
    // The versions of an app meet one chain, which the most groups show then.
    for (leaf, wasListed) in [(6, true), (7, false)] as [(UInt8, Bool)] {
      for version in 0..<3 {
        var proof = try Factory.report(leaf: leaf, version: "\(version)")
        (proof.standing, proof.wasListed) = (.verified, wasListed)
        endpointKeys.add(proof, at: Self.now + Int64(version))
      }
    }
    for number in 0..<1300 {
      var replay = try Factory.report(leaf: 8, version: "\(number)")
      (replay.standing, replay.wasListed) = (.verified, true)
      var digest = [UInt8](repeating: 0, count: 32)
      (digest[0], digest[1]) = (UInt8(number / 256), UInt8(number % 256))
      replay.chain.digest = CertificateFingerprint(digest: digest)
      endpointKeys.add(replay, at: Self.now + 10 + Int64(number))
    }
    let proofs = endpointKeys.listed.groups.values.filter { $0.key.leafPin == pin(7) }
    #expect(proofs.map(\.key.version) == ["2"])
    #expect(endpointKeys.counts["www.example.com 6"] == nil)
    #expect(endpointKeys.listed.groups.count <= 100)
  }

  @Test("proofs at hosts that a stranger invents below a wildcard push out no other key's proof")
  func inventedHosts() throws {
    var endpointKeys = ReportLedger(limits: ReportLedger.Limits(groups: 50))
    var proof = try Factory.report(leaf: 7)
    proof.standing = .verified
    endpointKeys.add(proof, at: Self.now)
    for number in 0..<200 {
      var replay = try Factory.report("x\(number).example.com", leaf: 8)
      replay.standing = .verified
      endpointKeys.add(replay, at: Self.now + 1 + Int64(number))
    }
    #expect(endpointKeys.counts["www.example.com 7"] == 1)
    #expect(endpointKeys.counts["x199.example.com 8"] == 1)
    #expect(endpointKeys.listed.groups.count == 50)
  }
}
