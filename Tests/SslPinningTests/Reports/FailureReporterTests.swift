import CanonicalJSON
import FaultLab
import Foundation
import FoundationNetworking
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Reporting failures")
struct FailureReporterTests {
  private let site: ReportSite

  init() throws { site = try ReportSite() }

  @Test("a failure reaches the collector as JSON, with host and port and nothing of the request")
  func delivered() async throws {
    let reporter = try site.reporter()
    reporter.report(
      ReportSite.verdict(), port: 8443, pattern: try HostPattern("**.example.com"),
      chain: [site.authority.root.der])
    await reporter.flush()
    let request = try #require(site.collector.requests.first)
    #expect(request.method == "POST")
    #expect(request.target == "/reports?key=secret")
    #expect(request.header("Content-Type") == "application/json")
    #expect(request.header("Cookie") == nil)
    let report = try #require(site.received().first)
    #expect(report["hostname"] == .string("shop.example.com"))
    #expect(report["port"] == .number(8443))
    #expect(report["noted-hostname"] == .string("example.com"))
    #expect(report["validation-result"] == .number(1))
    #expect(report["date-time"] == .string("2023-11-14T22:13:20Z"))
    #expect(report["app-platform"] == .string(SystemName.platform))
    #expect(report["app-platform-version"]?.stringValue?.split(separator: ".").count == 3)
    let pem = try #require(report["validated-certificate-chain"]?.arrayValue?.first?.stringValue)
    #expect(try CertificateFile.certificates(in: Array(pem.utf8)) == [site.authority.root.der])
    #expect(site.trouble.withLock { $0 }.isEmpty)
  }

  @Test("without anybody asking, reports go out in the background")
  func background() async throws {
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    #expect(await eventually { (try? site.counts()) == ["shop.example.com": 1] })
    withExtendedLifetime(reporter) {}
  }

  @Test("what is fine, or forgiven where that is not wanted, is reported to nobody")
  func silent() async throws {
    let reporter = try site.reporter(includesReportOnly: false)
    reporter.report(PinEvaluation(host: "a", outcome: .matched, decision: .accept))
    reporter.report(PinEvaluation(host: "b", outcome: .mismatch(.leaf), decision: .accept))
    await reporter.flush()
    #expect(site.collector.counts.connections == 0)
    #expect(!FileManager.default.fileExists(atPath: site.directory.path("state")))
  }

