import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer

/// A clock that says what the test says; who sleeps wakes when cancelled.
private final class SetClock: ServerClock {
  private let time = Locked<Int64>(0)

  func set(_ milliseconds: Int64) { time.withLock { $0 = milliseconds } }
  func now() -> Int64 { 1_780_000_000 + uptime() / 1000 }
  func elapsed() -> Int64 { uptime() / 1000 }
  var isSynchronized: Bool { false }
  func uptime() -> Int64 { time.withLock { $0 } }

  func sleep(milliseconds: Int64) async throws {
    // why: lasts until it is cancelled.
    try await Task.sleep(for: .seconds(3600))
  }
}

/// A network, or a store, in which whoever comes waits until it is opened.
private struct Waiting: EndpointProber, ProbeReceiver {
  let gate = Gate()

  func probe(_ endpoint: WatchedEndpoint) async -> ProbeResult {
    await gate.wait()
    return .unreachable(reason: "nothing to see")
  }

  func enter(_ probe: ProbeResult) async -> NextProbe {
    await gate.wait()
    return .onSchedule
  }
}

@Suite("The service manager is told the truth")
struct ServiceManagerTests {
  private static let patience = MonitorProgress.patience(timeout: 5000)

  @Test(
    "stuck is who begins nothing that is due, or asks without end, and nobody else",
    arguments: [
      // Nothing is planned, or all places are taken by probes that come back.
      (MonitorProgress(running: 0), nil),
      (MonitorProgress(running: 0, began: 0, due: nil, oldest: 1_000_000 - 180_000), nil),
      // Due in the future, due now, due since long with probes that begin all the time.
      (MonitorProgress(running: 0, began: 0, due: 2_000_000), nil),
      (MonitorProgress(running: 0, began: 0, due: 1_000_000), nil),
      (MonitorProgress(running: 0, began: 999_000, due: 0, oldest: 999_000), nil),
      // The last moment, and the next.
      (MonitorProgress(running: 0, began: 0, due: 820_000), nil),
      (MonitorProgress(running: 0, began: 0, due: 819_999), .idle(milliseconds: 180_001)),
      (MonitorProgress(running: 0, began: 819_999, due: 0), .idle(milliseconds: 180_001)),
      (MonitorProgress(running: 0, began: 0, oldest: 819_999), .endless(milliseconds: 180_001)),
      // One that hangs while the others go on.
      (
        MonitorProgress(running: 0, began: 999_999, due: 1_000_000, oldest: 1000),
        .endless(milliseconds: 999_000)
      ),
      // One that has just begun to run, with what was due before, and one that never began.
      (MonitorProgress(running: 999_000, due: 0), nil),
      (MonitorProgress(running: 1000, due: 0), .idle(milliseconds: 999_000)),
    ] as [(MonitorProgress, MonitorProgress.Fault?)])
  func rule(progress: MonitorProgress, fault: MonitorProgress.Fault?) {
    #expect(progress.fault(at: 1_000_000, patience: Self.patience) == fault)
  }

  @Test("a longer deadline of probes is waited for longer")
  func patience() {
    #expect(MonitorProgress.patience(timeout: 100) == 180_000)
    #expect(MonitorProgress.patience(timeout: 60_000) == 1_200_000)
  }

  private static func target(_ name: String, _ store: Waiting) throws -> Monitor.Target {
    Monitor.Target(
      id: name, endpoint: WatchedEndpoint(fqdn: try HostName(name)), pause: 60_000, decision: store)
  }

  private static func monitor(
    _ network: Waiting, _ store: Waiting, _ clock: SetClock, places: Int
  ) throws -> Monitor {
    let monitor = Monitor(
      observer: network, clock: clock, settings: ProbeSchedule.Settings(limit: places))
    monitor.update(endpoints: [try target("a.test", store), try target("b.test", store)])
    return monitor
  }

