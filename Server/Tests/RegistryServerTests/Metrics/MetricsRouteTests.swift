import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("The page of metrics") struct MetricsRouteTests {
  private let metrics = ServerMetrics(version: "1", started: 0)
  private let ticks = Locked<Int64>(0)

  private var page: MetricsRoute {
    MetricsRoute(
      metrics: metrics, coordinators: { [] }, clock: SteadyClock(TestClock()),
      health: ServiceHealth(),
      ticks: { [ticks] in ticks.withLock { $0 } })
  }

  private func response(_ page: MetricsRoute) async throws -> HTTPResponse {
    guard case .later(_, let work) = page.answer() else { throw Unexpected() }
    return await work()
  }

  private struct Unexpected: Error {}

  private func text(_ page: MetricsRoute) async throws -> String {
    String(decoding: try await response(page).body, as: UTF8.self)
  }

  @Test("is made at most once a second, whoever asks")
  func onceASecond() async throws {
    let page = page
    let first = try await text(page)
    metrics.leads(true)
    ticks.withLock { $0 = 999 }
    #expect(try await text(page) == first)
    ticks.withLock { $0 = 1000 }
    let second = try await text(page)
    #expect(first.contains("ssl_pinning_leader 0") && second.contains("ssl_pinning_leader 1"))
  }

  @Test("tells the longest time between probes, as it is changed, and none while nothing is probed")
  func interval() async throws {
    let server = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com}, {fqdn: api.example.com, interval: 1m}]")
    let metrics = server.scripted.service.metrics
    @Sendable func isTold(_ seconds: ClosedRange<Double>) async -> Bool {
      await eventually {
        let page = try? PrometheusPage(metrics.exposition(at: 0))
        return page?.samples["ssl_pinning_probe_interval_seconds"].map(seconds.contains) ?? false
      }
    }
    #expect(await isTold(3500...3600))
    try await server.call("PATCH", AdministeredService.endpoint, #"{"interval":"2h"}"#)
    #expect(await isTold(7100...7200))
    try await server.call("PATCH", AdministeredService.endpoint, #"{"paused":true}"#)
    #expect(await isTold(30...60))
    await server.stop()
  }

  @Test("is one piece of memory for all who read it, and there are eight of them at most")
  func bounded() async throws {
    let page = page
    var read: [HTTPResponse] = []
    for second in 0..<20 {
      ticks.withLock { $0 = Int64(second) * 1000 }
      read.append(try await response(page))
      #expect(try await response(page) === read.last)
    }
    #expect(Set(read.map { ObjectIdentifier($0.bytes) }).count == MetricsRoute.mostPages)
    let newest = try #require(read.last)
    read = []
    ticks.withLock { $0 = 60_000 }
    #expect(try await response(page) !== newest)
  }
}
