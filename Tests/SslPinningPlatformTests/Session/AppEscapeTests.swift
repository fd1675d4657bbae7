import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("An app that goes astray with a pinned URLSession")
struct AppEscapeTests {
  /// BAD is the port of a server with another key, PLAIN that of a clear-text server.
  private static let detours = [
    "https://b.localhost:BAD/", "HTTPS://b.localhost:BAD/", "https://127.0.0.1:BAD/",
    "http://localhost:PLAIN/", "HTTP://localhost:PLAIN/", "ws://localhost:PLAIN/",
    "wss://localhost:BAD/", "ftp://localhost:PLAIN/", "gopher://localhost:PLAIN/",
    "telnet://localhost:PLAIN/", "dict://localhost:PLAIN/", "file:///etc/hostname", "data:,gotcha",
  ]

  @Test("to answer a redirect with a request elsewhere sends nothing there", arguments: detours)
  func detour(target: String) async throws {
    let site = try PinnedSite { _ in .redirect(to: "/again") }
    let plain = try LocalHTTPServer { _ in .text("gotcha") }
    let bad = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    let text = target.replacingOccurrences(of: "BAD", with: "\(bad.port)")
      .replacingOccurrences(of: "PLAIN", with: "\(plain.port)")
    let delegate = DetourDelegate(to: try #require(URL(string: text)))
    let task = site.session(delegate: delegate).dataTask(with: try site.url())
    task.resume()
    #expect(await eventually { delegate.isComplete })
    #expect(task.error != nil)
    #expect(delegate.body.isEmpty)
    #expect(await bad.waitUntilIdle())
    #expect(bad.counts.applicationBytesReceived == 0)
    #expect(plain.counts.connections == 0)
  }

  @Test("to ask for a file is told as that, and not as a matter of spelling")
  func fileURL() async throws {
    let site = try PinnedSite()
    let error = await #expect(throws: (any Error).self) {
      try await site.session().data(from: URL(fileURLWithPath: "/etc/hostname"))
    }
    let text = try #require(error).localizedDescription
    #expect(
      text.hasPrefix("file is nothing for a pinned session") && !text.contains("hint:"), "\(text)")
  }

  @Test("to name another host in a Host header changes neither the server nor its pins")
  func hostHeader() async throws {
    let site = try PinnedSite { .text($0.header("Host") ?? "") }
    let bad = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["Host": "b.localhost:\(bad.port)"]
    let body = try await site.session(configuration).data(from: site.url()).0
    #expect(String(decoding: body, as: UTF8.self) == "b.localhost:\(bad.port)")
    #expect(site.judge.recorded.map(\.host) == ["localhost"])
    #expect(bad.counts.connections == 0)
    #expect(
      await site.refusal(of: try site.url(port: bad.port), over: site.session(configuration))?.rule
        == "leaf-pin")
  }
}

/// Follows a redirect to somewhere else.
private final class DetourDelegate: NSObject, URLSessionDataDelegate {
  private struct State {
    var body = Data()
    var isComplete = false
  }

  private let state = Locked(State())
  private let target: URL

  init(to target: URL) { self.target = target }

  var body: Data { state.withLock { $0.body } }
  var isComplete: Bool { state.withLock { $0.isComplete } }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(URLRequest(url: target))
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    state.withLock { $0.body.append(data) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    state.withLock { $0.isComplete = true }
  }
}
