import Foundation
import SslPinning

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What a request under way costs in memory: many at once, probed while they are.
enum InFlight {
  static func measure(_ arguments: Arguments, _ client: FixedPinsClient) async throws {
    // The libraries, the connection pool's first buffers: not the requests' own.
    _ = try await client.data(for: URLRequest(url: arguments.url))
    let before = Usage.residentBytes
    let url = arguments.url
    let (served, peak) = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<arguments.inFlight {
        group.addTask {
          let (_, response) = try await client.data(for: URLRequest(url: url))
          return (response as? HTTPURLResponse)?.statusCode == 200 ? 1 : 0
        }
      }
      var peak = Usage.residentBytes
      var served = 0
      for try await one in group {
        served += one
        if served % 100 == 0 { peak = max(peak, Usage.residentBytes) }
      }
      return (served, peak)
    }
    print(
      "client in_flight=\(arguments.inFlight) served=\(served) "
        + "kib_each=\(String(format: "%.1f", Double(peak - before) / 1024 / Double(arguments.inFlight)))"
    )
  }
}
