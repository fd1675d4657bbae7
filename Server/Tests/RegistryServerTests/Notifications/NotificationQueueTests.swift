import SslPinningRules
import Testing

@testable import RegistryCore

@Suite("A queue of notifications") struct NotificationQueueTests {
  private static func condition(
    _ endpoint: String, isRefusing: Bool = false, kind: ServerAlert.Kind = .keyHeld
  ) -> Condition {
    Condition(
      .alert(kind), file: "a.json", subject: endpoint, pin: pin(1), since: 10, message: "m",
      isRefusing: isRefusing)
  }

  /// What is taken and delivered, as in `begun a`.
  private static func deliver(_ queue: inout NotificationQueue, ticks: Int64 = 0) -> [String] {
    let taken = queue.take(ticks: ticks)
    queue.finished(isDelivered: true, ticks: ticks)
    return taken.map { "\($0.phase) \($0.condition.subject)" }
  }

  @Test("tells a condition when it begins, and when it is over, once each")
  func once() {
    var queue = NotificationQueue()
    queue.observe([Self.condition("a")], at: 1)
    queue.observe([Self.condition("a")], at: 2)
    #expect(Self.deliver(&queue) == ["begun a"])
    queue.observe([Self.condition("a")], at: 3)
    #expect(Self.deliver(&queue) == [])
    queue.observe([], at: 4)
    queue.observe([], at: 5)
    #expect(Self.deliver(&queue) == ["over a"])
  }

  @Test(
    "gives each change of one condition a later time than the one before, whatever the clock does")
  func clockGoesBack() {
    var queue = NotificationQueue()
    var times: [Int64] = []
    for (now, conditions) in [
      (1000, [Self.condition("a")]), (1001, []), (10, [Self.condition("a", isRefusing: true)]),
      (11, []), (2000, [Self.condition("a"), Self.condition("b")]),
    ] as [(Int64, [Condition])] {
      queue.observe(conditions, at: now)
      times += queue.take(ticks: 0).map(\.at)
      queue.finished(isDelivered: true, ticks: 0)
    }
    #expect(times == [1000, 1001, 1002, 1003, 2000, 2000])
  }

  @Test("tells again if apps come to be refused by it, and not if they no longer are")
  func refusing() {
    var queue = NotificationQueue()
    queue.observe([Self.condition("a")], at: 1)
    #expect(Self.deliver(&queue) == ["begun a"])
    queue.observe([Self.condition("a", isRefusing: true)], at: 2)
    #expect(Self.deliver(&queue) == ["begun a"])
    queue.observe([Self.condition("a")], at: 3)
    #expect(Self.deliver(&queue) == [])
  }

  @Test("tells again of an endpoint that leaves more hosts, and not of one that leaves fewer")
  func moreHosts() {
    func endpoint(_ patterns: String...) -> WatchedEndpoint {
      WatchedEndpoint(
        fqdn: HostName.literal("gate.test"), patterns: patterns.compactMap { try? HostPattern($0) })
    }
    let other = WatchedEndpoint(fqdn: HostName.literal("other.test"))
    var state = DocumentState()
    for id in [endpoint("a.test").id, other.id] {
      state.keysByEndpoint[id] = EndpointKeys(keys: [
        KnownKey(pin: pin(1), firstSeen: 3, lastSeen: 30)
      ])
    }
    state.follow([endpoint("a.test", "b.test", "c.test"), other])
    var queue = NotificationQueue()
    func told(_ live: WatchedEndpoint...) -> [String] {
      state.follow(live)
      let conditions = Condition.alerts(of: state.markingWhoLeft(live), [:], in: "a.json")
      queue.observe(conditions, at: 1)
      return Self.deliver(&queue)
    }
    #expect(told(endpoint("b.test", "c.test"), other) == ["begun gate.test:443"])
    #expect(told(endpoint("b.test", "c.test"), other).isEmpty)
    #expect(told(endpoint("c.test"), other) == ["begun gate.test:443"])
    #expect(told(endpoint("b.test", "c.test"), other).isEmpty)
    #expect(told(other) == ["begun gate.test:443"])
    #expect(told(endpoint("a.test", "b.test", "c.test"), other) == ["over gate.test:443"])
  }

