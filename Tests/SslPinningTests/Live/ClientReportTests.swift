import CanonicalJSON
import FaultLab
import Foundation
import FoundationNetworking
import SslPinning
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TLSTools
import TestSupport
import Testing

@Suite("A client that reports failed pins")
struct ClientReportTests {
  private let site: LiveSite
  private let directory: TemporaryDirectory
  private let collector: LocalHTTPServer

  init() throws {
    site = try LiveSite()
    directory = try TemporaryDirectory()
    collector = try LocalHTTPServer { _ in HTTPResponse(status: 204) }
  }

  private var reporting: ReportingConfig {
    ReportingConfig(
      urls: ["http://127.0.0.1:\(collector.port)/reports"], appBundleId: "example.app",
      appVersion: "1.2")
  }

  private func report() async throws -> JSONObject {
    #expect(await eventually { collector.requests.count == 1 })
    let body = try #require(collector.requests.first?.body)
    return try #require(try JSONValue(parsing: body).objectValue)
  }

  @Test("tells host, port, pattern, the chain that was shown and the pins that were expected")
  func refused() async throws {
    let registry = try ScriptedRegistry(["*.localhost": [LiveSite.otherPin]], at: site.clock.now)
    let client = try await site.client(registry) {
      $0.storage = .directory(directory.url)
      $0.reporting = reporting
    }
    #expect(try await site.refusal(client, host: "a.localhost")?.rule == "leaf-pin")
    await client.flushReports()
    let report = try await report()
    #expect(report["hostname"] == .string("a.localhost"))
    #expect(report["port"]?.integerValue == Int64(site.server.port))
    #expect(report["noted-hostname"] == .string("localhost"))
    #expect(report["enforce-pinning"] == .bool(true))
    let chain = try #require(report["validated-certificate-chain"]?.arrayValue)
    let shown = try chain.map { try PEMBlock.blocks(in: [UInt8]($0.stringValue?.utf8 ?? "".utf8)) }
    #expect(shown.first?.first?.bytes == site.identity.leaf.der)
    let pins = try #require(report["known-pins"]?.arrayValue)
    #expect(pins.contains(.string("pin-sha256=\"\(LiveSite.otherPin)\"")))
  }

  /// What may be sent beside a chain: too many certificates, or one that takes a whole report.
  struct Beside: Sendable, CustomTestStringConvertible {
    let count: Int
    let names: Int
    let testDescription: String
  }

  @Test(
    "tells the validated path first, whatever is sent beside it, on each kind of request",
    arguments: [
      Beside(count: 9, names: 1, testDescription: "nine certificates of nobody"),
      Beside(count: 1, names: 1400, testDescription: "one of more than 32 KiB"),
    ])
  func pathFirst(_ beside: Beside) async throws {
    let below = try site.authority.issueIntermediate(name: "Below")
    let own = try below.issue(names: ["a.localhost", "b.localhost", "c.localhost"])
    let names = (0..<beside.names).map { "n\($0).of-nobody.example" }
    let junk = try ServerIdentity.selfSigned(names: names).leaf
    #expect(beside.count > 1 || junk.der.count > 32 << 10)
    let sent = [own.leaf] + Array(repeating: junk, count: beside.count) + own.intermediates
    try site.server.replaceIdentity(ServerIdentity(certificates: sent, key: own.key))
    let registry = try ScriptedRegistry(["*.localhost": [LiveSite.otherPin]], at: site.clock.now)
    let client = try await site.client(registry) {
      $0.storage = .directory(directory.url)
      $0.reporting = reporting
    }
    #expect(try await site.refusal(client, host: "a.localhost")?.rule == "leaf-pin")
    let url = try #require(URL(string: "https://b.localhost:\(site.server.port)/"))
    await #expect(throws: PinEvaluation.self) { try await client.data(for: URLRequest(url: url)) }
    let presented = sent.map { Data($0.der) }
    #expect(client.evaluate(presented: presented, host: "c.localhost").rule == "leaf-pin")
    await client.flushReports()
    #expect(await eventually { collector.requests.count == 3 })
    for request in collector.requests {
      let body = try JSONValue(parsing: request.body).objectValue
      let chain = try #require(body?["validated-certificate-chain"]?.arrayValue)
      let told = try chain.flatMap {
        try PEMBlock.blocks(in: [UInt8]($0.stringValue?.utf8 ?? "".utf8))
      }
      #expect(told.prefix(2).map(\.bytes) == [own.leaf.der, own.intermediates[0].der])
      #expect(told.dropFirst(2).allSatisfy { $0.bytes == junk.der })
      #expect(told.count == (beside.count > 1 ? 10 : 2))
    }
  }

  @Test("tells nothing of what was accepted, and nobody unless it was asked to")
  func accepted() async throws {
    let client = try await site.client(try site.registry()) {
      $0.storage = .directory(directory.url)
      $0.reporting = reporting
    }
    #expect(try await site.refusal(client) == nil)
    await client.flushReports()
    let silent = try await site.client(try site.registry())
    #expect(try await site.refusal(silent, host: "a.localhost") != nil)
    await silent.flushReports()
    #expect(collector.requests.isEmpty)
  }

