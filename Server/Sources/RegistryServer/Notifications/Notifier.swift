import Foundation
import RegistryCore
import SslPinningPlatform

/// Tells receivers what begins and what is over: looks once a second, and delivers what changed.
///
/// - A receiver that hangs or refuses delays no other one, and nothing else of the server.
/// - When this server ceases to lead, it forgets what it told of the documents; the other one tells what
///   stands, under the same ids.
actor Notifier {
  private struct Line {
    let receiver: any NotificationReceiver
    var queue = NotificationQueue()
    /// How many were lost when that was counted last.
    var lost = 0
    var isFailing = false
  }

  private var lines: [Line]
  private let survey: @Sendable () async -> FoundConditions
  private let clock: any ServerClock
  private let ticks: @Sendable () -> Int64
  private let server: String
  private let log: ServerLog
  private let metrics: ServerMetrics
  /// Whether this server led when it looked last.
  private var hasLed = false
  /// When it had looked last, until when it delivers nothing, both by the clock of ticks, and how many looks in a row came late.
  private var (looked, quietEnds, late): (Int64?, Int64, Int) = (nil, 0, 0)
  /// Since when it has delivered nothing because of that.
  private var quietSince: Int64?

  /// A process that stood still for longer may lead no more without knowing: for so long it tells nothing, in milliseconds. One
  /// that is merely slow, at every look, tells all the same, as does one that stands still again and again.
  private static let (stillness, quiet, mostLate): (Int64, Int64, Int) = (5000, 5000, 3)
  private static let longestQuiet: Int64 = 30_000

  /// - Parameters:
  ///   - survey: what holds now.
  ///   - ticks: milliseconds of a clock that is never set.
  ///   - server: the name of this machine.
  init(
    _ receivers: [any NotificationReceiver], clock: any ServerClock, log: ServerLog,
    metrics: ServerMetrics, server: String = ProcessInfo.processInfo.hostName,
    ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds,
    survey: @escaping @Sendable () async -> FoundConditions
  ) {
    lines = receivers.map { Line(receiver: $0) }
    for receiver in receivers { metrics.service.notifies(receiver.name, waiting: 0) }
    (self.clock, self.log, self.metrics) = (clock, log, metrics)
    (self.server, self.ticks, self.survey) = (server, ticks, survey)
  }

  /// Goes on until the task is cancelled.
  func run() async {
    while !Task.isCancelled {
      await look()
      // Not by the clock: nothing is decided by it, and a clock that is set changes nothing.
      do { try await Task.sleep(for: .seconds(1)) } catch { return }
    }
  }

  /// Takes down what holds, and begins what deliveries are due.
  func look() async {
    let now = ticks()
    late = looked.map { now - $0 > Self.stillness } ?? false ? late + 1 : 0
    if late > 0 {
      quietSince = quietSince ?? now
      let isLong = now - (quietSince ?? now) > Self.longestQuiet
      quietEnds = late > Self.mostLate || isLong ? 0 : now + Self.quiet
    }
    if now >= quietEnds { quietSince = nil }
    defer { looked = ticks() }
    let found = await survey()
    let isLeading = found.ofLeader != nil
    for index in lines.indices {
      if hasLed, !isLeading { lines[index].queue.forget { $0.isOfLeader } }
      lines[index].queue.observe((found.ofLeader ?? []) + found.ofServer, at: found.at)
      if now >= quietEnds { deliver(index, at: found.at) }
      tellWaiting(index)
    }
    hasLed = isLeading
  }

  private func deliver(_ index: Int, at now: Int64) {
    let changes = lines[index].queue.take(ticks: ticks())
    tellLost(index)
    guard !changes.isEmpty else { return }
    let (receiver, server) = (lines[index].receiver, server)
    Task { [clock] in
      let message = NotificationMessage(changes, from: server, at: now)
      let outcome = await receiver.deliver(message, at: clock.now())
      self.finished(index, outcome)
    }
  }

  private func finished(_ index: Int, _ outcome: DeliveryOutcome) {
    let name = lines[index].receiver.name
    switch outcome {
    case .delivered:
      lines[index].queue.finished(isDelivered: true, ticks: ticks())
      metrics.service.notified(name, .delivered)
      if lines[index].isFailing { log.event(.info, "notifications_delivered", ["receiver": name]) }
      lines[index].isFailing = false
    case .failed(let reason, let retryAfter, let refusal):
      lines[index].queue.finished(
        isDelivered: false, refusal: refusal, retryAfter: retryAfter, ticks: ticks())
      metrics.service.notified(name, .failed)
      if !lines[index].isFailing {
        log.event(
          .warn, "notifications_not_delivered",
          [
            "receiver": name, "reason": reason, "waiting": "\(lines[index].queue.count)",
            "message": "it is tried again",
          ])
      }
      lines[index].isFailing = true
    }
    tellLost(index)
    tellWaiting(index)
  }

  private func tellWaiting(_ index: Int) {
    let line = lines[index]
    metrics.service.notifies(line.receiver.name, waiting: line.queue.count)
  }

  private func tellLost(_ index: Int) {
    let (name, queue) = (lines[index].receiver.name, lines[index].queue)
    let new = queue.lost - lines[index].lost
    guard new > 0 else { return }
    lines[index].lost = queue.lost
    metrics.service.notified(name, .lost, count: new)
    log.event(
      .error, "notifications_lost",
      [
        "receiver": name, "count": "\(new)",
        "message": "the receiver did not take them in time; the console has what stands",
      ])
  }
}

/// What holds at one moment, in Unix seconds.
struct FoundConditions: Sendable {
  /// What the server that leads tells; `nil` while another one does.
  var ofLeader: [Condition]?
  /// What each server tells.
  var ofServer: [Condition]
  var at: Int64
}
