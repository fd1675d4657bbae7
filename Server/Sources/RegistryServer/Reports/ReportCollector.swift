import CanonicalJSON
import Foundation
import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// Takes failure reports of apps in, and keeps what they come to in the store.
///
/// - An answer does not wait for the store. What is counted is written within ``pauseSeconds`` or, where
///   the record is large, as often as writing stays cheap; a server that is killed loses what it counted
///   since. Documents are held to more; reports are counts.
/// - Servers on one store add up; see ``ReportLedger``.
/// - A record that nothing can read is set aside under ``asideName``, which the log and a metric tell, and a
///   new one is begun. One of a newer program is left as it is: then reports are counted in memory only.
///   A failing store is tried again with the next write. Neither keeps the server from its work.
actor ReportCollector {
  /// The record's name in the store.
  static let recordName = ".reports"
  /// Where a record goes that nothing can read; only the last such one is kept.
  static let asideName = ".reports-unreadable"
  /// Seconds from the first unwritten report to the write.
  static let pauseSeconds: Int64 = 5
  /// For each so many bytes of the record a write waits one second more.
  static let bytesPerSecond = 256 * 1024
  /// Seconds to wait after a store failed.
  static let patienceSeconds: Int64 = 30
  /// Seconds for which a summary does without what other servers wrote meanwhile.
  static let freshness: Int64 = 10

  private struct Base {
    var version: Int64 = 0
    var endpointKeys: ReportLedger
    var bytes = 0
  }

  private let store: any RegistryStore
  private let limits: ReportLedger.Limits
  private let writer: String
  private let clock: any ServerClock
  private let log: ServerLog
  private let metrics: ServerMetrics?
  private let judge: ReportedChainJudge?
  /// Reads one report after the other, on a thread of its own. Anybody may send them, and a large one takes 10 ms:
  /// on the cooperative threads, hundreds at once would keep probes and administrators waiting.
  private let reading = DispatchQueue(label: "reports")

  private let listed: @Sendable () async -> ListedHosts
  private var memory = ReportMemory()
  /// What the store had when it was last read or written.
  private var base: Base
  /// Whether the store must be read before the next write.
  private var isStale = true
  private var lastRead: Int64?
  private var isReadable = true
  private var picture: ReportPicture?
  /// The store being read for the next picture.
  private var rereading: Task<Void, Never>?
  /// Counted since the last write.
  private var pending: ReportLedger
  /// On its way to the store, under a number.
  private var sending: (serial: Int64, endpointKeys: ReportLedger)?
  private var serial: Int64 = 0
  private var lastWrite: Task<Void, Never>?
  private let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

  /// A collector.
  ///
  /// - Parameters:
  ///   - listed: the hosts that documents speak of now.
  ///   - judge: finds out what reported chains are worth; without one they are all unverified.
  ///   - writer: tells this process from every other, and from its own past: random.
  init(
    store: any RegistryStore, listed: @escaping @Sendable () async -> ListedHosts, writer: String,
    clock: any ServerClock, log: ServerLog, metrics: ServerMetrics? = nil,
    judge: ReportedChainJudge? = nil,
    limits: ReportLedger.Limits = ReportLedger.Limits()
  ) {
    self.judge = judge
    self.store = store
    self.listed = listed
    self.writer = writer
    self.clock = clock
    self.log = log
    self.metrics = metrics
    self.limits = limits
    base = Base(endpointKeys: ReportLedger(limits: limits))
    pending = ReportLedger(limits: limits)
  }

  /// Reads what was counted before.
  func open() async { await reload() }

  /// Takes the body of a POST in.
  nonisolated func take(_ body: [UInt8]) async -> ReportAnswer {
    do throws(ReportRefusal) {
      var report = try await read(body)
      let place = await judge?.place(of: report) ?? .nowhere
      if case .listed = place { report.wasListed = true }
      if report.standing != .verified, report.wasListed || place == .waiting {
        report.standing = .seen
      }
      report.chain.certificates = []
      let outcome = await count(report, isListed: listed().contains(report.host))
      metrics?.reported(outcome)
      if outcome == .accepted { metrics?.reported(chain: report.standing) }
      return .accepted
    } catch {
      metrics?.reported(.refused)
      return .refused(error)
    }
  }

  private nonisolated func read(_ body: [UInt8]) async throws(ReportRefusal) -> CollectedReport {
    let result: Result<CollectedReport, ReportRefusal> = await withCheckedContinuation { waiting in
      reading.async { [judge] in
        waiting.resume(
          returning: Result { () throws(ReportRefusal) in
            var report = try CollectedReport(parsing: body)
            judge?.verify(&report)
            return report
          })
      }
    }
    return try result.get()
  }

  /// What was counted by all servers on the store, as far as it is known here.
  func summary() async -> ReportSummary {
    let now = clock.now()
    if !isFresh(at: now), sending == nil { await reload() }
    return await known(at: now)
  }

  /// The last day's reports told apart: made anew if the last one is older than ``freshness``, of what is known here.
  /// Never waits for the store: metrics are asked for while it is away.
  func picture() async -> ReportPicture {
    let now = clock.now()
    if let picture, (0..<Self.freshness).contains(now - picture.time) { return picture }
    if !isFresh(at: now), sending == nil, rereading == nil {
      rereading = Task {
        await reload()
        rereading = nil
      }
    }
    let made = await known(at: now).picture
    picture = made
    return made
  }

  private func isFresh(at now: Int64) -> Bool {
    lastRead.map { (0..<Self.freshness).contains(now - $0) } ?? false
  }

  private func known(at now: Int64) async -> ReportSummary {
    var endpointKeys = base.endpointKeys
    if let sending { endpointKeys.merge(sending.endpointKeys) }
    endpointKeys.merge(pending)
    endpointKeys.tidy(at: now)
    let listed = await listed()
    endpointKeys.list { listed.contains($0) }
    return ReportSummary(
      of: endpointKeys, at: now, known: await judge?.knowledge() ?? KeyKnowledge())
  }

  /// Writes whenever there is something to write, until the task is cancelled. What is unwritten then is
  /// left to ``flush()``.
  func run() async {
    for await _ in wakes {
      let pause = Self.pauseSeconds + Int64(base.bytes / Self.bytesPerSecond)
      do { try await clock.sleep(milliseconds: pause * 1000) } catch { return }
      await flush()
      // What came meanwhile has woken it already.
      guard isReadable, sending != nil || isStale else { continue }
      do { try await clock.sleep(milliseconds: Self.patienceSeconds * 1000) } catch { return }
      wake.yield()
    }
  }

  /// Writes what is counted and not yet written, now.
  func flush() async {
    let previous = lastWrite
    let task = Task {
      await previous?.value
      await self.write()
    }
    lastWrite = task
    await task.value
  }

  private func count(_ report: CollectedReport, isListed: Bool) -> ReportOutcome {
    guard let news = memory.news(of: report) else { return .repeated }
    pending.add(report, as: news, isListed: isListed, at: clock.now())
    wake.yield()
    if news.reports == 0 { return .repeated }
    return isListed ? .accepted : .unlisted
  }

  private func write() async {
    let listed = await listed()
    for _ in 0..<8 {
      if isStale { await reload() }
      guard isReadable, !isStale else {
        pending.tidy(at: clock.now())
        return
      }
      if let sent = sending, base.endpointKeys.has(writer, sent.serial) { sending = nil }
      if sending == nil {
        guard !pending.isEmpty else { return }
        serial += 1
        sending = (serial, pending)
        pending = ReportLedger(limits: limits)
      }
      guard let sent = sending else { return }
      var next = base.endpointKeys
      next.merge(sent.endpointKeys, of: writer, serial: sent.serial, at: clock.now())
      next.list { listed.contains($0) }
      next.tidy(at: clock.now())
      let bytes = next.encoded
      do throws(StoreError) {
        switch try await store.replace(Self.recordName, version: base.version, with: bytes) {
        case .replaced(let version):
          become(Base(version: version, endpointKeys: next, bytes: bytes.count))
          sending = nil
          // What a write that failed left behind may not have been all.
          guard !pending.isEmpty else { return }
        case .conflict: isStale = true
        }
      } catch {
        // It may have been replaced all the same: the next write reads first.
        isStale = true
        log.event(.warn, "reports_not_stored", ["reason": "\(error)"])
        return
      }
    }
    log.event(.warn, "store_contended", ["file": Self.recordName])
  }

  /// Reads what the store has. A reading that a write has overtaken meanwhile changes nothing.
  private func reload() async {
    guard isReadable else { return }
    let record: StoredRecord?
    do throws(StoreError) { record = try await store.record(named: Self.recordName) } catch {
      log.event(.warn, "reports_not_read", ["reason": "\(error)"])
      return
    }
    lastRead = clock.now()
    guard isStale || record?.version ?? 0 > base.version else { return }
    guard let record else {
      become(Base(endpointKeys: ReportLedger(limits: limits)))
      isStale = false
      return
    }
    do throws(ReportRecordFault) {
      let endpointKeys = try ReportLedger(decoding: record.bytes, limits: limits)
      become(Base(version: record.version, endpointKeys: endpointKeys, bytes: record.bytes.count))
      isStale = false
    } catch {
      switch error {
      case .newer:
        isReadable = false
        metrics?.reportsReadable(false)
        log.event(.error, "reports_not_read", ["reason": "\(error)"])
      case .broken: await setAside(record, because: "\(error)")
      }
    }
  }

  /// Keeps a record that nothing can read under another name, and goes on without.
  private func setAside(_ record: StoredRecord, because reason: String) async {
    do throws(StoreError) {
      let last = try await store.record(named: Self.asideName)
      // Another server on the store that was faster has set the same aside.
      _ = try await store.replace(
        Self.asideName, version: last?.version ?? 0, with: record.bytes)
    } catch {
      log.event(
        .error, "reports_not_read", ["reason": "\(reason); and it cannot be set aside: \(error)"])
      return
    }
    become(Base(version: record.version, endpointKeys: ReportLedger(limits: limits)))
    isStale = false
    metrics?.reportsSetAside()
    log.event(
      .error, "reports_set_aside",
      ["reason": reason, "record": Self.asideName, "message": "reports are counted anew"])
  }

  private func become(_ base: Base) {
    self.base = base
    let dropped = ReportCount.sum(
      base.endpointKeys.listed.droppedGroups, base.endpointKeys.unlisted.droppedGroups)
    metrics?.reportsKept(bytes: base.bytes, droppedGroups: dropped)
  }
}

