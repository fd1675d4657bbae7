import CanonicalJSON
import Foundation
import SslPinningRules
import Testing

@Suite("The queue of failure reports")
struct ReportQueueTests {
  private typealias Fixtures = ReportFixtures
  private let hour: Int64 = 3600

  private func settle(
    _ queue: inout ReportQueue, _ delivery: ReportQueue.Delivery?, status: Int,
    retryAfter: Int64? = nil, at now: Int64
  ) throws -> ReportQueue.Settlement {
    queue.settle(
      try #require(delivery), .status(status, retryAfter: retryAfter), at: now, random: 0)
  }

  /// Claims and settles.
  private func deliver(
    _ queue: inout ReportQueue, to url: String, status: Int, at now: Int64
  ) throws -> ReportQueue.Settlement {
    let delivery = queue.claim(url, by: "me", at: now)
    return try settle(&queue, delivery, status: status, at: now)
  }

  @Test("the first failure is due at once, its repeats go out together once the window is over")
  func window() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 1000)
    let first = queue.claim("u", by: "me", at: 1000)
    let said = try Fixtures.json(first)
    #expect(said["count"] == .number(1))
    #expect(said["date-time"] == .string("1970-01-01T00:16:40Z"))
    #expect(said["first-date-time"] == said["date-time"])
    #expect(said["hostname"] == .string("www.example.com"))
    #expect(said["dropped-reports"] == nil)
    #expect(try settle(&queue, first, status: 204, at: 1001) == .delivered)
    #expect(queue.claim("u", by: "me", at: 1001) == nil)
    #expect(queue.nextTime(["u"], by: "me") == nil)

