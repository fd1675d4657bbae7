import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryServer

@Suite("Reports are bounded in bytes") struct ReportBytesTests {
  private static let now = ReportFactory.now
  /// As long as a cleaned text can be, each scalar of it as large as it can be.
  private static let long = String(repeating: "\u{1f600}", count: ReportText.longest)

  /// A report whose texts are as long as they can be.
  private static func large(_ host: String, leaf: UInt8 = 1, app: String = long) throws
    -> CollectedReport
  {
    var report = try ReportFactory.report(host, leaf: leaf, app: app)
    (report.version, report.platform, report.rule) = (long, long, long)
    (report.chain.subject, report.chain.issuer) = (long, long)
    return report
  }

  @Test("of a text 64 scalars are kept")
  func texts() {
    let text = String(repeating: "\u{1f600}", count: 256)
    #expect(ReportText.cleaned(text).unicodeScalars.count == 64)
  }

  @Test(
    "a group is reckoned at least as large as the store has it",
    arguments: [Self.long, "", "app", String(repeating: "\"\\", count: 32)])
  func size(_ app: String) throws {
    for leaf in [1, 2] as [UInt8] {
      var group = ReportGroup(
        try Self.large("\(app.isEmpty ? "a" : "host").example", app: app), at: Self.now)
      for hour in 0..<Int64(leaf) * 24 {
        let report = try Self.large("host.example", leaf: leaf, app: app)
        group.add(
          report, as: ReportNews(reports: ReportCount.most / 64, failures: ReportCount.most),
          at: Self.now + hour * 3600)
      }
      let stored = JSONValue.object(group.stored).canonicalBytes.count
      #expect(stored <= group.size && group.size < stored + 1500, "\(stored) of \(group.size)")
    }
  }

  @Test("whatever strangers send, the record stays within its bytes, and the oldest leave")
  func flood() throws {
    var limits = ReportLedger.Limits()
    (limits.bytes, limits.unlistedBytes) = (300_000, 50_000)
    var endpointKeys = ReportLedger(limits: limits)
    for index in 0..<600 {
      let host = "h\(index).example"
      endpointKeys.add(try Self.large(host), at: Self.now + Int64(index))
      endpointKeys.add(try Self.large(host), isListed: false, at: Self.now + Int64(index))
    }
    #expect(endpointKeys.encoded.count < 360_000)
    #expect(endpointKeys.listed.bytes <= 300_000 && endpointKeys.unlisted.bytes <= 50_000)
    #expect(
      endpointKeys.counts["h599.example 1"] == 1 && endpointKeys.counts["h0.example 1"] == nil)
    let kept = Int64(endpointKeys.listed.groups.count)
    #expect(kept > 50 && endpointKeys.listed.droppedGroups + kept == 600)
    // What was written is read again, and by a server with less room in part.
    limits.bytes = 100_000
    let read = try ReportLedger(decoding: endpointKeys.encoded, limits: limits)
    #expect(read.listed.bytes <= 100_000 && read.counts["h599.example 1"] == 1)
  }

  @Test("a flood about one host leaves the others their room")
  func oneHost() throws {
    var limits = ReportLedger.Limits()
    limits.bytes = 400_000
    var endpointKeys = ReportLedger(limits: limits)
    for index in 0..<40 { endpointKeys.add(try Self.large("h\(index).example"), at: Self.now) }
    // Each with a chain of its own, as those of the others: only the host tells them apart.
    for leaf in 1...250 as ClosedRange<UInt8> {
      endpointKeys.add(try Self.large("flood.example", leaf: leaf), at: Self.now + 1)
    }
    #expect(endpointKeys.listed.groups.keys.count { $0.host.description != "flood.example" } == 40)
  }

  @Test("bytes are given back by what leaves")
  func givenBack() throws {
    var endpointKeys = ReportLedger()
    for index in 0..<5 { endpointKeys.add(try Self.large("h\(index).example"), at: Self.now) }
    #expect(
      endpointKeys.listed.bytes == endpointKeys.listed.groups.values.reduce(0) { $0 + $1.size })
    endpointKeys.merge(endpointKeys)
    #expect(
      endpointKeys.listed.bytes == endpointKeys.listed.groups.values.reduce(0) { $0 + $1.size })
    endpointKeys.tidy(at: Self.now + 29 * 86_400)
    #expect(
      endpointKeys.listed.bytes == endpointKeys.listed.groups.values.reduce(0) { $0 + $1.size })
    endpointKeys.tidy(at: Self.now + 40 * 86_400)
    #expect(endpointKeys.listed.groups.isEmpty && endpointKeys.listed.bytes == 0)
  }
}
