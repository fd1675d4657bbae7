import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A vantage point that is silent is not waited for") struct SilentRoutesTests {
  private var silent = SilentRoutes()

  private func hurried(at now: Int64, to endpoint: String = "a") -> Set<Int> {
    Set(silent.routes(to: endpoint, of: 0..<3, at: now).keys)
  }

  @Test("for a minute, then it has its time again; one answer, and it has it at once")
  mutating func minute() {
    silent.note(1, to: "a", .silent, wasHurried: false, at: 1000)
    silent.note(2, to: "a", .heard, wasHurried: false, at: 1000)
    #expect(hurried(at: 1000) == [1])
    #expect(hurried(at: 1000, to: "b") == [1])
    // What a hurried probe comes to does not lengthen the minute: a slow point would never be back.
    silent.note(1, to: "a", .silent, wasHurried: true, at: 60_000)
    #expect(hurried(at: 60_999) == [1])
    #expect(hurried(at: 61_000) == [])
    silent.note(1, to: "a", .silent, wasHurried: false, at: 61_000)
    #expect(hurried(at: 61_000) == [1])
    silent.note(1, to: "b", .heard, wasHurried: true, at: 62_000)
    #expect(hurried(at: 62_000) == [])
  }

  @Test("an endpoint of which nothing comes through its tunnels hurries it for no other endpoint")
  mutating func emptyTunnel() {
    silent.note(1, to: "a", .heard, wasHurried: false, at: 1000)
    silent.note(1, to: "b", .empty, wasHurried: false, at: 2000)
    #expect(hurried(at: 2000, to: "b") == [1])
    #expect(hurried(at: 2000) == [])
    #expect(hurried(at: 62_000, to: "b") == [])
    // Nothing was heard through it for a minute: it may well be the point.
    silent.note(1, to: "b", .empty, wasHurried: false, at: 62_000)
    #expect(hurried(at: 62_000) == [1])
  }

  @Test("for as long as usual, but for twice what its last answer took: far points have their time")
  mutating func far() {
    silent.note(1, to: "a", .heard, in: 1700, wasHurried: false, at: 1000)
    silent.note(1, to: "b", .heard, in: 300, wasHurried: false, at: 1500)
    silent.note(1, to: "a", .empty, wasHurried: false, at: 2000)
    #expect(silent.routes(to: "a", of: 0..<3, at: 2000) == [1: 3400])
    silent.note(1, to: "b", .silent, wasHurried: false, at: 3000)
    #expect(silent.routes(to: "b", of: 0..<3, at: 3000) == [1: 1000])
    // Of one that it has not been to, what it took last.
    #expect(silent.routes(to: "c", of: 0..<3, at: 3000) == [1: 1000])
  }

  @Test(
    "while most places are taken each answer of a point has a second or half, until that is over for a second"
  )
  func crowd() {
    var points = SilentRoutes(places: 8)
    func begin(_ index: Int, at now: Int64) -> SilentRoutes.Patience {
      points.begin(to: "e\(index)", of: 1..<3, at: now)
    }
    // All first probes come at once, and have their time.
    let first = (0..<9).map { begin($0, at: 0) }
    #expect(first.allSatisfy(\.hurried.isEmpty))
    for patience in first { points.end(patience) }
    points.note(1, to: "e0", .heard, in: 1700, wasHurried: false, at: 50)
    points.note(1, to: "e0", .empty, wasHurried: false, at: 90)
    let usual = (1..<7).map { begin($0, at: 100) }
    #expect(usual.allSatisfy(\.hurried.isEmpty))
    // One that is silent is so all the same.
    let silent = begin(0, at: 100)
    #expect(silent.hurried == [1: 1000, 2: 1000])
    #expect(silent.pressed == [2])
    let last = begin(7, at: 100)
    #expect(last.hurried == [1: 500, 2: 500])
    #expect(last.pressed == [1, 2])
    for patience in usual + [silent, last] { points.end(patience) }
    let after = begin(8, at: 1099)
    #expect(after.hurried == [1: 500, 2: 500])
    points.end(after)
    #expect(begin(8, at: 1100).hurried.isEmpty)
  }

  private struct End: Comparable {
    let time: Int64
    let patience: SilentRoutes.Patience

    static func < (one: End, other: End) -> Bool { one.time < other.time }
    static func == (one: End, other: End) -> Bool { one.time == other.time }
  }

  /// How long a probe waits for a point that answers each of two questions so late.
  private static func wait(for delay: Int64, _ patience: Int64?) -> Int64 {
    guard let patience else { return min(5000, 2 * delay) }
    return delay > patience ? patience : 2 * delay
  }

  @Test(
    "one that answers late delays no key for long, however many endpoints change at once, and is still heard",
    arguments: [300, 2000, 10_000], [700, 3400] as [Int64])
  func late(count: Int, delay: Int64) {
    let (slow, change): (Int64, Int64) = (60_000, 120_000)
    var points = SilentRoutes()
    var ends = PriorityQueue<End>()
    var shown: [String: Int] = [:]
    var (published, probes, heard): (Int64, Int, Int) = (0, 0, 0)
    var simulation = ScheduleSimulation { id, now in
      while let end = ends.first, end.time <= now {
        _ = ends.popFirst()
        points.end(end.patience)
      }
      let patience = points.begin(to: id, of: 1..<2, at: now)
      let duration = now < slow ? 30 : Self.wait(for: delay, patience.hurried[1])
      ends.insert(End(time: now + duration, patience: patience))
      guard now >= change else { return (duration, .onSchedule) }
      probes += 1
      if (patience.hurried[1] ?? .max) >= delay { heard += 1 }
      let times = shown[id, default: 0] + 1
      shown[id] = times
      if times == 3 { published = max(published, now + duration) }
      return (duration, times < 3 ? .soon : .onSchedule)
    }
    for index in 0..<count { simulation.schedule.set("e\(index)", pause: 55_000, at: 0) }
    simulation.run(until: change + 80_000)
    #expect(shown.count == count)
    #expect(shown.values.allSatisfy { $0 >= 3 })
    #expect(published - change <= 70_000)
    #expect(heard * 100 >= probes)
    if count == 300 { #expect(heard == probes) }
  }
}

