import Foundation
import RegistryCore
import RegistryServer
import SslPinningRules

/// One round of probes over many endpoints on one server, as the registry server makes it: its
/// schedule, its observer. Prints one line. `scan.py` starts the server and runs a peer in turn.
///
///     scan PORT COUNT DOMAIN CA.pem [LIMIT]
///
/// The endpoints are h0.DOMAIN, h1.DOMAIN, … on a port of 127.0.0.1.
@main
enum Scan {
  static func main() async {
    ServerProcess.prepare()
    do {
      let arguments = CommandLine.arguments.dropFirst()
      guard (4...5).contains(arguments.count), let port = UInt16(CommandLine.arguments[1]),
        let count = Int(CommandLine.arguments[2]), count > 0
      else { throw Usage() }
      let limit = arguments.count == 5 ? Int(CommandLine.arguments[5]) : nil
      try await run(
        port: port, count: count, domain: CommandLine.arguments[3],
        anchors: CommandLine.arguments[4], limit: limit)
    } catch {
      FileHandle.standardError.write(Data("scan: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func run(
    port: UInt16, count: Int, domain: String, anchors: String, limit: Int?
  ) async throws {
    let observer = try TLSEndpointProber(TLSConfiguration(timeout: 30_000, anchors: anchors))
    let round = Round(count: count)
    let loopback = IPAddress(bytes: [127, 0, 0, 1])
    let targets = try (0..<count).map { index in
      let name = try HostName("h\(index).\(domain)")
      return Monitor.Target(
        id: "h\(index)",
        endpoint: WatchedEndpoint(fqdn: name, port: port, address: loopback, patterns: []),
        pause: 3_600_000, decision: round)
    }
    var settings = ProbeSchedule.Settings()
    if let limit { settings.limit = limit }
    let monitor = Monitor(observer: observer, clock: SystemClock(), settings: settings)
    let start = DispatchTime.now().uptimeNanoseconds
    monitor.update(endpoints: targets)
    let watching = Task { await monitor.run() }
    let accepted = await round.end()
    let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
    let cpu = cpuSeconds()
    watching.cancel()
    print(
      "scan ok=\(accepted)/\(count) handshakes_per_s=\(Int(Double(accepted) / seconds))"
        + " cpu_s_per_1000=\(String(format: "%.3f", cpu / Double(max(1, accepted)) * 1000))"
        + " peak_rss_mb=\(String(format: "%.1f", peakMegabytes()))")
  }

  private static func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// The most resident memory that this program ever had; 0 if the system does not tell. Not `ru_maxrss`: that
  /// begins with what the process had that started it.
  private static func peakMegabytes() -> Double {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
      let kilobytes = line.split(whereSeparator: \.isWhitespace).compactMap({ Double($0) }).first
    else { return 0 }
    return kilobytes / 1024
  }

  private struct Usage: Error, CustomStringConvertible {
    let description = "usage: scan PORT COUNT DOMAIN CA.pem [LIMIT]"
  }
}
