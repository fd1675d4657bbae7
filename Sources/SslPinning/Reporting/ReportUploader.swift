import Foundation
import SslPinningPlatform
import SslPinningRules

/// Carries reports from the inbox to the disk and from there to the collectors.
///
/// - On the disk first, sent second, struck off third: whenever the process dies, nothing is lost that
///   was on the disk, and at worst one report is sent twice.
/// - What was noted is saved at once, and each collector is served by itself: one that is slow or hangs
///   delays neither the disk nor another.
actor ReportUploader {
  private let app: ReportedApp
  private let collectors: [RegistryURL]
  private let inbox: Locked<ReportInbox>
  private let store: ReportStore
  private let poster: ReportPoster
  private let clocks: Clocks
  private let time: @Sendable () -> TrustTime?
  private let events: @Sendable (ReportingEvent) -> Void
  private let wake: @Sendable () -> Void
  /// Tells this process from others, and from its own past.
  private let owner: String
  private var lastSave: Task<Void, Never>?
  /// By URL: the turn that has begun last, the one behind it, and the nap until the next.
  private var serving: [String: Task<Void, Never>] = [:]
  private var waiting: [String: Task<Void, Never>] = [:]
  private var timers: [String: Task<Void, Never>] = [:]
  private var isStopped = false

  /// Seconds that one POST may take; less than ``ReportRules/lease``.
  private static let timeout: Double = 30
  /// The longest nap, in seconds: the wall clock may be set, or another process have reports.
  private static let longestNap: Int64 = 3600

  init(
    config: ReportingConfig, collectors: [RegistryURL], inbox: Locked<ReportInbox>,
    file: AtomicFile?,
    rules: ReportRules, poster: ReportPoster, clocks: Clocks,
    time: @escaping @Sendable () -> TrustTime?,
    events: @escaping @Sendable (ReportingEvent) -> Void, wake: @escaping @Sendable () -> Void
  ) {
    app = ReportedApp(
      bundleID: config.appBundleId, version: config.appVersion, platform: config.appPlatform,
      platformVersion: config.appPlatformVersion, vendorID: config.appVendorId)
    self.collectors = collectors
    self.inbox = inbox
    store = ReportStore(
      file: file, rules: rules, urls: collectors.map(\.description), events: events)
    self.poster = poster
    self.clocks = clocks
    self.time = time
    self.events = events
    self.wake = wake
    owner = Self.randomText()
  }

  /// Saves what is in the inbox and begins to send what is due.
  ///
  /// - Returns: what goes on: one task for each collector, which ends when nothing is due there any more.
  @discardableResult func begin() async -> [Task<Void, Never>] {
    await save()
    if await store.isEmpty() { return [] }
    return collectors.map { next($0) }
  }

  /// Saves what is in the inbox and sends what is due; returns when nothing is due any more. Once it is
  /// cancelled, it returns when all is saved: what is on its way then goes on behind it.
  func pass() async {
    let tasks = await begin()
    let (cancelled, continuation) = AsyncStream.makeStream(of: Void.self)
    await withTaskCancellationHandler {
      await firstOf({ for task in tasks { await task.value } }, { for await _ in cancelled {} })
    } onCancel: {
      continuation.finish()
    }
  }

  /// Saves what is in the inbox and ends: nothing is sent, nothing wakes the worker any more.
  func stop() async {
    isStopped = true
    for tasks in [timers, waiting, serving] { for task in tasks.values { task.cancel() } }
    await save()
  }

  /// One save after the other: whoever finds the inbox empty returns once another's is on the disk, too.
  private func save() async {
    let previous = lastSave
    let task = Task {
      await previous?.value
      await oneSave()
    }
    lastSave = task
    await task.value
  }

  private func oneSave() async {
    let seen = inbox.withLock { inbox in
      defer { inbox = ReportInbox() }
      return inbox
    }
    guard !seen.isEmpty else { return }
    let urls = collectors.map(\.description)
    let now = clocks.wall()
    let dropped = await store.transaction(at: now) { [app] queue in
      let before = queue.dropped
      queue.add(seen, app: app, urls: urls, at: now, makeID: Self.randomText)
      return queue.dropped - before
    }
    if dropped > 0 { events(.dropped(failures: dropped)) }
  }

  /// The turn at a collector that sends all that is saved by now. At most one waits for the turn
  /// under way, however many failures are noted while a collector hangs.
  private func next(_ collector: RegistryURL) -> Task<Void, Never> {
    let url = collector.description
    if let task = waiting[url] { return task }
    let previous = serving[url]
    let task = Task {
      await previous?.value
      await serve(collector)
    }
    waiting[url] = task
    return task
  }

  private func serve(_ collector: RegistryURL) async {
    let url = collector.description
    serving[url] = waiting.removeValue(forKey: url)
    timers.removeValue(forKey: url)?.cancel()
    while !Task.isCancelled {
      let now = clocks.wall()
      let claimed = await store.transaction(at: now) { [owner] queue in
        queue.claim(url, by: owner, at: now)
      }
      guard let claimed, await deliver(claimed, to: collector) else { break }
    }
    await nap(url)
  }

  /// Whether the collector may be sent the next report now.
  private func deliver(_ delivery: ReportQueue.Delivery, to collector: RegistryURL) async -> Bool {
    let answer: ReportQueue.Answer
    let reason: String
    do throws(FetchError) {
      let answered = try await poster.post(
        delivery.body, to: collector, timeout: Self.timeout, at: time())
      let now = clocks.wall()
      let wait = answered.retryAfter.flatMap { RetryAfter.seconds($0, at: now) }
      answer = .status(answered.status, retryAfter: wait)
      reason = "status \(answered.status)"
    } catch {
      // Whoever was told to stop has learnt nothing about the collector.
      if Task.isCancelled {
        await store.transaction(at: clocks.wall()) { $0.release(delivery) }
        return false
      }
      answer = .unreachable
      reason = "\(error)"
    }
    let (now, random) = (clocks.wall(), clocks.random())
    let settlement = await store.transaction(at: now) { queue in
      queue.settle(delivery, answer, at: now, random: random)
    }
    switch (settlement, answer) {
    case (.postponed(let until), _):
      events(.postponed(host: collector.host, until: Date(unixSeconds: until), reason: reason))
      return false
    case (.rejected, .status(let status, _)):
      events(.rejected(host: collector.host, status: status))
    default: break
    }
    return true
  }

  private func nap(_ url: String) async {
    let now = clocks.wall()
    let next = await store.transaction(at: now) { [owner] in $0.nextTime([url], by: owner) }
    guard let next, !isStopped else { return }
    let seconds = next <= now ? 1 : min(next - now, Self.longestNap)
    timers[url] = Task { [clocks, wake] in
      do { try await clocks.sleep(Double(seconds)) } catch { return }
      wake()
    }
  }

  /// 128 random bits. Not from the clocks: names must differ even where a test fixes all chance.
  private static func randomText() -> String {
    (0..<2).map { _ in String(UInt64.random(in: 1...UInt64.max), radix: 36) }.joined()
  }
}
