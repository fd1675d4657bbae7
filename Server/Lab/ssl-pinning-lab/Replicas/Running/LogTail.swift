import CanonicalJSON
import Foundation
import SslPinningPlatform

/// Reads the logs of all replicas as they grow, and notes who leads. The moments are those of reading,
/// a few milliseconds late.
final class LogTail: Sendable {
  private struct Log {
    let replica: Int
    let path: String
    var offset: UInt64 = 0
  }

  private let timeline = Locked(LeaderTimeline())
  private let isOver = Locked(false)

  /// - Parameter paths: the logs, replica by replica.
  init(_ paths: [String]) {
    let logs = paths.enumerated().map { Log(replica: $0.offset, path: $0.element) }
    let thread = Thread { [self] in
      var logs = logs
      while !isOver.withLock({ $0 }) {
        read(&logs)
        usleep(3000)
      }
    }
    thread.name = "logs"
    thread.start()
  }

  var leaders: LeaderTimeline { timeline.withLock { $0 } }

  /// A process was killed, and says nothing of it.
  func killed(_ replica: Int) {
    timeline.withLock { $0.enter(.ended, of: replica, at: .now) }
  }

  func stop() { isOver.withLock { $0 = true } }

  private func read(_ logs: inout [Log]) {
    var events: [(LeaderTimeline.Event, Int)] = []
    for index in logs.indices {
      for line in Self.newLines(&logs[index]) {
        switch (try? JSONValue(parsing: line))?.objectValue?["event"]?.stringValue {
        case "leading": events.append((.began, logs[index].replica))
        case "not_leading": events.append((.ended, logs[index].replica))
        default: break
        }
      }
    }
    let time = ContinuousClock.now
    // Of what was said since the last reading the order between logs is not known.
    events.sort { $0.0 == .ended && $1.0 == .began }
    timeline.withLock { timeline in
      for (event, replica) in events { timeline.enter(event, of: replica, at: time) }
    }
  }

  private static func newLines(_ log: inout Log) -> [[UInt8]] {
    guard let file = try? FileHandle(forReadingFrom: URL(filePath: log.path)) else { return [] }
    defer { try? file.close() }
    guard (try? file.seek(toOffset: log.offset)) != nil, let data = try? file.readToEnd(),
      let end = data.lastIndex(of: 0x0a)
    else { return [] }
    let lines = data[...end]
    log.offset += UInt64(lines.count)
    return lines.split(separator: 0x0a).map { Array($0) }
  }
}
