/// How far a running monitor is, and whether it is stuck: then the service manager gets no sign of life, and starts
/// the server anew.
///
/// - Stuck is a monitor that begins no probe although one is due and there is room, or a probe that does not come back.
///   Each probe has a deadline, so a network that is slow or silent ends probes late, and never not at all.
/// - Waiting for the store is nothing to be stuck in: a restart brings no database back, and would end the serving of
///   the documents that are published already.
/// - A network that takes all places of a round for long delays the next one, and nothing is stuck by that: what waits
///   for a place is not due.
///
/// Pure: times are milliseconds of a clock that never jumps.
package struct MonitorProgress: Sendable, Hashable {
  /// What a monitor is stuck in.
  package enum Fault: Sendable, Hashable {
    /// Nothing was begun for so long, although a probe was due.
    case idle(milliseconds: Int64)
    /// A probe has been under way for so long.
    case endless(milliseconds: Int64)
  }

  /// When the monitor began to run.
  package var running: Int64
  /// When it last began a probe; `nil` if it has begun none.
  package var began: Int64?
  /// When it may begin the next one; `nil` if none is planned, or all places are taken.
  package var due: Int64?
  /// When the oldest of the probes began that have not come back.
  package var oldest: Int64?

  package init(running: Int64, began: Int64? = nil, due: Int64? = nil, oldest: Int64? = nil) {
    self.running = running
    self.began = began
    self.due = due
    self.oldest = oldest
  }

  /// For how long nothing may go on: far longer than a probe takes on a machine that is busy, and three minutes at
  /// least.
  ///
  /// - Parameter timeout: the deadline of one probe.
  package static func patience(timeout: Int64) -> Int64 { max(180_000, 20 * timeout) }

  /// What it is stuck in; `nil` while it is not.
  package func fault(at now: Int64, patience: Int64) -> Fault? {
    if let oldest, now - oldest > patience { return .endless(milliseconds: now - oldest) }
    guard let due else { return nil }
    let since = max(due, began ?? running)
    return now - since > patience ? .idle(milliseconds: now - since) : nil
  }
}

extension MonitorProgress.Fault: CustomStringConvertible {
  package var description: String {
    switch self {
    case .idle(let time): "no probe was begun for \(time / 1000) s, although one is due"
    case .endless(let time): "a probe has been under way for \(time / 1000) s"
    }
  }
}
