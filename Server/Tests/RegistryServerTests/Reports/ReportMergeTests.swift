import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryServer

@Suite("What several servers counted adds up")
struct ReportMergeTests {
  private typealias Factory = ReportFactory
  private static let now = Factory.now

  private func sample() throws -> ReportLedger {
    var endpointKeys = ReportLedger()
    endpointKeys.add(try Factory.report(count: 4), at: Self.now)
    endpointKeys.add(
      try Factory.report("ü.example".replacing("ü", with: "u"), leaf: 3, result: nil),
      at: Self.now + 9)
    endpointKeys.add(
      try Factory.report("2001:db8::1", leaf: 4, app: "", version: ""), at: Self.now + 90_000)
    endpointKeys.add(try Factory.report("x.attacker.example"), isListed: false, at: Self.now)
    endpointKeys.listed.droppedGroups = 7
    endpointKeys.listed.droppedReports = 70
    endpointKeys.writers = ["one": .init(serial: 3, time: Self.now)]
    return endpointKeys
  }

  @Test("a record says everything, and the same twice")
  func roundTrip() throws {
    let endpointKeys = try sample()
    let read = try ReportLedger(decoding: endpointKeys.encoded, limits: .init())
    #expect(read == endpointKeys)
    // Compared beside the macro: it would explain a difference byte by byte.
    let isSame = read.encoded == endpointKeys.encoded
    #expect(isSame)
    let empty = ReportLedger()
    #expect(try ReportLedger(decoding: empty.encoded, limits: .init()) == empty)
  }

  @Test("what identifies a device is in no record")
  func privacy() throws {
    let text = String(decoding: try sample().encoded, as: UTF8.self)
    #expect(!text.contains("vendor"))
  }

  @Test("a record of another program, or of a newer one, is not taken for an empty one")
  func foreign() throws {
    let good = String(decoding: try sample().encoded, as: UTF8.self)
    for text in [
      "", "[]", "{}", "{\"format\":1}", good.replacing("\"format\":1", with: "\"format\":2"),
      good.replacing("\"host\":\"www.example.com\"", with: "\"host\":\"\""),
      good.replacing("\"leafPin\":\"", with: "\"leafPin\":\"x"),
      good.replacing("\"chain\":\"0", with: "\"chain\":\"z"),
      good.replacing("\"reports\":1", with: "\"reports\":-1"),
      good.replacing("\"hours\":[", with: "\"hours\":[1,"), good.replacing("[3,", with: "[\"3\","),
    ] {
      #expect(throws: ReportRecordFault.self, "\(text.prefix(60))") {
        try ReportLedger(decoding: Array(text.utf8), limits: .init())
      }
    }
  }

  @Test("a record of a server with larger limits keeps its newest groups")
  func smallerLimits() throws {
    var large = ReportLedger()
    for index in 0..<100 {
      large.add(try Factory.report("h\(index).example"), at: Self.now + Int64(index))
    }
    var limits = ReportLedger.Limits()
    limits.groups = 10
    let read = try ReportLedger(decoding: large.encoded, limits: limits)
    #expect(read.listed.groups.count == 10)
    #expect(read.counts["h99.example 1"] == 1)
    #expect(read.listed.droppedGroups == 90)
  }

  @Test("adding is in no order: two servers come to the same either way")
  func order() throws {
    var one = ReportLedger()
    var two = ReportLedger()
    one.add(try Factory.report(), at: Self.now)
    one.add(try Factory.report("a.example"), at: Self.now + 5)
    two.add(try Factory.report(count: 9), at: Self.now + 4000)
    two.add(try Factory.report("b.example"), isListed: false, at: Self.now)
    var left = one
    left.merge(two)
    var right = two
    right.merge(one)
    #expect(left == right)
    #expect(left.counts == ["www.example.com 1": 2, "a.example 1": 1])
    let group = try #require(left.listed.groups[ReportGroupKey(Factory.report())])
    #expect((group.failures, group.first, group.last) == (10, Self.now, Self.now + 4000))
    #expect(group.hours.cells.map(\.count) == [1, 1])
    #expect(left.listed.hours.count(since: 0, until: .max) == 3)
    #expect(left.unlisted.groups.count == 1)
  }

  @Test("an addition is made once, however often it is tried")
  func once() throws {
    var addition = ReportLedger()
    addition.add(try Factory.report(), at: Self.now)
    var endpointKeys = ReportLedger()
    for _ in 0..<3 { endpointKeys.merge(addition, of: "one", serial: 1, at: Self.now) }
    #expect(endpointKeys.counts == ["www.example.com 1": 1])
    endpointKeys.merge(addition, of: "two", serial: 1, at: Self.now)
    endpointKeys.merge(addition, of: "one", serial: 2, at: Self.now)
    #expect(endpointKeys.counts == ["www.example.com 1": 3])
    #expect(endpointKeys.has("one", 1) && endpointKeys.has("one", 2) && !endpointKeys.has("one", 3))
    #expect(!endpointKeys.has("three", 1))
  }

  @Test("the newest writers are remembered")
  func writers() throws {
    var addition = ReportLedger()
    addition.add(try Factory.report(), at: Self.now)
    var endpointKeys = ReportLedger()
    for index in 0..<100 {
      endpointKeys.merge(addition, of: "\(index)", serial: 1, at: Self.now + Int64(index))
    }
    #expect(endpointKeys.writers.count == ReportLedger.mostWriters)
    #expect(endpointKeys.has("99", 1) && endpointKeys.has("36", 1) && !endpointKeys.has("35", 1))
  }
}
