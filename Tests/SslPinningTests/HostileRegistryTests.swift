import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("A hostile registry server")
struct HostileRegistryTests {
  private static func document() throws -> [UInt8] {
    try TestRegistry.document([
      .object([
        "domainName": .string("localhost"), "key": .string(String(repeating: "A", count: 43) + "="),
      ])
    ])
  }

  enum Answer: CaseIterable, Sendable {
    case notModified, noContent, partial, transformed
    case gzipped, marked, trailed, cutOff, endless, hungUp, manyHeaders, trailer
    case toHTTP, toFile, toItself

    func response(_ document: [UInt8]) -> HTTPResponse {
      switch self {
      case .notModified: HTTPResponse(status: 304, headers: [HTTPField("ETag", "\"a\"")])
      case .noContent: HTTPResponse(status: 204)
      case .partial: HTTPResponse(status: 206, body: document)
      case .transformed: HTTPResponse(status: 203, body: document)
      case .gzipped:
        HTTPResponse(
          headers: [HTTPField("Content-Encoding", "gzip")],
          body: [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3] + [UInt8](repeating: 0, count: 100_000))
      case .marked: HTTPResponse(body: [0xef, 0xbb, 0xbf] + document)
      case .trailed: HTTPResponse(body: document + Array("{}".utf8))
      case .cutOff: HTTPResponse(body: document, delivery: .cutOff(afterBytes: document.count - 1))
      case .endless:
        HTTPResponse(body: [UInt8](repeating: 0x20, count: 100_000), delivery: .endless())
      case .hungUp: HTTPResponse(delivery: .hangUp)
      case .manyHeaders:
        HTTPResponse(
          body: Array(
            ("HTTP/1.1 200 OK\r\n" + String(repeating: "X-A: b\r\n", count: 100_000)).utf8),
          delivery: .verbatim)
      case .trailer:
        HTTPResponse(
          body: Array(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n".utf8)
            + Array("HTTP/1.1 200 OK: \r\nETag: \"t\"\r\n\r\n".utf8), delivery: .verbatim)
      case .toHTTP: .redirect(to: "http://localhost/r.json")
      case .toFile: .redirect(to: "file:///etc/hostname")
      case .toItself: .redirect(to: "/")
      }
    }
  }

  @Test("makes no client", arguments: Answer.allCases)
  func firstAnswer(_ answer: Answer) async throws {
    let registry = try TestRegistry()
    registry.answer(answer.response(try Self.document()))
    await #expect(throws: SslPinningError.self) {
      try await SslPinningClient(config: registry.config())
    }
    // The control: the document itself is good.
    registry.answer(HTTPResponse(body: try Self.document()))
    _ = try await SslPinningClient(config: registry.config())
  }

  @Test(
    "cannot say \"unchanged\" to a question that was not asked: such a tag cannot be sent back",
    arguments: ["", "\"a\u{1}b\"", "\"a\tb\""])
  func unsendableTag(tag: String) async throws {
    let document = try Self.document()
    let registry = try TestRegistry()
    let answers: [HTTPResponse] = [
      HTTPResponse(headers: [HTTPField("ETag", tag)], body: document), HTTPResponse(status: 304),
    ]
    registry.answer(answers.first ?? HTTPResponse())
    let client = try await SslPinningClient(config: registry.config())
    registry.answer(answers.last ?? HTTPResponse())
    await #expect(throws: SslPinningError.httpStatus(304, url: registry.url)) {
      try await client.refresh()
    }
    #expect(registry.server.requests.last?.header("If-None-Match") == nil)
  }

  @Test("cannot send a redirect's own body without end")
  func endlessRedirect() async throws {
    let registry = try TestRegistry()
    registry.answer(
      HTTPResponse(
        status: 302, headers: [HTTPField("Location", "https://localhost/r.json")],
        body: [UInt8](repeating: 0x20, count: 100_000), delivery: .endless()))
    var config = try registry.config()
    config.maximumRegistryBytes = 1 << 20
    await #expect(throws: SslPinningError.tooLarge(limit: 1 << 20, url: registry.url)) {
      try await SslPinningClient(config: config)
    }
  }

  @Test(
    "cannot have an old document called unchanged after it has left: a tag that is not the document's digest is not sent back"
  )
  func borrowedTag() async throws {
    let key = JSONValue.string(String(repeating: "A", count: 43) + "=")
    let next = try TestRegistry.document([
      .object(["domainName": .string("a.localhost"), "key": key])
    ])
    let registry = try TestRegistry()
    for tag in [TestRegistry.tag(of: next), "\"${jndi:ldap://x}\""] {
      registry.answer(HTTPResponse(headers: [HTTPField("ETag", tag)], body: try Self.document()))
      let client = try await SslPinningClient(config: registry.config())
      registry.answer(
        HTTPResponse(headers: [HTTPField("ETag", TestRegistry.tag(of: next))], body: next))
      #expect(try await client.refresh())
      #expect(registry.server.requests.last?.header("If-None-Match") == nil)
      // The control: this one is the document's own.
      #expect(try await client.refresh() == false)
      #expect(
        registry.server.requests.last?.header("If-None-Match") == TestRegistry.tag(of: next))
    }
  }

  @Test(
    "is not asked in clear text by a name that a resolver may send elsewhere",
    arguments: [
      "http://localhost./r.json", "http://a.localhost./r.json", "http://localhost%2e/r.json",
      "http://localhost.example/r.json", "http://127.0.0.1.example/r.json",
    ])
  func clearText(url: String) async throws {
    var config = try TestRegistry().config()
    config.endpointUrl = url
    await #expect(throws: SslPinningError.clearTextURL(url)) {
      try await SslPinningClient(config: config)
    }
  }
}
