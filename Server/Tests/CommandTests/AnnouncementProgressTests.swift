import Testing

@testable import ssl_pinning

@Suite("Where an announcement stands")
struct AnnouncementProgressTests {
  private typealias Finding = AnnouncementProgress.Finding
  private typealias Step = AnnouncementProgress.Step

  /// The steps that these findings lead to, each at its time.
  private static func steps(
    settle: Int64 = 0, listedSince: Int64? = nil, _ findings: [(Int64, Finding)]
  ) -> [Step] {
    var progress = AnnouncementProgress(
      settle: settle, listing: listedSince.map { .init(since: $0, seen: $0) })
    return [progress.next]
      + findings.map { time, finding in
        progress.enter(finding, at: time)
        return progress.next
      }
  }

  @Test("a key is staged, and its command runs straight after all lists have it")
  func straight() {
    #expect(
      Self.steps([
        (0, .staged), (0, .missing(at: "b")), (1, .paused), (1, .listed), (1, .ran),
      ]) == [.stage, .look, .pause(1), .look, .run, .end(.done)])
  }

  @Test("a key is staged whatever the lists have: it may be about to leave them")
  func staged() {
    for finding in [Finding.staged, .refused(code: "key-exists", "no")] {
      #expect(Self.steps([(0, finding), (0, .listed)]) == [.stage, .look, .run])
    }
    // All lists had it, so it was.
    #expect(Self.steps(listedSince: 0, [(0, .listed)]) == [.look, .run])
  }

  @Test(
    "a command that failed runs again only after another look, and a key that is gone is staged anew"
  )
  func takenBack() {
    #expect(
      Self.steps([
        (0, .staged), (0, .listed), (0, .failed("ended with 1")), (1, .paused),
        (1, .missing(at: "a")), (1, .staged), (1, .listed), (1, .ran),
      ]) == [.stage, .look, .run, .pause(1), .look, .stage, .look, .run, .end(.done)])
    #expect(Self.steps(listedSince: 0, [(1, .missing(at: "a"))]) == [.look, .stage])
  }

  @Test(
    "lists must have had the key for the time to settle without a gap, over a restart, and whatever the clock does"
  )
  func settling() {
    #expect(
      Self.steps(settle: 10, [(0, .staged), (100, .listed), (110, .paused), (110, .listed)])
        == [.stage, .look, .pause(10), .look, .run])
    #expect(
      Self.steps(settle: 10, [(0, .staged), (100, .listed), (105, .paused), (105, .listed)])
        == [.stage, .look, .pause(10), .look, .pause(5)])
    #expect(
      Self.steps(
        settle: 10,
        [
          (0, .staged), (100, .listed), (110, .paused), (110, .missing(at: "a")), (110, .staged),
          (111, .listed),
        ])
        == [.stage, .look, .pause(10), .look, .stage, .look, .pause(10)])
    #expect(Self.steps(settle: 10, listedSince: 95, [(105, .listed)]) == [.look, .run])
    // The clock was set back meanwhile.
    #expect(Self.steps(settle: 10, listedSince: 9_999, [(100, .listed)]) == [.look, .pause(10)])
  }

  @Test("a key settles for longer than caches keep the lists, and for a minute at least")
  func outlasted() {
    for (settle, kept, wait) in [
      (0, 0, 65), (0, 60, 65), (0, 61, 66), (0, 300, 305), (400, 300, 400),
    ] as [(Int64, Int64, Int64)] {
      var progress = AnnouncementProgress(settle: settle, listing: .init(since: 100, seen: 100))
      progress.outlast(kept)
      progress.enter(.listed, at: 100)
      // A later answer that says less is another node's: the first one's holds, over a restart as well.
      progress = AnnouncementProgress(settle: settle, listing: progress.listing)
      progress.outlast(0)
      progress.enter(.listed, at: 99 + wait)
      #expect(progress.next == .pause(1), "\(settle) \(kept)")
      progress.enter(.paused, at: 100 + wait)
      progress.enter(.listed, at: 100 + wait)
      #expect(progress.next == .run, "\(settle) \(kept)")
    }
  }

  @Test(
    "a cache that many share keeps an answer for what is meant for it, or for everybody, and while it asks anew",
    arguments: [
      ("public, max-age=60", 60), ("max-age=60, s-maxage=300", 300), ("S-MaxAge = \"300\"", 300),
      ("max-age=60, stale-while-revalidate=30", 90), ("max-age=31536000, immutable", 86_400),
      ("max-age=99999999999999999999", 86_400), ("max-age=10, max-age=20", 20),
      ("", 0), ("no-store", 0), ("max-age=", 0), ("max-age=\"\"", 0), ("max-age=-1", 0),
      ("max-age=x, =5, x-max-age=7", 0),
    ] as [(String, Int64)])
  func cacheControl(field: String, kept: Int64) {
    #expect(CacheControl.longestKept(field) == kept)
  }

  @Test("time in which a list could not be looked at is none to settle in, over a restart as well")
  func unseen() {
    let away: [(Int64, Finding)] = [
      (0, .staged), (100, .listed), (105, .paused), (105, .unseen("away")), (106, .paused),
      (200, .unseen("away")), (202, .paused), (300, .listed),
    ]
    #expect(
      Self.steps(settle: 10, away) == [
        .stage, .look, .pause(10), .look, .pause(1), .look, .pause(2), .look, .pause(10),
      ])
    // A quarter of an hour costs that, and what is longer the time until apps ask again as well.
    for (now, since) in [(160, 110), (1050, 1000), (1051, 1051), (5000, 5000)] as [(Int64, Int64)] {
      var progress = AnnouncementProgress(
        settle: 9000, listing: .init(since: 100, seen: 150, isBlind: true))
      progress.enter(.listed, at: now)
      #expect(progress.listing?.since == since && progress.listing?.seen == now)
    }
    // Nobody sleeps over an outage.
    #expect(Self.steps(settle: 4000, [(0, .staged), (0, .listed)]).last == .pause(60))
  }

  @Test(
    "a list that fails in every fifth look delays a key, says so, and does not keep it from its use"
  )
  func flapping() {
    var progress = AnnouncementProgress(settle: 3600, listing: .init(since: 0, seen: 0))
    var (now, told): (Int64, Set<String>) = (0, [])
    while now < 86_400, progress.next != .run {
      now += 60
      // A call of `--resume` a minute.
      progress = AnnouncementProgress(settle: 3600, listing: progress.listing)
      progress.enter(now % 300 == 0 ? .unseen("list b: timed out") : .listed, at: now)
      told.insert(progress.trouble)
    }
    // Of five minutes, the one before the failure and the one after it do not count.
    #expect(now == 5880)
    #expect(
      told.contains(
        "all lists have the key, and must for 60 s more before it is used; 2280 s did not count: list b: timed out"
      ), "\(told)")
  }

  @Test(
    "time in which nobody looked is none to settle in: a gap, a clock that is set",
    arguments: [
      // Looks minutes apart are all the time: others may be looked at in between.
      (160, 100), (1000, 100),
      // From then on it is a gap, and apps may be away for twice as long after it.
      (1001, 1001), (9_999, 9_999),
      // The clock was set back.
      (99, 99), (0, 0),
    ] as [(Int64, Int64)])
  func unwatched(now: Int64, since: Int64) {
    var progress = AnnouncementProgress(settle: 86_400, listing: .init(since: 100, seen: 100))
    progress.enter(.listed, at: now)
    #expect(progress.listing?.since == since && progress.listing?.seen == now)
  }

  @Test(
    "a gap costs three times its length, and a command that fails after long costs nothing")
  func gap() {
    var progress = AnnouncementProgress(settle: 5000, listing: .init(since: 0, seen: 4000))
    progress.enter(.listed, at: 5000)
    #expect(
      progress.listing
        == .init(since: 3000, seen: 5000, lost: 3000, reason: "nobody looked at the lists"))
    progress = AnnouncementProgress(settle: 10, listing: .init(since: 0, seen: 60))
    progress.enter(.listed, at: 60)
    #expect(progress.next == .run)
    progress.enter(.failed("ended with 1 after ten minutes"), at: 660)
    progress.enter(.paused, at: 661)
    progress.enter(.listed, at: 661)
    #expect(progress.next == .run)
  }

  @Test("what the server refuses is the end, but for a key that it has already")
  func refused() {
    func after(_ code: String?) -> Step? {
      Self.steps([(0, .refused(code: code, "no"))]).last
    }
    #expect(after("key-exists") == .look)
    for code in ["no-such-endpoint", "too-many-announced", nil] {
      #expect(after(code) == .end(.refused("no", isForGood: false)), "\(code ?? "none")")
    }
    // Once it was staged, that it exists explains nothing any more.
    #expect(
      Self.steps([(0, .staged), (0, .refused(code: "key-exists", "no"))]).last
        == .end(.refused("no", isForGood: false)))
  }

  @Test("only a list that is signed ends an announcement for good")
  func denied() {
    func after(_ finding: Finding) -> Step? {
      Self.steps([(0, .refused(code: "key-denied", "no")), (0, finding)]).last
    }
    #expect(Self.steps([(0, .refused(code: "key-denied", "no"))]).last == .look)
    let end = Step.end(.refused("the key is denied by a", isForGood: true))
    #expect(after(.denied(at: "a")) == end)
    #expect(Self.steps(listedSince: 0, [(1, .denied(at: "a"))]).last == end)
    for finding in [Finding.listed, .missing(at: "a"), .unseen("away")] {
      #expect(after(finding) == .end(.refused("no", isForGood: false)), "\(finding)")
    }
    #expect(after(.superseded) == .end(.superseded))
  }

  @Test(
    "failures are waited for longer each time, a minute at most, and begin anew once the key is staged"
  )
  func pauses() {
    let failures = (0..<8).flatMap { _ -> [(Int64, Finding)] in
      [(0, .failed("away")), (0, .paused)]
    }
    let pauses = Self.steps(failures).filter { $0 != .look && $0 != .stage }
    #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60].map { .pause($0) })
    let again: [(Int64, Finding)] = [(0, .staged), (0, .failed("away"))]
    #expect(Self.steps(failures + again).last == .pause(1))
  }

  @Test("a key that waits for a second person is not proposed again")
  func proposed() {
    var progress = AnnouncementProgress(settle: 0, isProposed: true)
    #expect(progress.next == .look)
    progress.enter(.missing(at: "a"), at: 0)
    #expect(progress.next == .pause(1))
  }

  @Test("what was announced anew meanwhile runs nothing")
  func superseded() {
    #expect(Self.steps([(0, .listed), (0, .superseded)]).last == .end(.superseded))
  }

  @Test(
    "commands that failed come last and take turns, and a call ends once its commands took a minute"
  )
  func order() {
    func run(_ failed: [Int64?], taking seconds: [Double], soon: Set<Int> = []) -> String {
      let before = failed.enumerated().map { index, time in
        time.map { (at: $0, isSlow: !soon.contains(index)) }
      }
      var (order, ran, took) = (AnnouncementOrder(failed: before, at: 2000), [Int](), 0.0)
      while let next = order.next(after: took) {
        ran.append(next)
        took += seconds[next]
      }
      return "\(ran) \(order.left)"
    }
    #expect(run([nil, nil, nil], taking: [1, 58, 1]) == "[0, 1, 2] 0")
    #expect(run([nil, nil, nil, nil], taking: [25, 25, 25, 25]) == "[0, 1, 2] 1")
    #expect(run([nil, nil, nil], taking: [600, 600, 1]) == "[0] 2")
    #expect(run([700, nil, nil], taking: [600, 600, 1]) == "[1] 2")
    #expect(run([700, 1300, nil], taking: [600, 600, 1]) == "[2, 0] 1")
    #expect(run([1900, 1300, nil], taking: [600, 600, 1]) == "[2, 1] 1")
    // By a clock that was ahead.
    #expect(run([9999, 9000, nil], taking: [600, 600, 1]) == "[2, 0] 1")
    // A chain that is not there yet fails soon, and is looked for in each call.
    #expect(run([700, 1300, 1900], taking: [600, 600, 1], soon: [2]) == "[2, 0] 1")
    #expect(run([1901, 1300, 1950], taking: [600, 600, 1], soon: [2]) == "[2, 1] 1")
    // However many fail soon: those that did not have theirs come first in the next call, and one that failed slowly once has its.
    #expect(run([7, 8, 9, 5], taking: [21, 21, 21, 1], soon: [0, 1, 2]) == "[0, 1, 3, 2] 0")
    #expect(run([7, 8, 9, 5], taking: [30, 30, 30, 1], soon: [0, 1, 2]) == "[0, 1, 3] 1")
    #expect(run([7, 8, 9], taking: [50, 50, 50], soon: [0, 1, 2]) == "[0, 1] 1")
  }

  @Test(
    "who did not answer in time is not waited for again in the same call, and others on its server a moment"
  )
  func silentPlaces() async {
    var (time, given) = (0.0, 0.0)
    var silent = SilentPlaces { time }
    func ask(_ place: String, taking seconds: Double, fails: Bool) async -> Bool? {
      await silent.ask(place) {
        given = $0
        time += seconds
        return (fails, fails)
      }
    }
    // One that refuses at once is asked again, as is one that is slow and answers.
    for (seconds, fails) in [(1.0, true), (19.0, false), (20.0, true)] {
      #expect(await ask("https://a.test/x", taking: seconds, fails: fails) == fails)
    }
    #expect(await ask("https://a.test/x", taking: 0, fails: false) == nil)
    #expect(await ask("https://a.test:8443/y", taking: 0, fails: false) == false && given == 10)
    #expect(await ask("https://a.test/y", taking: 0, fails: false) == false && given == 10)
    #expect(await ask("https://a.test/z", taking: 3, fails: true) == true)
    #expect(await ask("https://a.test/z", taking: 0, fails: false) == nil)
    // A minute in all, and then a moment for each until another one is over.
    for place in ["u", "v"] {
      #expect(await ask("https://a.test/\(place)", taking: 20, fails: true) == true && given == 10)
    }
    #expect(await ask("https://a.test/w", taking: 0, fails: false) == false && given == 3)
    for number in 0..<19 {
      #expect(await ask("https://a.test/\(number)", taking: 3, fails: true) == true && given == 3)
    }
    #expect(await ask("https://a.test/late", taking: 0, fails: false) == nil)
    // But who answered is asked as often as one likes, until that fails.
    for place in ["w", "y", "w"] {
      #expect(await ask("https://a.test/\(place)", taking: 5, fails: false) == false && given == 10)
    }
    #expect(await ask("https://a.test/w", taking: 10, fails: true) == true)
    #expect(await ask("https://a.test/w", taking: 0, fails: false) == nil)
    #expect(await ask("https://a.test:8443/w", taking: 0, fails: false) == false)
    // Nor is a server that is slow, once slow ones took ten minutes: nobody would look at others' lists.
    silent = SilentPlaces { time }
    for number in 0..<60 {
      #expect(await ask("https://slow.test/\(number)", taking: 10, fails: false) == false)
      #expect(await ask("https://fast.test/\(number)", taking: 3, fails: false) == false)
    }
    #expect(await ask("https://slow.test/0", taking: 0, fails: false) == nil)
    #expect(await ask("https://fast.test/0", taking: 0, fails: false) == false)
    // A call that is about one alone goes on asking.
    silent = SilentPlaces(remembers: false) { time }
    for _ in 0..<2 {
      #expect(await ask("https://a.test/x", taking: 20, fails: true) == true && given == 10)
    }
  }

  @Test("what a list served counts for a minute, and for whom the trust is the same")
  func recentLists() async {
    var (time, count) = (0.0, 0)
    let recent = RecentLists<String, Int> { time }
    func content(_ key: String = "a", fails: Bool = false) async -> Int? {
      try? await recent.content(of: key) {
        (time, count) = (time + 15, count + 1)
        if fails { throw CommandFailure.no("") }
        return count
      }
    }
    #expect(await content(fails: true) == nil)
    #expect(await content() == 2)
    #expect(await content("b") == 3)
    #expect(await content() == 2)
    // A minute after it was asked for.
    time = 74
    #expect(await content() == 2)
    time = 75
    #expect(await content() == 4)
  }
}