  @Test(
    "tells a mass change again once it lists more keys, those of ten seconds together, and not if fewer"
  )
  func moreKeys() {
    func change(_ key: UInt8, at since: Int64, isMassChange: Bool = true) -> Condition {
      let file = "h\(key).json"
      var condition = Condition(
        .alert(isMassChange ? .massChange : .unannouncedKey), file: file, since: since,
        message: "own")
      condition.part = MassChangeReport.Part(
        file: file, since: since, isMassChange: isMassChange, endpoints: ["\(file) h\(key)"],
        keys: ["h\(key) \(pin(key).base64)"])
      return condition
    }
    var queue = NotificationQueue()
    func told(_ parts: [Condition], at now: Int64) -> [String] {
      queue.observe(parts.withOneMassChange, at: now)
      let taken = queue.take(ticks: 0)
      queue.finished(isDelivered: true, ticks: 0)
      return taken.map { taken in
        let keys = (1...9 as ClosedRange<UInt8>).filter {
          taken.condition.message.contains(pin($0).base64)
        }
        return "\(taken.phase) \(keys)"
      }
    }
    var parts = [change(1, at: 100), change(2, at: 100), change(3, at: 100)]
    #expect(told(parts, at: 100) == ["begun [1, 2, 3]"])
    // In the same second, after the look; the next one later.
    parts.append(change(4, at: 100))
    #expect(told(parts, at: 101) == [])
    parts.append(change(5, at: 105))
    #expect(told(parts, at: 109) == [])
    #expect(told(parts, at: 110) == ["begun [1, 2, 3, 4, 5]"])
    #expect(told(parts, at: 130) == [])
    // An older one, the list of which was stored late.
    let late = change(6, at: 99, isMassChange: false)
    #expect(told(parts + [late], at: 131) == ["begun [1, 2, 3, 4, 5, 6]"])
    #expect(told(parts, at: 150) == [])
    #expect(told([], at: 151) == ["over [1, 2, 3, 4, 5]"])
  }

  @Test(
    "tells what joins a mass change that still waits with it, and its end though others need the room"
  )
  func joinsWhatWaits() {
    var queue = NotificationQueue()
    var change = Self.condition("m", kind: .massChange)
    for (second, listed) in [["a"], ["a", "b"], ["a", "b", "c"]].enumerated() {
      change.listed = Set(listed)
      queue.observe([change], at: Int64(second))
    }
    #expect(queue.take(ticks: 0).map(\.condition.listed) == [["a", "b", "c"]])
    queue.finished(isDelivered: true, ticks: 0)
    change.listed.insert("d")
    let warnings = (0..<999).map { Self.condition("\(10_000 + $0)") }
    let critical = Self.condition("new", isRefusing: true)
    queue.observe(warnings + [change], at: 20)
    #expect(queue.count == 1000)
    queue.observe(warnings + [change, critical], at: 21)
    queue.observe([critical], at: 22)
    #expect(Self.deliver(&queue) == ["begun m", "begun new", "over m"])
  }

