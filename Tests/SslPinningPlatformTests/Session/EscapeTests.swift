import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Ways around a pinned URLSession", .serialized)
struct EscapeTests {
  @Test(
    "are closed to a protocol class that an app registers for the whole process",
    arguments: ["HTTP", "ftps", "gopher"])
  func registeredClass(scheme: String) async throws {
    let site = try PinnedSite()
    let url = try #require(URL(string: "\(scheme)://localhost:\(site.server.port)/"))
    #expect(URLProtocol.registerClass(TakeAllProtocol.self))
    defer { URLProtocol.unregisterClass(TakeAllProtocol.self) }
    // The control: an ordinary session is answered by the class.
    let plain = try await URLSession(configuration: .ephemeral).data(from: url).0
    #expect(String(decoding: plain, as: UTF8.self) == "escaped")
    do {
      _ = try await site.session().data(from: url)
      Issue.record("served")
    } catch {
      let isClearText = ["http", "ws", "ftp"].contains(scheme.lowercased())
      #expect((site.transport.refusal(for: error)?.rule == "clear-text") == isClearText)
      #expect(isClearText || (error as? URLError)?.code == .unsupportedURL)
    }
    #expect(site.server.requests.isEmpty)
  }

  @Test(
    "are closed to it, too, where an upper-case HTTPS goes to Foundation's transport",
    arguments: ["HTTPS", "Https"])
  func registeredClassAndUpperCase(scheme: String) async throws {
    let site = try PinnedSite()
    let rogue = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    #expect(URLProtocol.registerClass(TakeAllProtocol.self))
    defer { URLProtocol.unregisterClass(TakeAllProtocol.self) }
    let url = try #require(URL(string: "\(scheme)://localhost:\(site.server.port)/"))
    let body = try await site.session().data(from: url).0
    #expect(String(decoding: body, as: UTF8.self) == "hello")
    let bad = try #require(URL(string: "\(scheme)://localhost:\(rogue.port)/"))
    #expect(await site.refusal(of: bad, over: site.session())?.rule == "leaf-pin")
    #expect(rogue.counts.applicationBytesReceived == 0)
  }

  @Test("take no data: URLs, which dial nobody")
  func dataURL() async throws {
    let url = try #require(URL(string: "data:text/plain,here"))
    let body = try await PinnedSite().session().data(from: url).0
    #expect(String(decoding: body, as: UTF8.self) == "here")
  }

  @Test("a session made of a pinned session's configuration has no pins, and refuses everything")
  func madeOfConfiguration() async throws {
    let site = try PinnedSite()
    let pinned = site.session()
    #expect(try await pinned.data(from: site.url()).0 == Data("hello".utf8))
    let clear = try LocalHTTPServer { _ in .text("in clear text") }
    let urls = [try site.url(), try #require(URL(string: "http://127.0.0.1:\(clear.port)/"))]
    let again = URLSession(configuration: pinned.configuration).configuration
    for configuration in [pinned.configuration, again] {
      for url in urls {
        let error = await #expect(throws: URLError.self) {
          try await URLSession(configuration: configuration).data(from: url)
        }
        #expect(error?.localizedDescription.contains("none of its pins") == true)
      }
    }
    #expect(site.server.requests.count == 1 && clear.requests.isEmpty)
    // The control: the session itself goes on.
    #expect(try await pinned.data(from: site.url()).0 == Data("hello".utf8))
  }
}

private final class TakeAllProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { true }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
  override func stopLoading() {}
  override func startLoading() {
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocol(self, didLoad: Data("escaped".utf8))
    client?.urlProtocolDidFinishLoading(self)
  }
}