    for second: Int64 in [1100, 1200, 1300] {
      Fixtures.add(Fixtures.verdict(), to: &queue, at: second)
    }
    #expect(queue.claim("u", by: "me", at: 1000 + hour) == nil)
    #expect(queue.nextTime(["u"], by: "me") == 1001 + hour)
    let second = queue.claim("u", by: "me", at: 1001 + hour)
    let repeated = try Fixtures.json(second)
    #expect(repeated["count"] == .number(3))
    #expect(repeated["first-date-time"] == .string("1970-01-01T00:18:20Z"))
    #expect(repeated["date-time"] == .string("1970-01-01T00:21:40Z"))
    #expect(repeated["report-id"] != said["report-id"])
    #expect(try settle(&queue, second, status: 200, at: 1001 + hour) == .delivered)
    // One report an hour, not two: the window begins anew with each.
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 1002 + hour)
    #expect(queue.nextTime(["u"], by: "me") == 1001 + 2 * hour)
  }

  @Test("a kind that is over is forgotten, and its next failure is due at once")
  func over() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 0)
    _ = try deliver(&queue, to: "u", status: 200, at: 0)
    queue.tidy(urls: ["u"], at: hour - 1)
    #expect(queue.count == 1)
    queue.tidy(urls: ["u"], at: hour)
    #expect(queue.count == 0)
    Fixtures.add(Fixtures.verdict(), to: &queue, at: hour)
    #expect(queue.nextTime(["u"], by: "me") == .min)
  }

  @Test("each URL is owed each report, whatever another answered")
  func urls() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, urls: ["u", "v"], at: 0)
    _ = try deliver(&queue, to: "u", status: 200, at: 0)
    let other = queue.claim("v", by: "me", at: 0)
    #expect(try settle(&queue, other, status: 503, at: 0) == .postponed(until: 60))
    #expect(queue.claim("v", by: "me", at: 59) == nil)
    Fixtures.add(Fixtures.verdict(), to: &queue, urls: ["u", "v"], at: 50)
    // u has been told of the first, v of none.
    #expect(try Fixtures.json(queue.claim("v", by: "me", at: 60))["count"] == .number(2))
    #expect(try Fixtures.json(queue.claim("u", by: "me", at: hour))["count"] == .number(1))
  }

  struct Answer: Sendable {
    let status: Int
    var retryAfter: Int64? = nil
    let settlement: ReportQueue.Settlement
  }

  @Test(
    "what an answer means",
    arguments: [
      Answer(status: 200, settlement: .delivered), Answer(status: 202, settlement: .delivered),
      Answer(status: 299, settlement: .delivered), Answer(status: 400, settlement: .rejected),
      Answer(status: 404, settlement: .rejected), Answer(status: 413, settlement: .rejected),
      Answer(status: 499, settlement: .rejected),
      Answer(status: 408, settlement: .postponed(until: 1060)),
      Answer(status: 429, settlement: .postponed(until: 1060)),
      Answer(status: 500, settlement: .postponed(until: 1060)),
      Answer(status: 301, settlement: .postponed(until: 1060)),
      Answer(status: 0, settlement: .postponed(until: 1060)),
      Answer(status: 429, retryAfter: 7, settlement: .postponed(until: 1007)),
      Answer(status: 503, retryAfter: 7000, settlement: .postponed(until: 8000)),
      Answer(status: 400, retryAfter: 7, settlement: .rejected),
    ])
  func answers(answer: Answer) throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 1000)
    let delivery = queue.claim("u", by: "me", at: 1000)
    #expect(
      try settle(
        &queue, delivery, status: answer.status, retryAfter: answer.retryAfter, at: 1000)
        == answer.settlement)
    if case .postponed(let until) = answer.settlement {
      #expect(queue.nextTime(["u"], by: "me") == until)
      #expect(queue.claim("u", by: "me", at: until - 1) == nil)
      #expect(try Fixtures.json(queue.claim("u", by: "me", at: until))["count"] == .number(1))
    } else {
      #expect(queue.isIdle)
    }
  }

  @Test("the wait grows with every failure in a row, and a success ends that")
  func backOff() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 0)
    var now: Int64 = 0
    var waits: [Int64] = []
    for _ in 0..<4 {
      let claimed = queue.claim("u", by: "me", at: now)
      let delivery = try #require(claimed)
      guard
        case .postponed(let until) = queue.settle(
          delivery, .unreachable, at: now, random: 0.999_999)
      else {
        Issue.record("not postponed")
        return
      }
      waits.append(until - now)
      now = until
    }
    #expect(waits == [119, 239, 479, 959])
    _ = try deliver(&queue, to: "u", status: 200, at: now)
    Fixtures.add(Fixtures.verdict(host: "b"), to: &queue, at: now)
    let next = queue.claim("u", by: "me", at: now)
    #expect(try settle(&queue, next, status: 500, at: now) == .postponed(until: now + 60))
  }

  @Test("a report that a collector chokes on lets the others through")
  func choking() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(host: "bad"), to: &queue, at: 0)
    Fixtures.add(Fixtures.verdict(host: "good"), to: &queue, at: 0)
    let bad = queue.claim("u", by: "me", at: 0)
    #expect(try Fixtures.json(bad)["hostname"] == .string("bad"))
    _ = try settle(&queue, bad, status: 500, at: 0)
    #expect(try Fixtures.json(queue.claim("u", by: "me", at: 60))["hostname"] == .string("good"))
  }

  @Test("what comes in while a report is on its way is not lost, and not told twice")
  func meanwhile() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 0)
    let first = queue.claim("u", by: "me", at: 0)
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 5)
    _ = try settle(&queue, first, status: 200, at: 6)
    #expect(try Fixtures.json(queue.claim("u", by: "me", at: 6 + hour))["count"] == .number(1))
  }

  @Test("a report whose answer was lost goes out again under the same id")
  func lostAnswer() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 0)
    let first = try Fixtures.json(queue.claim("u", by: "me", at: 0))
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 5)
    let again = try Fixtures.json(queue.claim("u", by: "me", at: 200))
    #expect(again["report-id"] == first["report-id"])
    #expect(again["count"] == .number(2))
  }

  @Test("one process at a time sends to a URL; after the lease the next may, and one answer counts")
  func leases() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, urls: ["u", "v"], at: 0)
    let mine = queue.claim("u", by: "me", at: 0)
    #expect(mine != nil)
    #expect(queue.claim("u", by: "other", at: 119) == nil)
    #expect(queue.claim("v", by: "other", at: 0) != nil)
    #expect(queue.nextTime(["u"], by: "other") == 120)
    let theirs = queue.claim("u", by: "other", at: 120)
    #expect(theirs != nil)
    Fixtures.add(Fixtures.verdict(), to: &queue, urls: ["u"], at: 121)
    #expect(try settle(&queue, theirs, status: 200, at: 121) == .delivered)
    // The late answer to the first must not eat the failure that came after it.
    #expect(try settle(&queue, mine, status: 200, at: 122) == .superseded)
    #expect(
      try Fixtures.json(queue.claim("u", by: "me", at: 121 + hour))["count"] == .number(1))
  }

  @Test("a claim that was not carried out is free again at once")
  func release() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 0)
    let claimed = queue.claim("u", by: "me", at: 0)
    queue.release(try #require(claimed))
    let next = queue.claim("u", by: "other", at: 0)
    #expect(try settle(&queue, next, status: 200, at: 0) == .delivered)
  }

  @Test("a full queue refuses the newest kind and counts it; repeats of known kinds still count")
  func full() throws {
    var rules = ReportRules()
    rules.mostReports = 3
    var queue = ReportQueue(rules: rules)
    for host in ["a", "b", "c", "d", "d", "a"] {
      Fixtures.add(Fixtures.verdict(host: host), to: &queue, urls: ["u", "v"], at: 0)
    }
    #expect(queue.count == 3)
    #expect(queue.dropped == 2)
    let said = try Fixtures.json(queue.claim("u", by: "me", at: 0))
    #expect(said["hostname"] == .string("a"))
    #expect(said["count"] == .number(2))
    #expect(said["dropped-reports"] == .number(2))
  }

  @Test("kinds that have been told give way to new ones")
  func givingWay() throws {
    var rules = ReportRules()
    rules.mostReports = 2
    var queue = ReportQueue(rules: rules)
    Fixtures.add(Fixtures.verdict(host: "a"), to: &queue, at: 0)
    _ = try deliver(&queue, to: "u", status: 200, at: 0)
    Fixtures.add(Fixtures.verdict(host: "b"), to: &queue, at: 0)
    Fixtures.add(Fixtures.verdict(host: "c"), to: &queue, at: 0)
    #expect(queue.dropped == 0)
    Fixtures.add(Fixtures.verdict(host: "d"), to: &queue, at: 0)
    #expect(queue.dropped == 1)
  }

  @Test("an attack on one host leaves room for the report of another")
  func oneHost() {
    var queue = ReportQueue()
    for leaf in UInt8(0)...200 { Fixtures.add(Fixtures.verdict(leaf: leaf), to: &queue, at: 0) }
    #expect(queue.count == 16)
    #expect(queue.dropped == 185)
    Fixtures.add(Fixtures.verdict(host: "other"), to: &queue, at: 0)
    #expect(queue.count == 17)
  }

  @Test("bodies together stay below the bound in bytes")
  func bytes() {
    var rules = ReportRules()
    rules.mostBytes = 3000
    var queue = ReportQueue(rules: rules)
    for host in 0..<50 { Fixtures.add(Fixtures.verdict(host: "h\(host)"), to: &queue, at: 0) }
    #expect((2...6).contains(queue.count))
    #expect(queue.dropped == 50 - Int64(queue.count))
  }

  @Test("what is owed to a URL that another process may know is kept a month, and gives way")
  func reconfigured() throws {
    var rules = ReportRules()
    rules.mostReports = 2
    var queue = ReportQueue(rules: rules)
    Fixtures.add(Fixtures.verdict(host: "a"), to: &queue, urls: ["old"], at: 0)
    Fixtures.add(Fixtures.verdict(host: "b"), to: &queue, urls: ["old", "u"], at: 0)
    #expect(try deliver(&queue, to: "old", status: 500, at: 0) == .postponed(until: 60))
    queue.tidy(urls: ["u"], at: rules.patience - 1)
    #expect(queue.count == 2)
    #expect(queue.nextTime(["old"], by: "me") == 60)
    var full = queue
    Fixtures.add(Fixtures.verdict(host: "c"), to: &full, urls: ["u"], at: 1)
    #expect(full.dropped == 0)
    #expect(try Fixtures.json(full.claim("old", by: "me", at: 60))["hostname"] == .string("b"))
    Fixtures.add(Fixtures.verdict(host: "d"), to: &full, urls: ["u"], at: 1)
    #expect(full.dropped == 1)
    queue.tidy(urls: ["u"], at: rules.patience)
    #expect(queue.count == 1)
    #expect(queue.nextTime(["old"], by: "me") == nil)
    #expect(queue.nextTime(["u"], by: "me") == .min)
  }

  @Test("a clock that was set back silences nothing")
  func setBack() throws {
    let future: Int64 = 4_000_000_000
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(host: "a"), to: &queue, at: future)
    _ = try deliver(&queue, to: "u", status: 200, at: future)
    Fixtures.add(Fixtures.verdict(host: "a"), to: &queue, at: future)
    Fixtures.add(Fixtures.verdict(host: "b"), to: &queue, at: future)
    _ = try deliver(&queue, to: "u", status: 500, at: future)
    Fixtures.add(Fixtures.verdict(host: "c"), to: &queue, urls: ["v"], at: future)
    #expect(queue.claim("v", by: "gone", at: future) != nil)
    queue.tidy(urls: ["u", "v"], at: 1000)
    #expect(try Fixtures.json(queue.claim("u", by: "me", at: 1000))["hostname"] == .string("b"))
    #expect(queue.claim("v", by: "me", at: 1000) != nil)
    #expect(queue.nextTime(["u", "v"], by: "me").map { $0 <= 1000 } == true)
    _ = try deliver(&queue, to: "u", status: 200, at: 1000)
    #expect(queue.nextTime(["u"], by: "me") == 1000 + hour)
  }

  @Test("a queue survives the disk, whatever it holds")
  func roundTrip() throws {
    var queue = ReportQueue()
    #expect(ReportQueue(decoding: queue.encoded) == queue)
    for host in ["a", "b", "c\u{0}\"é"] {
      Fixtures.add(Fixtures.verdict(host: host), to: &queue, urls: ["u", "v"], at: 1000)
    }
    _ = try deliver(&queue, to: "u", status: 200, at: 1000)
    _ = try deliver(&queue, to: "u", status: 500, at: 1000)
    _ = queue.claim("v", by: "me", at: 1000)
    for leaf in UInt8(0)...40 { Fixtures.add(Fixtures.verdict(leaf: leaf), to: &queue, at: 5) }
    let read = try #require(ReportQueue(decoding: queue.encoded))
    #expect(read == queue)
    #expect(read.encoded == queue.encoded)
    #expect(read.dropped > 0)
  }

  @Test("a file that is not a whole queue is none")
  func broken() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 1000)
    _ = queue.claim("u", by: "me", at: 1000)
    let text = String(decoding: queue.encoded, as: UTF8.self)
    #expect(ReportQueue(decoding: Array(text.utf8)) != nil)
    for length in 0..<text.utf8.count {
      #expect(ReportQueue(decoding: Array(text.utf8.prefix(length))) == nil)
    }
    for (part, other) in [
      ("\"format\":1", "\"format\":2"), ("\"count\":1", "\"count\":0"),
      ("\"count\":1", "\"count\":-1"), ("\"count\":1", "\"count\":1.5"),
      ("\"failures\":0", "\"failures\":100000"), ("failure-reports", "registry-state"),
      ("\"dropped\":0", "\"dropped\":\"0\""),
    ] {
      let changed = try #require(
        text.range(of: part).map { text.replacingCharacters(in: $0, with: other) })
      #expect(ReportQueue(decoding: Array(changed.utf8)) == nil, "\(other)")
    }
  }

  @Test("what lived in memory while the disk was full is joined to what was on it")
  func absorbing() throws {
    var disk = ReportQueue()
    Fixtures.add(Fixtures.verdict(host: "a"), to: &disk, at: 10)
    var memory = ReportQueue()
    Fixtures.add(Fixtures.verdict(host: "a"), to: &memory, at: 20)
    Fixtures.add(Fixtures.verdict(host: "b"), to: &memory, at: 30)
    disk.absorb(memory, urls: ["u"])
    let first = disk.claim("u", by: "me", at: 40)
    #expect(try Fixtures.json(first)["count"] == .number(2))
    _ = try settle(&disk, first, status: 200, at: 40)
    #expect(try Fixtures.json(disk.claim("u", by: "me", at: 40))["hostname"] == .string("b"))
  }

  @Test("a larger body takes no place that is not there, and its failure is counted")
  func largerBody() throws {
    var queue = ReportQueue()
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 1)
    queue.rules.mostBytes = 4096
    var app = Fixtures.app
    for length in [1, 10_000] {
      app.platformVersion = String(repeating: "1", count: length)
      Fixtures.add(Fixtures.verdict(), to: &queue, at: 2, app: app)
    }
    let said = try Fixtures.json(queue.claim("u", by: "me", at: 3))
    #expect(said["app-platform-version"] == .string("1") && said["count"] == .number(3))
  }

  @Test("a report has the facts of the newest failure; of another app or version it is another one")
  func newestFacts() throws {
    var queue = ReportQueue()
    var app = Fixtures.app
    for (number, version) in ["15.1", "15.2"].enumerated() {
      app.platformVersion = version
      Fixtures.add(Fixtures.verdict(), to: &queue, at: Int64(number), app: app)
    }
    #expect(queue.count == 1)
    app.vendorID = nil
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 2, app: app)
    app.version = "2.0"
    Fixtures.add(Fixtures.verdict(), to: &queue, at: 3, app: app)
    #expect(queue.count == 3)
    var said: [JSONObject] = []
    while let delivery = queue.claim("u", by: "me", at: 4) {
      said.append(try Fixtures.json(delivery))
      #expect(try settle(&queue, delivery, status: 200, at: 4) == .delivered)
    }
    #expect(said.map { $0["count"] } == [.number(2), .number(1), .number(1)])
    #expect(said.map { $0["app-platform-version"] } == Array(repeating: .string("15.2"), count: 3))
    #expect(said.map { $0["app-version"] } == [.string("1.2"), .string("1.2"), .string("2.0")])
    #expect(said.map { $0["app-vendor-id"] } == [.string("vendor"), .string(""), .string("")])
  }
}