  @Test("delivers in order, a burst at once, and one delivery at a time")
  func order() {
    var queue = NotificationQueue()
    queue.observe([Self.condition("b"), Self.condition("a", isRefusing: true)], at: 1)
    queue.observe([Self.condition("b")], at: 2)
    let first = queue.take(ticks: 0)
    #expect(
      first.map { "\($0.phase) \($0.condition.subject)" } == ["begun a", "begun b", "over a"])
    queue.observe([], at: 3)
    #expect(queue.take(ticks: 0).isEmpty)
    queue.finished(isDelivered: true, ticks: 0)
    #expect(Self.deliver(&queue) == ["over b"])
    #expect(queue.count == 0)
  }

  @Test(
    "tries again after ever longer pauses, the same and in the same order, and gives up in the end")
  func retries() {
    var queue = NotificationQueue()
    queue.observe([Self.condition("a")], at: 1)
    var ticks: Int64 = 0
    var pauses: [Int64] = []
    let first = queue.take(ticks: ticks)
    while true {
      queue.finished(isDelivered: false, ticks: ticks)
      guard queue.count > 0 else { break }
      let failed = ticks
      var again = queue.take(ticks: ticks)
      while again.isEmpty {
        ticks += 1000
        again = queue.take(ticks: ticks)
      }
      #expect(again == first)
      pauses.append(ticks - failed)
    }
    #expect(pauses.count == NotificationQueue.mostTries - 1)
    #expect(pauses.starts(with: [1000, 2000, 4000]))
    #expect(pauses.max() == 600_000)
    #expect(queue.lost == 1)
    queue.observe([Self.condition("a"), Self.condition("b")], at: 9)
    #expect(Self.deliver(&queue, ticks: ticks) == ["begun b"])
  }

  @Test("gives up no change with an older one: each has its own tries, and the pauses stay long")
  func triesOfEach() {
    var queue = NotificationQueue()
    let (old, new) = (Self.condition("a"), Self.condition("b", isRefusing: true))
    queue.observe([old], at: 1)
    var ticks: Int64 = 0
    func fail() {
      ticks += 600_000
      #expect(!queue.take(ticks: ticks).isEmpty)
      queue.finished(isDelivered: false, ticks: ticks)
    }
    for _ in 1..<NotificationQueue.mostTries { fail() }
    queue.observe([old, new], at: 2)
    fail()
    #expect(queue.lost == 1)
    #expect(queue.count == 1)
    #expect(queue.take(ticks: ticks + 599_999).isEmpty)
    for _ in 2..<NotificationQueue.mostTries { fail() }
    #expect(queue.count == 1)
    ticks += 600_000
    #expect(Self.deliver(&queue, ticks: ticks) == ["begun b"])
  }

  static let wishes: [(Int64, Int64)] = [
    (30, 30_000), (0, 1000), (-5, 1000), (.max, 600_000), (.min, 1000),
  ]

  @Test("leaves a receiver alone for as long as it asks, within bounds", arguments: wishes)
  func retryAfter(_ seconds: Int64, _ pause: Int64) {
    var queue = NotificationQueue()
    queue.observe([Self.condition("a")], at: 1)
    _ = queue.take(ticks: 0)
    queue.finished(isDelivered: false, retryAfter: seconds, ticks: 0)
    #expect(queue.take(ticks: pause - 1).isEmpty)
    #expect(queue.take(ticks: pause).count == 1)
  }

  @Test(
    "keeps no more than its capacity: what stands is told once there is room, and nothing is lost")
  func capacity() {
    var queue = NotificationQueue()
    let standing = (0..<1105).map { Self.condition("\(10_000 + $0)") }
    var told: [String] = []
    for second in 1...12 as ClosedRange<Int64> {
      queue.observe(standing, at: second)
      #expect(queue.count <= 1000)
      told += Self.deliver(&queue, ticks: second)
    }
    #expect(told == standing.map { "begun \($0.subject)" })
    #expect(queue.lost == 0)
  }

  @Test(
    "what refuses apps takes the room of what does not, which is told later, or never if it is over"
  )
  func room() {
    var queue = NotificationQueue()
    let warnings = (0..<1000).map { Self.condition("\(10_000 + $0)") }
    let critical = Self.condition("new", isRefusing: true)
    queue.observe(warnings, at: 1)
    #expect(queue.take(ticks: 0).count == 100)
    queue.observe(warnings + [critical], at: 2)
    #expect(queue.count == 1000)
    // It waits already, and not only with the next look.
    var now = queue
    now.finished(isDelivered: true, ticks: 0)
    #expect(Self.deliver(&now).last == "begun new")
    queue.finished(isDelivered: true, ticks: 0)
    // The last one gave way, and is over by the time that there is room.
    queue.observe(Array(warnings.dropLast()) + [critical], at: 3)
    var told: [String] = []
    while queue.count > 0 { told += Self.deliver(&queue) }
    #expect(told.count == 900 && told[99] == "begun new" && !told.contains("begun 10999"))
    #expect(queue.lost == 0)
  }

  @Test("tells nothing that came and went while the receiver was away, but what it heard of")
  func flapping() {
    var queue = NotificationQueue()
    let critical = Self.condition("held", isRefusing: true)
    queue.observe([critical, Self.condition("known")], at: 1)
    #expect(queue.take(ticks: 0).count == 2)
    queue.finished(isDelivered: false, ticks: 0)
    for second in 2...5001 as ClosedRange<Int64> {
      let isThere = second % 2 == 0
      queue.observe(
        [critical] + (isThere ? [Self.condition("flap")] : [Self.condition("known")]), at: second)
      #expect(queue.count <= 4)
    }
    #expect(Self.deliver(&queue, ticks: 1000) == ["begun held", "begun known"])
    queue.observe([critical], at: 5002)
    #expect(Self.deliver(&queue, ticks: 1000) == ["over known"])
    #expect(queue.count == 0 && queue.lost == 0)
  }

  @Test(
    "is told in smaller parts to whoever takes no large ones, and what is too large alone is given up"
  )
  func parts() {
    var queue = NotificationQueue()
    var large = (10..<50).map { Self.condition("\($0)") }
    for index in large.indices { large[index].message = String(repeating: "m", count: 20_000) }
    queue.observe(large, at: 1)
    // By its bytes.
    #expect(queue.take(ticks: 0).count == 13)
    queue.finished(isDelivered: false, refusal: .tooLarge, ticks: 0)
    #expect(queue.take(ticks: 0).count == 6)
    queue.finished(isDelivered: true, ticks: 0)
    var counts: [Int] = []
    for _ in 0..<3 {
      counts.append(queue.take(ticks: 0).count)
      queue.finished(isDelivered: false, refusal: .tooLarge, ticks: 0)
    }
    #expect(counts == [12, 6, 3])
    _ = queue.take(ticks: 0)
    #expect(queue.lost == 0)
    queue.finished(isDelivered: false, refusal: .tooLarge, ticks: 0)
    #expect(queue.count == 33 && queue.lost == 1)
  }

  /// What a receiver takes, and when, that refuses every delivery with one of these.
  private static func told(
    by queue: inout NotificationQueue, refusing subjects: Set<String>, in ticks: Range<Int64>
  ) -> [(change: String, at: Int64)] {
    var told: [(change: String, at: Int64)] = []
    for now in stride(from: ticks.lowerBound, to: ticks.upperBound, by: 1000) {
      let taken = queue.take(ticks: now)
      guard !taken.isEmpty else { continue }
      let isRefused = taken.contains { subjects.contains($0.condition.subject) }
      queue.finished(isDelivered: !isRefused, refusal: isRefused ? .content : nil, ticks: now)
      if !isRefused { told += taken.map { ("\($0.phase) \($0.condition.subject)", now) } }
    }
    return told
  }

  @Test("puts off alone what the receiver refuses: all else is told, first what refuses apps")
  func refused() {
    var queue = NotificationQueue()
    let warnings = (10..<40).map { Self.condition("\($0)") }
    queue.observe(warnings, at: 1)
    queue.observe(warnings + [Self.condition("z", isRefusing: true)], at: 2)
    let told = Self.told(by: &queue, refusing: ["10"], in: 0..<120_000).map(\.change)
    #expect(told == ["begun z"] + warnings.dropFirst().map { "begun \($0.subject)" })
    #expect(queue.count == 1 && queue.lost == 0)
    // What comes to refuse apps meanwhile does not wait for it, and it is given up in the end.
    queue.observe(warnings + ["y", "z"].map { Self.condition($0, isRefusing: true) }, at: 120)
    let later = Self.told(by: &queue, refusing: ["10"], in: 120_000..<151_000)
    #expect(later.map(\.change) == ["begun y"])
    #expect(Self.told(by: &queue, refusing: ["10"], in: 151_000..<40_000_000).isEmpty)
    #expect(queue.count == 0 && queue.lost == 1)
  }

  @Test("keeps together what a receiver that is away does not take")
  func away() {
    var queue = NotificationQueue()
    queue.observe((10..<20).map { Self.condition("\($0)") }, at: 1)
    for round in 0..<12 as Range<Int64> {
      #expect(queue.take(ticks: round * 600_000).count == 10)
      queue.finished(isDelivered: false, ticks: round * 600_000)
    }
  }

  @Test("tells all soon after a receiver that refused everything takes something")
  func recovered() throws {
    var queue = NotificationQueue()
    let subjects = (10..<30).map { "\($0)" }
    queue.observe(subjects.map { Self.condition($0) }, at: 1)
    #expect(Self.told(by: &queue, refusing: Set(subjects), in: 0..<3_600_000).isEmpty)
    #expect(queue.count == 20 && queue.lost == 0)
    let told = Self.told(by: &queue, refusing: [], in: 3_600_000..<4_300_000)
    #expect(told.count == 20)
    let (first, last) = (try #require(told.first), try #require(told.last))
    #expect(last.at - first.at <= 10_000)
  }

  @Test("gives the room of all warnings to what refuses apps, and tells each of them later, once")
  func crowdOfBoth() {
    var queue = NotificationQueue()
    let warnings = (0..<1000).map { Self.condition("w\(10_000 + $0)") }
    let critical = (0..<1500).map { Self.condition("c\(10_000 + $0)", isRefusing: true) }
    queue.observe(warnings, at: 1)
    queue.observe(warnings + critical, at: 2)
    #expect(queue.count == 1000)
    var told: [String] = []
    for second in 3...30 as ClosedRange<Int64> {
      told += Self.deliver(&queue, ticks: second)
      queue.observe(warnings + critical, at: second)
    }
    #expect(told == (critical + warnings).map { "begun \($0.subject)" })
    #expect(queue.count == 0 && queue.lost == 0)
  }

  @Test("gives nobody the room of what the receiver may have heard of: it hears of the end")
  func heardKeepsItsRoom() {
    var queue = NotificationQueue()
    queue.observe([Self.condition("first")], at: 1)
    #expect(queue.take(ticks: 0).count == 1)
    queue.finished(isDelivered: false, ticks: 0)
    let critical = (0..<1000).map { Self.condition("\(10_000 + $0)", isRefusing: true) }
    queue.observe([Self.condition("first")] + critical, at: 2)
    #expect(queue.count == 1000)
    queue.observe(critical, at: 3)
    var told: [String] = []
    while queue.count > 0 { told += Self.deliver(&queue, ticks: 1000) }
    #expect(told.filter { $0.hasSuffix("first") } == ["begun first", "over first"])
  }

  @Test("tells all that refused apps, and all ends, if more begin and end than have room")
  func crowded() {
    var queue = NotificationQueue()
    let all = (0..<1300).map { Self.condition("\(10_000 + $0)", isRefusing: true) }
    queue.observe(all, at: 1)
    #expect(queue.count == 1000)
    // Some recover while the receiver is away, also of those that found no room.
    let left = Array(all.dropFirst(500).dropLast(100))
    queue.observe(left, at: 2)
    #expect(queue.count == 1500)
    var told: [String] = []
    for second in 3...40 as ClosedRange<Int64> {
      told += Self.deliver(&queue, ticks: second)
      queue.observe(left, at: second)
    }
    #expect(queue.lost == 0 && queue.count == 0)
    #expect(
      told.filter { $0.hasPrefix("begun") } == all.dropLast(100).map { "begun \($0.subject)" })
    #expect(told.filter { $0.hasPrefix("over") } == all.prefix(500).map { "over \($0.subject)" })
  }

  @Test("tells an end that it tried already, though the same began and ended again meanwhile")
  func triedEnd() {
    var queue = NotificationQueue()
    queue.observe([Self.condition("a")], at: 1)
    #expect(Self.deliver(&queue) == ["begun a"])
    queue.observe([], at: 2)
    #expect(queue.take(ticks: 0).count == 1)
    queue.finished(isDelivered: false, ticks: 0)
    queue.observe([Self.condition("a")], at: 3)
    queue.observe([], at: 4)
    #expect(Self.deliver(&queue, ticks: 1000) == ["over a"])
    #expect(queue.count == 0)
  }

  @Test("does not say that something is over when another server comes to tell it")
  func forgetting() {
    var queue = NotificationQueue()
    let own = Condition(.tokenEnds, subject: "t", since: 1, message: "m")
    queue.observe([Self.condition("a"), own], at: 1)
    #expect(Self.deliver(&queue).count == 2)
    queue.forget { $0.isOfLeader }
    queue.observe([own], at: 2)
    #expect(queue.count == 0)
    queue.observe([], at: 3)
    #expect(Self.deliver(&queue) == ["over t"])
  }

  @Test(
    "leaves what it could not deliver to the server that tells it now: no end after another beginning"
  )
  func undelivered() {
    var queue = NotificationQueue()
    let own = Condition(.tokenEnds, subject: "t", since: 1, message: "m")
    queue.observe([Self.condition("a", isRefusing: true)], at: 1)
    #expect(queue.take(ticks: 0).count == 1)
    // Over while its beginning is under way.
    queue.observe([own], at: 2)
    queue.forget { $0.isOfLeader }
    queue.finished(isDelivered: false, ticks: 0)
    #expect(Self.deliver(&queue, ticks: 1000) == ["begun t"])
    #expect(queue.count == 0)
    #expect(queue.lost == 0)
    // What was delivered meanwhile is delivered.
    queue.observe([own, Self.condition("a")], at: 3)
    #expect(queue.take(ticks: 2000).count == 1)
    queue.forget { $0.isOfLeader }
    queue.observe([own, Self.condition("a")], at: 4)
    queue.finished(isDelivered: true, ticks: 2000)
    #expect(Self.deliver(&queue, ticks: 2000) == ["begun a"])
  }

  @Test("is the same on every server and after a restart, but for a moment that comes again")
  func identity() {
    var (a, b) = (Self.condition("a"), Self.condition("a"))
    (b.since, b.message, b.isRefusing) = (99, "other", true)
    #expect(a.identity == b.identity)
    a.kind = .alert(.unannouncedKey)
    b.kind = .alert(.unannouncedKey)
    #expect(a.identity != b.identity)
  }
}
