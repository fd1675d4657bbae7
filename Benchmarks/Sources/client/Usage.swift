import Foundation

/// What this process has used so far.
enum Usage {
  static var cpuSeconds: Double {
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  /// The most resident memory that this process ever had.
  static var peakMegabytes: Double { Double(usage.ru_maxrss) / 1024 }

  private static var usage: rusage {
    var usage = rusage()
    getrusage(0, &usage)
    return usage
  }

  private static func seconds(_ time: timeval) -> Double {
    Double(time.tv_sec) + Double(time.tv_usec) / 1e6
  }
}
