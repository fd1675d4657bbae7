import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer
@testable import RegistryStores

@Suite("How often reports are taken") struct ReportLimitTests {
  private let metrics = ServerMetrics(version: "1", started: 0)

  private func site() -> ReportRoutes {
    ReportRoutes(
      ReportCollector(
        store: MemoryStore(), listed: { ListedHosts([]) }, writer: "one", clock: TestClock(),
        log: LogCollector().log),
      metrics: metrics)
  }

  /// How many of so many reports at once are heard.
  private func heard(_ site: ReportRoutes, _ count: Int, from peer: String, isShared: Bool) -> Int {
    (0..<count).reduce(0) { heard, _ in
      let request = HTTPRequest(
        method: "POST", path: ReportRoutes.path, peer: peer, isShared: isShared)
      guard case .later = site.answer(request) else { return heard }
      return heard + 1
    }
  }

  @Test("an address has 60 at once; the others are refused and counted")
  func address() throws {
    let site = site()
    #expect((60...62).contains(heard(site, 200, from: "192.0.2.1", isShared: false)))
    #expect(heard(site, 10, from: "192.0.2.2", isShared: false) == 10)
    let page = try PrometheusPage(metrics.exposition(at: 0))
    let limited = page.samples["ssl_pinning_reports_total{outcome=\"limited\"}"] ?? 0
    #expect((138...140).contains(limited))
  }

  @Test("a whole /64 is one address")
  func network() {
    let site = site()
    let heard = (0..<100).reduce(0) {
      $0 + self.heard(site, 1, from: "2001:db8::\(String($1, radix: 16))", isShared: false)
    }
    #expect((60...62).contains(heard))
  }

  @Test("an address that a fleet may share has a fleet's limit")
  func fleet() {
    #expect(heard(site(), 5000, from: "127.0.0.1", isShared: true) == 5000)
  }

  @Test("however many come at once, one is read at a time: the other threads are for probes")
  func together() async throws {
    let counts = Locked((inside: 0, most: 0))
    let block = [UInt8](repeating: 0, count: 1 << 20)
    let collector = ReportCollector(
      store: MemoryStore(), listed: { ListedHosts([]) }, writer: "one", clock: TestClock(),
      log: LogCollector().log,
      judge: ReportedChainJudge(
        validated: { _, _ in
          counts.withLock {
            $0.inside += 1
            $0.most = max($0.most, $0.inside)
          }
          // As long as others need to begin.
          for _ in 0..<8 { _ = Digest.sha256(block) }
          counts.withLock { $0.inside -= 1 }
          return nil
        }, knowledge: { KeyKnowledge() }))
    let body = try Vectors.bytes("reports/accepted/trustkit-ios.json")
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<32 { group.addTask { #expect(await collector.take(body) == .accepted) } }
    }
    #expect(counts.withLock(\.most) == 1)
  }
}
