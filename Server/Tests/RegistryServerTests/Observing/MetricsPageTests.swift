import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer

@Suite("The page of metrics") struct MetricsPageTests {
  private let metrics = ServerMetrics(version: "1", started: 0)
  private let ticks = Locked<Int64>(0)

  private func text(_ page: MetricsPage) async throws -> String {
    guard case .later(_, let work) = page.answer() else {
      Issue.record("an answer at once")
      return ""
    }
    return String(decoding: await work().body, as: UTF8.self)
  }

  @Test("is made at most once a second, whoever asks")
  func onceASecond() async throws {
    let page = MetricsPage(
      metrics: metrics, keepers: { [] }, clock: SteadyClock(TestClock()),
      ticks: { [ticks] in ticks.withLock { $0 } })
    let first = try await text(page)
    metrics.leads(true)
    ticks.withLock { $0 = 999 }
    #expect(try await text(page) == first)
    ticks.withLock { $0 = 1000 }
    let second = try await text(page)
    #expect(first.contains("ssl_pinning_leader 0") && second.contains("ssl_pinning_leader 1"))
  }
}