  private static func fault(of monitor: Monitor, _ clock: SetClock) -> MonitorProgress.Fault? {
    monitor.progress.fault(at: clock.uptime(), patience: patience)
  }

  @Test("a probe that never comes back is noticed, and forgotten when it does")
  func endlessProbe() async throws {
    let (network, store, clock) = (Waiting(), Waiting(), SetClock())
    store.gate.open()
    let monitor = try Self.monitor(network, store, clock, places: 1)
    let run = Task { await monitor.run() }
    #expect(await eventually { network.gate.count == 1 })
    clock.set(Self.patience)
    #expect(Self.fault(of: monitor, clock) == nil)
    clock.set(Self.patience + 1)
    #expect(Self.fault(of: monitor, clock) == .endless(milliseconds: Self.patience + 1))
    network.gate.open()
    #expect(await eventually { Self.fault(of: monitor, clock) == nil })
    run.cancel()
    await run.value
  }

  @Test(
    "a store that does not answer is no reason, be it for all places, for some, or at the end",
    arguments: [1, 8])
  func hangingStore(places: Int) async throws {
    let (network, store, clock) = (Waiting(), Waiting(), SetClock())
    network.gate.open()
    let monitor = try Self.monitor(network, store, clock, places: places)
    let run = Task { await monitor.run() }
    #expect(await eventually { store.gate.count == min(places, 2) })
    clock.set(100 * Self.patience)
    #expect(Self.fault(of: monitor, clock) == nil)
    run.cancel()
    // It is due at once, and nobody begins it any more.
    monitor.update(
      endpoints: try ["a.test", "b.test", "c.test"].map { try Self.target($0, store) })
    clock.set(200 * Self.patience)
    #expect(await eventually { Self.fault(of: monitor, clock) == nil })
    store.gate.open()
    await run.value
  }