  @Test("repeats are one report with a count, once an hour")
  func merging() async throws {
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    for _ in 0..<50 {
      reporter.report(ReportSite.verdict())
      site.clock.advance(by: 10)
    }
    await reporter.flush()
    #expect(try site.received().count == 1)
    // By the nap's end alone. A pass that was under way naps anew, so the clock goes on turning.
    #expect(
      await eventually {
        site.clock.advance(by: 600)
        return (try? site.counts()) == ["shop.example.com": 51]
      })
    #expect(try site.received().count == 2)
  }

  @Test(
    "a collector that says when to come again is asked neither earlier nor never",
    arguments: [
      (429, "90", 90), (503, "Tue, 14 Nov 2023 22:15:20 GMT", 120), (503, "no time", 60),
      (500, nil, 60),
    ] as [(Int, String?, TimeInterval)])
  func retryAfter(status: Int, field: String?, seconds: TimeInterval) async throws {
    site.answer(
      HTTPResponse(status: status, headers: field.map { [HTTPField("Retry-After", $0)] } ?? []))
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    #expect(
      site.trouble.withLock { $0 } == [
        .postponed(
          host: "localhost", until: site.clock.now + seconds, reason: "status \(status)")
      ])
    site.answer(HTTPResponse(status: 200))
    site.clock.advance(by: seconds - 1)
    await reporter.flush()
    #expect(try site.received().count == 1)
    // Now by the nap's end alone.
    #expect(
      await eventually {
        site.clock.advance(by: 1)
        return site.collector.requests.count == 2
      })
    await reporter.flush()
    #expect(try site.received().count == 2)
    #expect(try site.received().map { $0["report-id"] }.uniqued.count == 1)
  }

  @Test("a flush that is cancelled, as at the end of an app's time, stops no later try")
  func cancelledFlush() async throws {
    site.answer(HTTPResponse(status: 503))
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    // The worker's own try is over.
    let isOver = await eventually { [site] in !site.trouble.withLock(\.isEmpty) }
    #expect(isOver)
    for _ in 0..<20 {
      let flush = Task { await reporter.flush() }
      flush.cancel()
      await flush.value
      await Task.yield()
    }
    let before = site.collector.requests.count
    site.answer(HTTPResponse(status: 204))
    #expect(
      await eventually {
        site.clock.advance(by: 60)
        return site.collector.requests.count > before
      })
    withExtendedLifetime(reporter) {}
  }

  @Test("a report that the collector does not want is not sent again")
  func rejected() async throws {
    site.answer(HTTPResponse(status: 400))
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    site.clock.advance(by: 100_000)
    await reporter.flush()
    #expect(try site.received().count == 1)
    #expect(site.trouble.withLock { $0 } == [.rejected(host: "localhost", status: 400)])
  }

  @Test("a redirect is not followed: what the app tells, it tells whom it named")
  func redirect() async throws {
    let other = try LocalTLSServer(identity: site.authority.issue(names: ["localhost"])) { _ in
      .text("")
    }
    site.answer(.redirect(to: "https://localhost:\(other.port)/", status: 307))
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    #expect(other.requests.isEmpty)
    site.answer(HTTPResponse(status: 200))
    site.clock.advance(by: 60)
    await reporter.flush()
    #expect(try site.counts() == ["shop.example.com": 2])
  }

  @Test("after a restart, the next reporter sends what the last one could not")
  func restart() async throws {
    site.answer(HTTPResponse(status: 503))
    for host in ["a", "b", "c"] {
      let reporter = try site.reporter()
      reporter.report(ReportSite.verdict(host))
      await reporter.flush()
    }
    #expect(site.collector.requests.count == 1)
    site.collector.clearLog()
    site.answer(HTTPResponse(status: 200))
    site.clock.advance(by: 60)
    let reporter = try site.reporter()
    #expect(await eventually { site.collector.requests.count == 3 })
    #expect(try site.counts() == ["a": 1, "b": 1, "c": 1])
    await reporter.flush()
    #expect(site.collector.requests.count == 3)
  }

  @Test("what was noted is saved though the reporter is let go at once")
  func letGo() async throws {
    site.answer(HTTPResponse(status: 503))
    do {
      let reporter = try site.reporter()
      reporter.report(ReportSite.verdict())
    }
    let (path, limit) = (site.path, 1 << 20)
    #expect(
      await eventually {
        (try? AtomicFile(path: path).read(limit: limit))
          .map { String(decoding: $0, as: UTF8.self).contains("shop.example.com") } ?? false
      })
  }

  @Test("a report is on the disk before it is sent")
  func savedFirst() async throws {
    let (path, limit) = (site.path, 1 << 20)
    let seen = Locked<String?>(nil)
    let looking = try LocalHTTPServer { _ in
      let bytes = try? AtomicFile(path: path).read(limit: limit)
      seen.withLock { $0 = bytes.map { String(decoding: $0, as: UTF8.self) } }
      return HTTPResponse(status: 200)
    }
    let reporter = try site.reporter(urls: ["http://127.0.0.1:\(looking.port)/"])
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    #expect(seen.withLock { $0 }?.contains("shop.example.com") == true)
  }

  @Test("two reporters on one directory lose nothing, and send nothing twice")
  func shared() async throws {
    let reporters = [try site.reporter(), try site.reporter()]
    await withTaskGroup(of: Void.self) { group in
      for (number, reporter) in reporters.enumerated() {
        group.addTask {
          for host in 0..<10 {
            reporter.report(ReportSite.verdict("h\(host)"))
            reporter.report(ReportSite.verdict("own\(number)-\(host)"))
            if host % 3 == 0 { await reporter.flush() }
          }
        }
      }
    }
    // In steps shorter than the lease: what one is sending the other leaves to it.
    for _ in 0...61 {
      for reporter in reporters { await reporter.flush() }
      site.clock.advance(by: 60)
    }
    let counts = try site.counts()
    #expect(counts.count == 30)
    for (host, count) in counts { #expect(count == (host.hasPrefix("own") ? 1 : 2), "\(host)") }
    #expect(try site.received().map { $0["report-id"] }.uniqued.count == site.received().count)
  }

  @Test("each collector gets each report, whatever another one answers")
  func collectors() async throws {
    let deaf = try ClosedPort()
    let reporter = try site.reporter(urls: ["https://localhost:\(deaf.port)/", site.url, site.url])
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    #expect(try site.received().count == 1)
    let trouble = site.trouble.withLock { $0 }
    #expect(trouble.count == 1)
    guard case .postponed("localhost", _, _)? = trouble.first else {
      Issue.record("\(trouble)")
      return
    }
  }

  @Test("what no one can read is begun anew, and said")
  func unreadable() async throws {
    for (name, junk) in ["", "no queue", String(repeating: "x", count: 3 << 20)].enumerated() {
      try site.directory.write(junk, to: "\(name)/failure-reports.json")
      let reporter = try site.reporter(directory: site.directory.path("\(name)"))
      reporter.report(ReportSite.verdict())
      await reporter.flush()
    }
    #expect(site.trouble.withLock { $0 } == [.queueUnreadable, .queueUnreadable, .queueUnreadable])
    #expect(try site.counts() == ["shop.example.com": 3])
  }

  @Test(
    "what went out from memory while the disk was full is counted for its hour, and told once",
    arguments: [204, 400])
  func fullDisk(status: Int) async throws {
    let reporter = try site.reporter()
    for host in ["a", "old"] { reporter.report(ReportSite.verdict(host)) }
    await reporter.flush()
    // The kind on the disk is due again; what goes out from memory begins its next hour.
    site.clock.advance(by: 3600)
    let place = URL(fileURLWithPath: site.path + ".new")
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
    site.answer(HTTPResponse(status: status))
    for _ in 0..<3 {
      reporter.report(ReportSite.verdict("a"))
      await reporter.flush()
    }
    #expect(try site.counts() == ["old": 1, "a": 2])
    let told = site.trouble.withLock { $0 }.count { if case .notSaved = $0 { true } else { false } }
    #expect(told == 1)
    try FileManager.default.removeItem(at: place)
    reporter.report(ReportSite.verdict("a"))
    await reporter.flush()
    #expect(try site.counts() == ["old": 1, "a": 2])
    site.clock.advance(by: 3600)
    await reporter.flush()
    #expect(try site.counts() == ["old": 1, "a": 5])
  }

  @Test("where the disk cannot be written, reports go out from memory, and join it later")
  func noDisk() async throws {
    try site.directory.write("in the way", to: "blocked")
    let path = site.directory.path("blocked")
    let reporter = try site.reporter(directory: path)
    reporter.report(ReportSite.verdict("a"))
    await reporter.flush()
    #expect(try site.counts() == ["a": 1])
    #expect(
      site.trouble.withLock { $0 }.contains { if case .notSaved = $0 { true } else { false } })

    site.answer(HTTPResponse(status: 503))
    reporter.report(ReportSite.verdict("b"))
    await reporter.flush()
    try FileManager.default.removeItem(atPath: path)
    reporter.report(ReportSite.verdict("c"))
    await reporter.flush()
    let saved = try AtomicFile(path: path + "/failure-reports.json").read(limit: 1 << 20) ?? []
    let text = String(decoding: saved, as: UTF8.self)
    #expect(text.contains("\"b\"") && text.contains("\"c\""))
  }

  @Test("more different failures than there is room for are counted and said")
  func bounded() async throws {
    var rules = ReportRules()
    rules.mostReports = 2
    site.answer(HTTPResponse(status: 503))
    let reporter = try site.reporter(rules: rules)
    for host in ["a", "b", "c", "d"] { reporter.report(ReportSite.verdict(host)) }
    await reporter.flush()
    let dropped = site.trouble.withLock { trouble in
      trouble.reduce(Int64(0)) { if case .dropped(let failures) = $1 { $0 + failures } else { $0 } }
    }
    #expect(dropped == 2)
    site.collector.clearLog()
    site.answer(HTTPResponse(status: 200))
    site.clock.advance(by: 60)
    await reporter.flush()
    #expect(try site.counts() == ["a": 1, "b": 1])
    #expect(try site.received().first?["dropped-reports"] == .number(2))
  }

  @Test("the collector's own pins stop a pinned session, and never a report about it")
  func ownPins() async throws {
    let wrong = try SPKIPin(certificateDER: site.authority.root.der)
    let client = try FixedPinsClient(
      pins: FixedPins(
        ["localhost": HostPins(leaf: [wrong.base64])], trust: .anchors([site.authority.root.der])))
    let url = try #require(URL(string: site.url))
    let reporter = try site.reporter()
    do {
      _ = try await client.createPinnedSession().data(from: url)
      Issue.record("the pinned session let it through")
    } catch {
      reporter.report(try #require(client.refusal(for: error)), port: Int(site.collector.port))
    }
    #expect(site.collector.requests.isEmpty)
    await reporter.flush()
    #expect(try site.counts() == ["localhost": 1])
  }

  @Test("a collector under a CA that nobody trusts is told nothing")
  func forgedCollector() async throws {
    let forger = try CertificateAuthority.makeRoot(name: "Forger")
    try site.collector.replaceIdentity(forger.issue(names: ["localhost"]))
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    #expect(site.collector.counts.applicationBytesReceived == 0)
    #expect(site.trouble.withLock { $0 }.count == 1)
  }

  @Test(
    "an answer whose body has no end, or none of its own, is an answer all the same",
    arguments: [HTTPResponse.Delivery.endless(), .cutOff(afterBytes: 10)])
  func oddBodies(delivery: HTTPResponse.Delivery) async throws {
    site.answer(HTTPResponse(body: [UInt8](repeating: 7, count: 9000), delivery: delivery))
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    #expect(site.trouble.withLock { $0 }.isEmpty)
    site.clock.advance(by: 100_000)
    await reporter.flush()
    #expect(try site.received().count == 1)
  }

  @Test("no answer at all is none: the report comes again, under the same id")
  func hangUp() async throws {
    site.answer(HTTPResponse(delivery: .hangUp))
    let reporter = try site.reporter()
    reporter.report(ReportSite.verdict())
    await reporter.flush()
    #expect(site.trouble.withLock { $0 }.count == 1)
    site.answer(HTTPResponse(status: 200))
    site.clock.advance(by: 60)
    await reporter.flush()
    #expect(try site.received().count == 2)
    #expect(try site.received().map { $0["report-id"] }.uniqued.count == 1)
  }

  @Test("what a process was sending when it stopped for good, another sends after the lease")
  func diedWhileSending() async throws {
    let gate = DispatchSemaphore(value: 0)
    let isFirst = Locked(true)
    let slow = try LocalTLSServer(identity: site.authority.issue(names: ["localhost"])) { _ in
      let waits = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if waits { gate.wait() }
      return HTTPResponse(status: 200)
    }
    defer { gate.signal() }
    let urls = ["https://localhost:\(slow.port)/"]
    let hanging = try site.reporter(urls: urls)
    hanging.report(ReportSite.verdict())
    #expect(await eventually { slow.requests.count == 1 })
    let next = try site.reporter(urls: urls)
    site.clock.advance(by: 119)
    await next.flush()
    #expect(slow.requests.count == 1)
    site.clock.advance(by: 1)
    await next.flush()
    #expect(slow.requests.count == 2)
    let bodies = slow.requests.map(\.body)
    #expect(bodies.first == bodies.last)
    withExtendedLifetime(hanging) {}
  }

  @Test("a collector that hangs holds up no disk, no other one and no flush that is cancelled")
  func hanging() async throws {
    let gate = DispatchSemaphore(value: 0)
    let slow = try LocalTLSServer(identity: site.authority.issue(names: ["localhost"])) { _ in
      gate.wait()
      gate.signal()
      return HTTPResponse(status: 200)
    }
    defer { gate.signal() }
    let reporter = try site.reporter(urls: ["https://localhost:\(slow.port)/", site.url])
    reporter.report(ReportSite.verdict("first"))
    #expect(await eventually { slow.requests.count == 1 })
    reporter.report(ReportSite.verdict("second"))
    #expect(await eventually { (try? site.counts()) == ["first": 1, "second": 1] })
    reporter.report(ReportSite.verdict("third"))
    let flush = Task { await reporter.flush() }
    flush.cancel()
    await flush.value
    let saved = try AtomicFile(path: site.path).read(limit: 1 << 20) ?? []
    let text = String(decoding: saved, as: UTF8.self)
    #expect(text.contains("\"second\"") && text.contains("\"third\""))
    // It hangs to this moment: what waited for its time-out would have been told of that.
    #expect(site.trouble.withLock { $0 }.isEmpty)
    #expect(slow.requests.count == 1)
  }

  @Test("two clients of one app with collectors of their own share a directory")
  func otherCollectors() async throws {
    let other = try LocalTLSServer(identity: site.authority.issue(names: ["localhost"])) { _ in
      HTTPResponse(status: 200)
    }
    site.answer(HTTPResponse(status: 503))
    let one = try site.reporter()
    one.report(ReportSite.verdict("a"))
    await one.flush()
    let two = try site.reporter(urls: ["https://localhost:\(other.port)/"])
    two.report(ReportSite.verdict("a"))
    await two.flush()
    #expect(other.requests.count == 1)
    site.answer(HTTPResponse(status: 200))
    site.collector.clearLog()
    site.clock.advance(by: 60)
    await one.flush()
    #expect(try site.counts() == ["a": 1])
  }

  @Test(
    "URLs that a report must not go to are refused before anything is sent",
    arguments: [
      ([], .noURL), (["https://a.example/", "http://b.example/"], .clearTextURL(index: 1)),
      (["ftp://a.example/"], .badURL(index: 0)),
      (["https://user:pw@a.example/"], .badURL(index: 0)),
      (["nonsense"], .badURL(index: 0)),
    ] as [([String], ReportingError)])
  func badURLs(urls: [String], error: ReportingError) {
    #expect(throws: error) { try site.reporter(urls: urls) }
    #expect(!"\(error)".contains("pw"))
  }
}

extension Sequence where Element: Hashable {
  fileprivate var uniqued: Set<Element> { Set(self) }
}
