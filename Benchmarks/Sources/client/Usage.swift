import Foundation

/// What this process has used so far.
enum Usage {
  static var cpuSeconds: Double {
    var usage = rusage()
    getrusage(0, &usage)
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  /// Resident memory at this moment, in bytes; 0 where the system has no `/proc`.
  static var residentBytes: Int {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
      let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { return 0 }
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  private static func seconds(_ time: timeval) -> Double {
    Double(time.tv_sec) + Double(time.tv_usec) / 1e6
  }
}
