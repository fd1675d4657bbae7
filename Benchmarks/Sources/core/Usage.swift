import Foundation

/// What this process uses.
enum Usage {
  static var cpuSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// How many bytes of resident memory `work` adds at its peak; 0 if the system does not tell.
  static func peakBytes<Value>(of work: () throws -> Value) rethrows -> Int {
    // Forgets the peak so far.
    try? Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
    let before = bytes("VmRSS:")
    let value = try work()
    let peak = bytes("VmHWM:")
    return withExtendedLifetime(value) { max(0, peak - before) }
  }

  private static func bytes(_ field: String) -> Int {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix(field) }),
      let kilobytes = line.split(whereSeparator: \.isWhitespace).compactMap({ Int($0) }).first
    else { return 0 }
    return kilobytes * 1024
  }
}
