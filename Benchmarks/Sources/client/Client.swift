import Foundation
import SslPinning
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Measures pinned requests against a server at hand; prints one line.
@main
struct Client {
  static func main() async {
    do {
      let arguments = try Arguments(Array(CommandLine.arguments.dropFirst()))
      let trust: TrustMode = arguments.anchor.map { .anchors([$0]) } ?? .system
      let client = try FixedPinsClient(
        pins: FixedPins(
          [arguments.url.host ?? "": HostPins(leaf: [arguments.pin])], trust: trust))
      try await measure(arguments, client)
    } catch let fault as Arguments.Fault {
      print("\(fault.text)\n\(Arguments.usage)")
      exit(2)
    } catch {
      print("\(error)")
      exit(1)
    }
  }

  private static func measure(_ arguments: Arguments, _ client: FixedPinsClient) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = arguments.concurrency
    // A pinned session has none. On Linux a plain one asks its own for each answer, which is not what is compared.
    configuration.urlCache = nil
    let session: URLSession? =
      switch arguments.road {
      case .data: nil
      case .session: client.createPinnedSession(configuration: configuration)
      case .plain: URLSession(configuration: configuration)
      }
    // First handshakes are not what is measured, nor what a process does once.
    _ = try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<arguments.concurrency {
        group.addTask { _ = try await requests(to: arguments.url, until: 0, client, session) }
      }
      try await group.waitForAll()
    }
    let start = DispatchTime.now().uptimeNanoseconds
    let end = start + UInt64(arguments.seconds * 1e9)
    let cpu = Usage.cpuSeconds
    let latencies = try await withThrowingTaskGroup(of: [Double].self) { group in
      for _ in 0..<arguments.concurrency {
        group.addTask {
          try await requests(to: arguments.url, until: end, client, session)
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }.sorted()
    }
    let elapsed = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
    let count = Double(latencies.count)
    print(
      """
      requests_per_s=\(Int(count / elapsed)) \
      p50_us=\(Int(latencies[latencies.count / 2])) \
      p99_us=\(Int(latencies[latencies.count * 99 / 100])) \
      cpu_ms_per_1000=\(String(format: "%.1f", (Usage.cpuSeconds - cpu) / count * 1e6)) \
      peak_rss_mb=\(Usage.peakMegabytes)
      """)
  }

  /// One requester: the next request as soon as the last is answered.
  private static func requests(
    to url: URL, until end: UInt64, _ client: FixedPinsClient, _ session: URLSession?
  ) async throws -> [Double] {
    var latencies: [Double] = []
    var before = DispatchTime.now().uptimeNanoseconds
    repeat {
      let request = URLRequest(url: url)
      let (body, response) =
        if let session {
          try await session.data(for: request)
        } else {
          try await client.data(for: request)
        }
      guard (response as? HTTPURLResponse)?.statusCode == 200, !body.isEmpty else {
        throw URLError(.badServerResponse)
      }
      let now = DispatchTime.now().uptimeNanoseconds
      latencies.append(Double(now - before) / 1000)
      before = now
    } while before < end
    return latencies
  }
}
