import Foundation

/// What the process takes of its machine, by the names that Prometheus' own libraries have. Read at the
/// scrape; what a system does not tell is left out.
struct ProcessMetric: ExposedMetric {
  let name: String
  private let help: String
  private let type: MetricType
  private let read: @Sendable () -> Double?

  static let all: [ProcessMetric] = [
    ProcessMetric(
      name: "process_resident_memory_bytes", help: "Memory of the process that is in use",
      type: .gauge
    ) {
      words("/proc/self/statm").dropFirst().first.flatMap { Double($0) }
        .map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) }
    },
    ProcessMetric(
      name: "process_open_fds", help: "Open descriptors of the process", type: .gauge
    ) {
      // One of them is the directory's own while it is read.
      (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))
        .map { Double(max(0, $0.count - 1)) }
    },
    ProcessMetric(
      name: "process_max_fds", help: "The most descriptors that the process may open", type: .gauge
    ) {
      let line = text("/proc/self/limits")?.split(separator: "\n").first {
        $0.hasPrefix("Max open files")
      }
      return line?.split(separator: " ").dropFirst(3).first.flatMap { Double($0) }
    },
    ProcessMetric(
      name: "process_cpu_seconds_total", help: "Processor time of the process", type: .counter
    ) {
      // Fields 14 and 15 of proc(5); the name before them may contain anything.
      guard let fields = statFields, fields.count > 12, let user = Double(fields[11]),
        let system = Double(fields[12])
      else { return nil }
      return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    },
    ProcessMetric(name: "process_threads", help: "Threads of the process", type: .gauge) {
      statFields.flatMap { $0.count > 17 ? Double($0[17]) : nil }
    },
  ]

  func write(to writer: inout ExpositionWriter) {
    guard let value = read() else { return }
    let metric = Array(name.utf8)
    writer.begin(metric, help: help, type: type)
    writer.sample(SeriesName(metric: metric, labels: []), value)
  }

  /// The fields of `/proc/self/stat` from the third on.
  private static var statFields: [Substring]? {
    guard let stat = text("/proc/self/stat"), let end = stat.lastIndex(of: ")") else { return nil }
    return stat[stat.index(after: end)...].split(separator: " ")
  }

  private static func words(_ path: String) -> [Substring] {
    text(path)?.split(separator: " ") ?? []
  }

  private static func text(_ path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }
}
