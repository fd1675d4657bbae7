import SslPinningPlatform
import SslPinningRules

/// Reports failed pins to the app's collectors, in the background.
///
/// - `report(_:port:pattern:chain:)` only notes the failure in memory; no request ever waits for a
///   disk or a collector.
/// - What was noted is on the disk a moment later, whatever a collector does, and before it is sent. What
///   could not be sent goes out after the next start. Several reporters may share a directory, also of
///   several processes and for other collectors.
/// - How reports are merged, bounded and repeated is said at `ReportQueue`.
/// - Collectors are reached outside of all pinned sessions: their own pins stop nothing, and nothing
///   about them is ever reported.
package final class FailureReporter: Sendable {
  private let includesReportOnly: Bool
  private let inbox: Locked<ReportInbox>
  private let uploader: ReportUploader
  private let clocks: Clocks
  private let wakeUps: AsyncStream<Void>.Continuation
  private let worker: Task<Void, Never>
  /// The times that the dates of a collector's chain are held to; `nil` means the system's clock.
  private let time: Locked<@Sendable () -> TrustTime?>

  /// Begins to send what an earlier reporter left in `directory`.
  ///
  /// - Parameters:
  ///   - directory: the app's own; made where there is none. `nil` if the system names no home for this process: reports
  ///     are kept in memory then, which is told.
  ///   - events: is told of trouble, on any thread.
  /// - Throws: ``ReportingError``.
  package init(
    config: ReportingConfig, directory: String?, poster: ReportPoster, clocks: Clocks = .system,
    rules: ReportRules = ReportRules(),
    events: @escaping @Sendable (ReportingEvent) -> Void = { _ in }
  ) throws(ReportingError) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let inbox = Locked(ReportInbox())
    let time = Locked<@Sendable () -> TrustTime?>({ nil })
    let uploader = ReportUploader(
      config: config, collectors: try config.collectors(), inbox: inbox,
      file: directory.map { AtomicFile(path: $0 + "/failure-reports.json", isOfItsPlace: true) },
      rules: rules,
      poster: poster,
      clocks: clocks,
      time: {
        let latest = time.withLock { $0 }
        return latest()
      }, events: events, wake: { continuation.yield() })
    includesReportOnly = config.includesReportOnly
    self.inbox = inbox
    self.time = time
    self.uploader = uploader
    self.clocks = clocks
    wakeUps = continuation
    worker = Task(priority: .utility) {
      for await _ in stream { await uploader.begin() }
      await uploader.stop()
    }
    continuation.yield()
  }

  deinit {
    wakeUps.finish()
    worker.cancel()
  }

  /// Holds the dates of collectors' chains to the times that a judge knows: by the clock alone, a device whose clock is behind
  /// would never deliver a report. What is posted is not signed, so a chain that holds at neither is not taken, as a registry's is
  /// (``RegistryDates``).
  func follow(_ judge: some PinEvaluating) {
    time.withLock {
      $0 = { [weak judge] in
        judge?.time.map {
          TrustTime(
            clock: $0.clock, floor: $0.floor, isFloorInForce: $0.isFloorInForce,
            believesStatement: false)
        }
      }
    }
  }

  /// Notes a verdict, if it is one to be reported; returns at once.
  ///
  /// - Parameters:
  ///   - port: the server's, where known.
  ///   - pattern: of the entry that listed the host, where known.
  ///   - chain: the certificates that the server sent, in DER, leaf first, those of a validated path before others; where
  ///     known. Asked for only if the verdict is to be reported.
  package func report(
    _ evaluation: PinEvaluation, port: Int? = nil, pattern: HostPattern? = nil,
    chain: @autoclosure () -> [[UInt8]] = []
  ) {
    guard
      let report = FailureReport(
        evaluation, port: port, pattern: pattern, chain: chain(),
        includesForgiven: includesReportOnly)
    else { return }
    let now = clocks.wall()
    inbox.withLock { $0.add(report, at: now) }
    wakeUps.yield()
  }

  /// Notes a verdict on a connection.
  func report(_ evaluation: PinEvaluation, of connection: ConnectionFacts) {
    report(
      evaluation, port: connection.port, pattern: evaluation.pattern,
      chain: connection.pathFirst)
  }

  /// Saves what was noted and sends what is due, then returns: for the time that an app has left in
  /// the background. What a collector has put off stays put off. Once cancelled, it returns when all is
  /// saved, and waits for no collector.
  package func flush() async { await uploader.pass() }
}

extension FailureReporter {
  /// The reporter that an app asked for; `nil` where it asked for none.
  ///
  /// - Throws: ``ReportingError``. An anchor that cannot be read is told by whoever needs it first,
  ///   and leaves reports to the system's anchors.
  static func make(
    _ config: ReportingConfig?, trust: TrustMode, anchors: ChainValidator? = nil,
    storage: RegistryStorage, clocks: Clocks,
    events: @escaping @Sendable (ReportingEvent) -> Void
  ) throws(ReportingError) -> FailureReporter? {
    guard let config else { return nil }
    // A missing home is not the app's choice, and no reason not to start.
    let directory = storage.reportsPath
    if directory == nil, storage != .standard { throw .noStorage }
    guard
      let anchors = anchors ?? (try? ChainValidator(anchorsOf: trust))
        ?? (try? ChainValidator(trust: .system))
    else { return nil }
    return try FailureReporter(
      config: config, directory: directory, poster: ReportPoster(validator: anchors),
      clocks: clocks, events: events)
  }
}
