import Foundation

/// Notices replacements by probing the records' directories: a rename changes their time.
///
/// Times are as coarse as the kernel's ticks, so a directory that changed a moment before a probe may
/// change once more with the same time; it is told of again until its time is old enough.
struct RecordWatch {
  /// Nanoseconds after which a time is no longer given to a new change.
  private static let settled: Int64 = 100_000_000

  private let directory: String
  private var times: [String: Int64] = [:]

  /// Begins with the directories as they are.
  init(directory: String) {
    self.directory = directory
    _ = probe()
  }

  /// The names of records that may have been replaced since the probe before.
  mutating func probe() -> [String] {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    var changed: [String] = []
    for name in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [] {
      var status = stat()
      guard stat("\(directory)/\(name)", &status) == 0 else { continue }
      let time = Self.nanoseconds(status.st_mtim)
      if times[name] != time {
        changed.append(name)
        // Forgotten, so that the next probe tells of it again.
        let isSettled = abs(Self.nanoseconds(now) - time) > Self.settled
        times[name] = isSettled ? time : nil
      }
    }
    return changed
  }

  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
