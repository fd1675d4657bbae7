import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryServer

@Suite("Reports are summed up for charts")
struct ReportSummaryTests {
  private typealias Factory = ReportFactory
  /// The beginning of an hour and of a day.
  private static let midnight: Int64 = 1_780_012_800
  private static let now = midnight + 36_000

  private static func endpointKeys() throws -> ReportLedger {
    var endpointKeys = ReportLedger()
    let hour: Int64 = 3600
    for (host, leaf, version, hoursAgo, count) in [
      ("a.example", 1, "1", 0, 3), ("a.example", 1, "2", 1, 2), ("b.example", 1, "2", 1, 1),
      ("b.example", 2, "2", 30, 4), ("c.example", 3, "1", 24 * 20, 5),
    ] as [(String, UInt8, String, Int64, Int)] {
      for _ in 0..<count {
        endpointKeys.add(
          try Factory.report(host, leaf: leaf, version: version), at: now - hoursAgo * hour)
      }
    }
    endpointKeys.add(try Factory.report("x.attacker.example"), isListed: false, at: now)
    return endpointKeys
  }

  private func json(
    since: Int64 = now - 86_400, until: Int64 = now + 1, bucket: ReportSummary.Bucket = .hour,
    host: String? = nil
  ) throws -> JSONObject {
    ReportSummary(of: try Self.endpointKeys(), at: Self.now)
      .json(since: since, until: until, bucket: bucket, host: try host.map { try HostName($0) })
  }

  private func top(_ json: JSONObject, _ list: String) -> [JSONObject] {
    json[list]?.objectValue?["top"]?.arrayValue?.compactMap(\.objectValue) ?? []
  }

  private func line(_ json: JSONObject) -> [[Int64]] {
    json["timeline"]?.arrayValue?.map { $0.arrayValue?.compactMap(\.integerValue) ?? [] } ?? []
  }

  @Test("by host, the most reported first")
  func hosts() throws {
    let json = try json()
    #expect(json["reports"]?.integerValue == 6)
    let hosts = top(json, "hosts")
    #expect(hosts.map { $0["host"]?.stringValue } == ["a.example", "b.example"])
    #expect(hosts.map { $0["reports"]?.integerValue } == [5, 1])
    #expect(hosts.first?["last"]?.integerValue == Self.now)
  }

  @Test("by presented chain, with its names and how many hosts showed it")
  func chains() throws {
    let chains = top(try json(), "chains")
    #expect(chains.count == 1)
    #expect(chains.first?["leafPin"]?.stringValue == pin(1).base64)
    #expect(chains.first?["subject"]?.stringValue == "CN=1")
    #expect(chains.first?["issuer"]?.stringValue == "CN=issuer")
    #expect(chains.first?["hosts"]?.integerValue == 2)
    #expect(chains.first?["reports"]?.integerValue == 6)
  }

  @Test("by app and version")
  func apps() throws {
    let apps = top(try json(), "apps")
    #expect(apps.map { $0["version"]?.stringValue } == ["1", "2"])
    #expect(apps.map { $0["reports"]?.integerValue } == [3, 3])
    #expect(apps.first?["app"]?.stringValue == "com.example.app")
  }

  @Test("over time, by the hour, with the hours in which there was nothing")
  func hourly() throws {
    let line = line(try json(since: Self.now - 3 * 3600))
    #expect(line.map { $0[1] } == [0, 0, 3, 3])
    #expect(line.first?[0] == Self.now - 3 * 3600)
  }

  @Test("over thirty days, by the day")
  func daily() throws {
    let json = try json(since: 0, bucket: .day)
    #expect(json["reports"]?.integerValue == 15)
    #expect(json["since"]?.integerValue == Self.now - 30 * 86_400)
    let line = line(json)
    #expect(line.count == 31)
    #expect(line.last == [Self.midnight, 6])
    #expect(line[29] == [Self.midnight - 86_400, 4])
    #expect(line.map { $0[1] }.reduce(0, +) == 15)
    #expect(top(json, "chains").count == 3)
  }

  @Test("only one host, its own line; far back by the day, whatever was asked for")
  func oneHost() throws {
    let recent = try json(since: Self.now - 40 * 3600, host: "b.example")
    #expect(recent["reports"]?.integerValue == 5)
    #expect(recent["bucket"]?.stringValue == "hour")
    #expect(line(recent).map { $0[1] }.reduce(0, +) == 5)
    let month = try json(since: 0, host: "c.example")
    #expect(month["bucket"]?.stringValue == "day")
    #expect(line(month).map { $0[1] }.reduce(0, +) == 5)
    #expect(top(month, "hosts").count == 1)
  }

  @Test("hosts that nobody lists stand apart")
  func unlisted() throws {
    let json = try json()
    let unlisted = try #require(json["unlisted"]?.objectValue)
    #expect(unlisted["reports"]?.integerValue == 1)
    #expect(top(unlisted, "hosts").first?["host"]?.stringValue == "x.attacker.example")
    let all = String(decoding: JSONValue.object(json).canonicalBytes, as: UTF8.self)
    #expect(all.ranges(of: "attacker").count == 1)
  }

  @Test(
    "odd times are brought within what is kept",
    arguments: [
      (Int64.min, Int64.max), (0, 0), (Int64.max, Int64.min), (now + 5, now + 9), (now, now),
    ])
  func oddTimes(_ since: Int64, _ until: Int64) throws {
    let json = try json(since: since, until: until)
    let (first, last) = (
      try #require(json["since"]?.integerValue), try #require(json["until"]?.integerValue)
    )
    #expect(first <= last && first >= Self.now - ReportSummary.reach && last <= Self.now + 1)
    #expect(line(json).count <= 721)
  }

  @Test("lists are bounded, and say what they left out")
  func bounded() throws {
    var endpointKeys = ReportLedger()
    for index in 0..<300 {
      endpointKeys.add(try Factory.report("h\(index).example", version: "\(index)"), at: Self.now)
    }
    let json = ReportSummary(of: endpointKeys, at: Self.now)
      .json(since: Self.now - 60, until: Self.now + 1, bucket: .hour)
    for list in ["hosts", "apps"] {
      #expect(top(json, list).count == 100)
      let others = json[list]?.objectValue?["others"]?.objectValue
      #expect(others?["count"]?.integerValue == 200)
      #expect(others?["reports"]?.integerValue == 200)
    }
    #expect(json["groups"]?.arrayValue?.count == 100)
    #expect(JSONValue.object(json).canonicalBytes.count < 200_000)
  }
}