  @Test(
    "goes by the variables, and by none that are for another process",
    arguments: [
      ([:], nil),
      (["NOTIFY_SOCKET": ""], nil),
      (["NOTIFY_SOCKET": "/"], nil),
      (["NOTIFY_SOCKET": "vsock:2:1234", "WATCHDOG_USEC": "60000000"], nil),
      (["NOTIFY_SOCKET": "/run/x"], .some(nil)),
      (["NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "60000000"], 60_000),
      (["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"], .some(nil)),
      (
        ["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "10000000", "WATCHDOG_PID": "\(getpid())"],
        10_000
      ),
      (["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "0"], .some(nil)),
      (["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "soon"], .some(nil)),
      (["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "1"], 2),
    ] as [([String: String], Int64??)])
  func variables(environment: [String: String], deadline: Int64??) {
    #expect(ServiceManager(environment: environment).map(\.deadline) == deadline)
  }

  @Test("gets no sign of life while the watching is stuck, and hears why, once")
  func withheld() async throws {
    try await withTemporaryDirectory { directory in
      let socket = try NotifySocket(directory.path("notify"))
      let manager = try #require(
        ServiceManager(environment: ["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "20000"]))
      let (fault, log) = (Locked<MonitorProgress.Fault?>(nil), LogCollector())
      let asked = Locked(0)
      let beats = Task {
        var supervision = Supervision(
          manager, clock: SystemClock(), log: log.log,
          metrics: ServerMetrics(version: "test", started: 0),
          fault: { _ in
            asked.withLock { $0 += 1 }
            return fault.withLock { $0 }
          }, giveBack: {})
        await supervision.run()
      }
      #expect(await eventually { socket.lines.count { $0 == "WATCHDOG=1" } >= 3 })
      fault.withLock { $0 = .idle(milliseconds: 200_000) }
      let reason = "STATUS=stuck: no probe was begun for 200 s, although one is due"
      #expect(await eventually { socket.lines.contains(reason) })
      let (heard, askedBefore) = (socket.lines, asked.withLock { $0 })
      #expect(await eventually { asked.withLock { $0 } > askedBefore + 3 })
      #expect(socket.lines == heard)
      #expect(log.events("watching_stuck").count == 1)
      fault.withLock { $0 = nil }
      #expect(await eventually { socket.messages.contains("WATCHDOG=1\nSTATUS=watching again") })
      beats.cancel()
      await beats.value
    }
  }

  /// What was told by some moment: how often that the watching is stuck, that it goes on, and that another server is to lead;
  /// and the metric.
  struct Told: Sendable, Equatable {
    var stuck = 0
    var over = 0
    var givenBack = 0
    var metric = 0.0
  }

  @Test(
    "without a manager, a watching that is stuck is told once, and given back if no probe begins at all",
    arguments: [
      // Nothing is begun though it is due.
      (
        MonitorProgress(running: 0, due: 0),
        [
          (180, Told()), (181, Told(stuck: 1, metric: 1)),
          (196, Told(stuck: 1, givenBack: 1, metric: 1)),
          (3600, Told(stuck: 1, givenBack: 1, metric: 1)),
        ]
      ),
      // One probe hangs, and others begin: who else would watch them?
      (
        MonitorProgress(running: 0, began: 3_600_000, oldest: 0),
        [(180, Told()), (181, Told(stuck: 1, metric: 1)), (3600, Told(stuck: 1, metric: 1))]
      ),
      // This server does not lead.
      (nil, [(3600, Told())]),
    ] as [(MonitorProgress?, [(seconds: Int64, told: Told)])])
  func unmanaged(_ progress: MonitorProgress?, _ looks: [(seconds: Int64, told: Told)]) throws {
    let (clock, log, current) = (SetClock(), LogCollector(), Locked(progress))
    let (metrics, givenBack) = (ServerMetrics(version: "test", started: 0), Locked(0))
    var supervision = Supervision(
      nil, clock: clock, log: log.log, metrics: metrics,
      fault: { now in current.withLock { $0 }?.fault(at: now, patience: Self.patience) },
      giveBack: { givenBack.withLock { $0 += 1 } })
    func told(_ seconds: Int64) throws -> Told {
      clock.set(seconds * 1000)
      supervision.look()
      let page = try PrometheusPage(metrics.exposition(at: 0))
      return Told(
        stuck: log.events("watching_stuck").count, over: log.events("watching_goes_on").count,
        givenBack: givenBack.withLock { $0 },
        metric: page.samples["ssl_pinning_watching_stuck"] ?? -1)
    }
    for look in looks { #expect(try told(look.seconds) == look.told, "\(look.seconds) s") }
    current.withLock { $0 = nil }
    let last = try #require(looks.last).told
    #expect(
      try told(3700)
        == Told(stuck: last.stuck, over: last.stuck, givenBack: last.givenBack, metric: 0))
  }

  @Test("a process that stood still gives nothing back: it goes on by the next look")
  func stoodStill() {
    let (clock, givenBack) = (SetClock(), Locked(0))
    let progress = Locked(MonitorProgress(running: 0, due: 0))
    var supervision = Supervision(
      nil, clock: clock, log: LogCollector().log,
      metrics: ServerMetrics(version: "test", started: 0),
      fault: { now in progress.withLock { $0 }.fault(at: now, patience: Self.patience) },
      giveBack: { givenBack.withLock { $0 += 1 } })
    for hour in 1...3 as ClosedRange<Int64> {
      clock.set(hour * 3_600_000)
      supervision.look()
      progress.withLock { $0.began = hour * 3_600_000 }
      supervision.look()
    }
    #expect(givenBack.withLock { $0 } == 0)
  }

  @Test("waits for nobody who is not there")
  func nobody() throws {
    let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": "/nonexistent/x"]))
    manager.notify(.ready)
    let long = "/" + String(repeating: "x", count: 200)
    try #require(ServiceManager(environment: ["NOTIFY_SOCKET": long])).notify(.ready)
  }
}
