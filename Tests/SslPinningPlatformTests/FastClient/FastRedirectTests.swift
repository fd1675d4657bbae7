import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("Redirects of a request without a session")
struct FastRedirectTests {
  private func site(to target: String, status: Int = 302) throws -> PinnedSite {
    try PinnedSite {
      $0.path == "/" ? .redirect(to: target, status: status) : .text("\($0.method) \($0.path)")
    }
  }

  @Test("are followed within the host, and the response says where it came from")
  func relative() async throws {
    let site = try site(to: "/there?x=1")
    let (body, response) = try await site.transport.data(for: URLRequest(url: site.url()))
    #expect(String(decoding: body, as: UTF8.self) == "GET /there")
    #expect(response.url?.path == "/there")
    #expect(site.server.requests.count == 2)
  }

  @Test("are judged for the host they lead to")
  func judged() async throws {
    let target = try PinnedSite { _ in .text("other") }
    let site = try site(to: "https://b.localhost:\(target.server.port)/")
    try target.server.replaceIdentity(site.rogueIdentity())
    do {
      _ = try await site.transport.data(for: URLRequest(url: site.url()))
      Issue.record("served")
    } catch {
      #expect((error as? PinEvaluation)?.host == "b.localhost")
      #expect((error as? PinEvaluation)?.rule == "leaf-pin")
    }
    #expect(await target.server.waitUntilIdle())
    #expect(target.server.counts.applicationBytesReceived == 0)
    try target.server.replaceIdentity(site.identity)
    #expect(await site.transport.end(of: try site.url()) == .served(200, "other"))
  }

  @Test("leave credentials behind where the origin changes, and carry them where it does not")
  func credentials() async throws {
    let secrets = ["Authorization": "a", "Cookie": "b", "Proxy-Authorization": "c", "X-Own": "d"]
    let target = try PinnedSite { _ in .text("other") }
    let across = try site(to: "https://b.localhost:\(target.server.port)/")
    try target.server.replaceIdentity(across.identity)
    _ = await across.transport.end(of: URLRequest(try across.url(), fields: secrets))
    let there = try #require(target.server.requests.first)
    for name in ["Authorization", "Cookie", "Proxy-Authorization"] {
      #expect(across.server.requests.first?.header(name) != nil)
      #expect(there.header(name) == nil)
    }
    #expect(there.header("X-Own") == "d")
    let within = try site(to: "/there")
    _ = await within.transport.end(of: URLRequest(try within.url(), fields: secrets))
    #expect(within.server.requests.last?.header("Authorization") == "a")
    #expect(within.server.requests.last?.header("Cookie") == "b")
  }

  @Test("are refused to clear text, with a verdict", arguments: ["http", "ftp"])
  func clearText(scheme: String) async throws {
    let plain = try LocalHTTPServer { _ in .text("clear") }
    let site = try site(to: "\(scheme)://localhost:\(plain.port)/")
    #expect(await site.transport.end(of: try site.url()) == .refused("clear-text"))
    #expect(plain.counts.connections == 0)
    #expect(site.judge.recorded.last?.outcome == .clearText(scheme: scheme))
  }

  @Test("end after twenty")
  func endless() async throws {
    let site = try PinnedSite { .redirect(to: $0.path + "x") }
    #expect(await site.transport.end(of: try site.url()) == .failed(.httpTooManyRedirects))
    #expect(site.server.requests.count == 21)
  }

  @Test(
    "keep the method and the body, or turn it, as the status says",
    arguments: [
      (301, "POST", "GET 0"), (302, "POST", "GET 0"), (303, "POST", "GET 0"), (303, "PUT", "GET 0"),
      (302, "PUT", "PUT 4"), (307, "POST", "POST 4"), (308, "POST", "POST 4"),
    ])
  func methods(status: Int, method: String, expected: String) async throws {
    let site = try PinnedSite {
      $0.path == "/" ? .redirect(to: "/there", status: status) : echo($0)
    }
    let request = URLRequest(try site.url(), method: method, body: Data("body".utf8))
    #expect(await site.transport.end(of: request) == .served(200, expected))
    let upload = URLRequest(try site.url(), method: method)
    let (body, _) = try await site.transport.upload(for: upload, from: Data("body".utf8))
    #expect(String(decoding: body, as: UTF8.self) == expected)
  }

  @Test("cannot send a stream again, and say so")
  func streams() async throws {
    let site = try site(to: "/there", status: 307)
    var request = URLRequest(try site.url(), method: "POST")
    request.httpBodyStream = InputStream(data: Data("body".utf8))
    #expect(await site.transport.end(of: request) == .failed(.requestBodyStreamExhausted))
  }

  @Test("without a place to go are answers; so is a redirect's long body not read for nothing")
  func answers() async throws {
    let site = try PinnedSite { request in
      switch request.path {
      case "/": .text("no location", status: 302)
      case "/nowhere":
        HTTPResponse(
          status: 302, headers: [HTTPField("Location", "")], body: Array("nowhere".utf8))
      case "/long":
        HTTPResponse(
          status: 302, headers: [HTTPField("Location", "/there")], body: [65],
          delivery: .endless(pauseMilliseconds: 0))
      default: .text("there")
      }
    }
    #expect(await site.transport.end(of: try site.url()) == .served(302, "no location"))
    #expect(await site.transport.end(of: try site.url("/nowhere")) == .served(302, "nowhere"))
    #expect(await site.transport.end(of: try site.url("/long")) == .served(200, "there"))
  }

  @Test("with a second place that is empty bring the reader of a stream nothing of the first hop")
  func twoPlaces() async throws {
    let target = try PinnedSite { _ in .text("genuine") }
    let places = ["https://b.localhost:\(target.server.port)/x#", ""]
    let site = try PinnedSite { _ in
      HTTPResponse(
        status: 302, headers: places.map { HTTPField("Location", $0) },
        body: Array("stranger".utf8), delivery: .chunked(pieceBytes: 4096))
    }
    try target.server.replaceIdentity(site.identity)
    let (bytes, response) = try await site.transport.bytes(for: URLRequest(url: site.url()))
    var text = ""
    for try await chunk in bytes { text += String(decoding: chunk, as: UTF8.self) }
    #expect(text == "genuine")
    #expect(response.url?.host == "b.localhost")
  }
}
