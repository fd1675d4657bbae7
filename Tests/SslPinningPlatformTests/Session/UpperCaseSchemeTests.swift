import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// Schemes have no case (RFC 3986 section 3.1); Foundation's transport thinks otherwise.
@Suite("A URL whose scheme is not in lower case")
struct UpperCaseSchemeTests {
  private func url(_ site: PinnedSite, _ path: String = "/", port: UInt16? = nil) throws -> URL {
    try #require(URL(string: "HTTPS://localhost:\(port ?? site.server.port)\(path)"))
  }

  @Test("is served on a pinned session as by a request without one")
  func served() async throws {
    let site = try PinnedSite(handler: echo)
    let url = try url(site)
    #expect(await site.transport.end(of: url) == .served(200, "GET 0"))
    let session = site.session()
    let body = try await session.data(from: url).0
    #expect(String(decoding: body, as: UTF8.self) == "GET 0")
    var post = URLRequest(url: url)
    post.httpMethod = "POST"
    let answer = try await session.upload(for: post, from: Data("abc".utf8)).0
    #expect(String(decoding: answer, as: UTF8.self) == "POST 3")
    let file = try await session.download(from: url).0
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try Data(contentsOf: file) == Data("GET 0".utf8))
  }

  @Test("is served to an app's own delegate, redirects and refusals included")
  func delegate() async throws {
    let site = try PinnedSite { $0.path == "/" ? .redirect(to: "/there") : .text("there") }
    let delegate = RecordingDelegate()
    let record = await delegate.run(
      site.session(delegate: delegate).dataTask(with: try url(site)))
    #expect(record.error == nil)
    #expect(record.events.contains("redirect 302"))
    #expect(String(decoding: record.body, as: UTF8.self) == "there")
    let rogue = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    let other = RecordingDelegate()
    let refused = await other.run(
      site.session(delegate: other).dataTask(with: try url(site, port: rogue.port)))
    #expect(site.transport.refusal(for: try #require(refused.error))?.rule == "leaf-pin")
    #expect(rogue.counts.applicationBytesReceived == 0)
  }

  @Test("can be cancelled, suspended and resumed, and be one of many")
  func lifeCycle() async throws {
    let site = try PinnedSite { request in
      var answer = HTTPResponse.text("hello")
      if request.path == "/slow" { answer.delayMilliseconds = 60_000 }
      if request.path == "/later" { answer.delayMilliseconds = 200 }
      return answer
    }
    let delegate = RecordingDelegate()
    let session = site.session(delegate: delegate)
    let task = session.dataTask(with: try url(site, "/slow"))
    task.resume()
    #expect(await eventually { !site.server.requests.isEmpty })
    task.cancel()
    #expect(await eventually { delegate.record.isComplete })
    #expect((delegate.record.error as? URLError)?.code == .cancelled)
    // Resumed before Foundation has come to stop it, as often as not; and not over before, which no task of
    // Foundation's stands.
    for _ in 0..<10 {
      let second = RecordingDelegate()
      let paused = site.session(delegate: second).dataTask(with: try url(site, "/later"))
      paused.resume()
      paused.suspend()
      #expect(await second.run(paused).error == nil)
    }
    let target = try url(site)
    let many = site.session()
    let served = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<100 { group.addTask { try await many.data(from: target).0.count } }
      return try await group.reduce(0) { $0 + ($1 == 5 ? 1 : 0) }
    }
    #expect(served == 100)
  }

  @Test("is refused where it means clear text, before anything is dialled")
  func clearText() async throws {
    let site = try PinnedSite()
    let plain = try LocalHTTPServer { _ in .text("clear") }
    let url = try #require(URL(string: "HTTP://localhost:\(plain.port)/"))
    let refusal = await site.refusal(of: url, over: site.session())
    #expect(refusal?.outcome == .clearText(scheme: "http"))
    #expect(await site.transport.end(of: url) == .refused("clear-text"))
    #expect(plain.counts.connections == 0)
  }

  @Test(
    "names a host after two slashes or none at all, on both ways",
    arguments: ["https:/", "https:///", "HTTPS:/", "HTTPS:///", "https:"])
  func withoutAuthority(prefix: String) async throws {
    let site = try PinnedSite()
    let url = try #require(URL(string: "\(prefix)localhost:\(site.server.port)/"))
    #expect(await site.transport.end(of: url) == .failed(.badURL))
    do {
      _ = try await site.session().data(from: url)
      Issue.record("served")
    } catch {
      #expect((error as? URLError)?.code == .badURL)
      #expect("\(error)".contains("host"))
    }
    #expect(site.server.counts.connections == 0)
  }
}