@Suite("A vantage point that is late while most places are taken") struct LatePointTests {
  @Test(
    "is told, and stands by what it saw; while places are free it has its whole time",
    .timeLimit(.minutes(1)), arguments: [1, 256])
  func late(places: Int) async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Late Root")
    let directory = try TemporaryDirectory()
    let file = try directory.write(authority.root.pem, to: "ca.pem")
    let server = try LocalTLSServer(identity: authority.issue(names: ["a.test"])) { _ in .text("") }
    let swallows = try LocalRawServer(.silent)
    let isLate = Locked(false)
    let gate = DispatchSemaphore(value: 0)
    let deaf = try InterceptingProxy.tunnelling { [port = server.port] _, _ in
      if isLate.withLock({ $0 }) { gate.wait() }
      return .loopback(port)
    }
    let hollow = try InterceptingProxy.tunnelling { [port = server.port] _, _ in
      .loopback(isLate.withLock { $0 } ? swallows.port : port)
    }
    // Before the proxies end, which wait for their threads.
    defer { withExtendedLifetime((deaf, hollow)) { for _ in 0..<9 { gate.signal() } } }
    let prober = try TLSEndpointProber(
      TLSConfiguration(
        timeout: 5000, anchors: file.path(percentEncoded: false),
        vantagePoints: [
          VantagePoint(name: "deaf", host: "127.0.0.1", port: deaf.port),
          VantagePoint(name: "hollow", host: "127.0.0.1", port: hollow.port),
        ], keyTypes: []),
      resolver: NameResolver { _, port in
        .success([TLSTools.Endpoint(address: "127.0.0.1", port: port)])
      }, places: places)
    let endpoint = WatchedEndpoint(fqdn: try HostName("a.test"), port: server.port)
    #expect(await prober.probe(endpoint).observations.map(\.cause) == [nil, nil, nil])
    isLate.withLock { $0 = true }
    let probe = await prober.probe(endpoint)
    #expect(probe.observations.map(\.cause) == [nil, .vantage, .timeout])
    let told = probe.observations.map { "\($0.outcome)".contains("it had a second at most") }
    if places == 1 {
      #expect(probe.delayed == ["deaf", "hollow"])
      #expect(probe.unreached.isEmpty)
      #expect(told == [false, true, true])
    } else {
      #expect(probe.unreached == ["hollow"])
      #expect(told == [false, false, false])
    }
    withExtendedLifetime((server, swallows, directory)) {}
  }
}