/// What a report adds to what is counted.
struct ReportNews: Sendable, Equatable {
  /// 1, or 0 where it came before.
  var reports: Int64
  /// The failures that were not counted with it before.
  var failures: Int64
}

/// Remembers the newest reports by their `report-id`: a sender that did not get our answer sends the same
/// again, with the same count or a larger one.
///
/// Bounded, and only of this process: a repeat that comes to another server, or after a restart, counts
/// twice. Counts tell an operator where apps fail, not how often to the last one.
struct ReportMemory: Sendable {
  private struct Name: Hashable {
    let host: HostName
    let id: String
  }

  let limit: Int
  private var counts: [Name: Int64] = [:]
  private var order: [Name] = []
  /// Where the oldest stands in `order`, which is used round.
  private var oldest = 0

  init(limit: Int = 20_000) { self.limit = limit }

  /// What a report adds; `nil` where it says nothing new.
  mutating func news(of report: CollectedReport) -> ReportNews? {
    guard let id = report.id, !id.isEmpty else {
      return ReportNews(reports: 1, failures: report.count)
    }
    let name = Name(host: report.host, id: id)
    if let known = counts[name] {
      guard report.count > known else { return nil }
      counts[name] = report.count
      return ReportNews(reports: 0, failures: report.count - known)
    }
    if order.count < limit {
      order.append(name)
    } else if limit > 0 {
      counts[order[oldest]] = nil
      order[oldest] = name
      oldest = (oldest + 1) % limit
    }
    if limit > 0 { counts[name] = report.count }
    return ReportNews(reports: 1, failures: report.count)
  }
}

/// What the sender of a report is answered.
struct ReportAnswer: Sendable, Equatable {
  /// 204 for a report that is counted, 400 or 413 for one that cannot be: our own clients, and TrustKit's,
  /// do not send such a one again.
  let code: UInt32
  /// JSON with the reason; empty where all is well.
  let body: [UInt8]

  /// Counted, or counted before. A host that no document lists is answered alike: whoever asks learns
  /// nothing of what is listed.
  static let accepted = ReportAnswer(code: 204, body: [])

  /// A refusal and its reason.
  static func refused(_ refusal: ReportRefusal) -> ReportAnswer {
    let object: JSONObject = ["error": .string(ReportText.cleaned("\(refusal)", limit: 1000))]
    return ReportAnswer(
      code: refusal.code, body: JSONValue.object(object).canonicalBytes + [0x0a])
  }
}
