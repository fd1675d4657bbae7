import Foundation

/// What this process has used so far.
enum Usage {
  static var cpuSeconds: Double {
    var usage = rusage()
    getrusage(0, &usage)
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  /// The most resident memory that this program ever had; 0 if the system does not tell. Not `ru_maxrss`: that
  /// begins with what the process had that started it.
  static var peakMegabytes: Double {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
      let kilobytes = line.split(whereSeparator: \.isWhitespace).compactMap({ Double($0) }).first
    else { return 0 }
    return kilobytes / 1024
  }

  private static func seconds(_ time: timeval) -> Double {
    Double(time.tv_sec) + Double(time.tv_usec) / 1e6
  }
}