  @Test("tells of what report-only let through")
  func reportOnly() async throws {
    let registry = try ScriptedRegistry(["localhost": [LiveSite.otherPin]], at: site.clock.now)
    let client = try await site.client(registry) {
      $0.storage = .directory(directory.url)
      $0.reporting = reporting
      $0.enforcement = .reportOnly
    }
    #expect(try await site.refusal(client) == nil)
    await client.flushReports()
    #expect(try await report()["enforce-pinning"] == .bool(false))
  }

  @Test(
    "reaches a collector by the time that the registry vouches for, if the device's clock is behind",
    arguments: [(200, true), (100, false)])
  func clockBehind(days: Int64, isTold: Bool) async throws {
    let collectors = Int64(site.clock.now.timeIntervalSince1970) + days * 86_400
    let identity = try site.authority.issue(
      names: ["localhost"],
      validity: Validity(notBefore: collectors - 86_400, notAfter: collectors + 86_400))
    let collector = try LocalTLSServer(identity: identity) { _ in HTTPResponse(status: 204) }
    let registry = try ScriptedRegistry(
      ["localhost": [LiveSite.otherPin]], at: site.clock.now.addingTimeInterval(200 * 86_400))
    let client = try await site.client(registry) {
      $0.storage = .directory(directory.url)
      $0.reporting = ReportingConfig(
        urls: ["https://localhost:\(collector.port)/"], appBundleId: "a", appVersion: "1")
    }
    #expect(try await site.refusal(client)?.rule == "leaf-pin")
    await client.flushReports()
    #expect(collector.requests.count == (isTold ? 1 : 0))
  }

  @Test("a client of fixed pins reports and records alike")
  func fixedPins() async throws {
    let pins = try FixedPins(
      ["localhost": [LiveSite.otherPin]], trust: .anchors([site.authority.root.der]))
    let client = try FixedPinsClient(
      pins: pins, reporting: reporting, storage: .directory(directory.url))
    let chain = ([site.identity.leaf] + site.identity.intermediates).map { Data($0.der) }
    var verdicts = client.evaluations.makeAsyncIterator()
    #expect(client.evaluate(presented: chain, host: "localhost").rule == "leaf-pin")
    #expect(await verdicts.next()?.rule == "leaf-pin")
    await client.flushReports()
    #expect(try await report()["hostname"] == .string("localhost"))
  }

  @Test("a client of fixed pins tells of a collector that takes no reports")
  func trouble() async throws {
    let refusing = try LocalHTTPServer { _ in HTTPResponse(status: 405) }
    let pins = try FixedPins(
      ["localhost": [LiveSite.otherPin]], trust: .anchors([site.authority.root.der]))
    let client = try FixedPinsClient(
      pins: pins,
      reporting: ReportingConfig(
        urls: ["http://127.0.0.1:\(refusing.port)/"], appBundleId: "a", appVersion: "1"),
      storage: .directory(directory.url))
    _ = client.evaluate(presented: [Data(site.identity.leaf.der)], host: "localhost")
    await client.flushReports()
    let told = Locked<[PinningEvent]>([])
    let listening = Task { [events = client.events] in
      for await event in events { told.withLock { $0.append(event) } }
    }
    #expect(
      await eventually {
        told.withLock { $0 } == [.reporting(.rejected(host: "127.0.0.1", status: 405))]
      })
    listening.cancel()
  }

  /// In a process of its own: the environment is everybody's.
  @Test("without a home reports go out from memory, which is told")
  func homeless() async {
    await #expect(processExitsWith: .exitCode(7)) {
      for name in ["HOME", "XDG_STATE_HOME"] { unsetenv(name) }
      let (site, collector) = (
        try LiveSite(), try LocalHTTPServer { _ in HTTPResponse(status: 204) }
      )
      let client = try FixedPinsClient(
        pins: try FixedPins(
          ["localhost": [LiveSite.otherPin]], trust: .anchors([site.authority.root.der])),
        reporting: ReportingConfig(
          urls: ["http://127.0.0.1:\(collector.port)/"], appBundleId: "a", appVersion: "1"))
      _ = client.evaluate(presented: [Data(site.identity.leaf.der)], host: "localhost")
      await client.flushReports()
      guard collector.requests.count == 1 else { exit(1) }
      for await event in client.events {
        guard case .reporting(.notSaved(let reason)) = event else { exit(2) }
        exit(reason.contains("no home") ? 7 : 3)
      }
    }
  }

  @Test("reports without a place to be kept are an error of the app's configuration")
  func noStorage() async throws {
    let registry = try site.registry()
    await #expect(throws: SslPinningError.badReporting(.noStorage)) {
      try await site.client(registry) { $0.reporting = reporting }
    }
    await #expect(throws: SslPinningError.badReporting(.clearTextURL(index: 0))) {
      try await site.client(registry) {
        $0.storage = .directory(directory.url)
        $0.reporting = ReportingConfig(
          urls: ["http://192.0.2.1/"], appBundleId: "a", appVersion: "1")
      }
    }
  }
}
