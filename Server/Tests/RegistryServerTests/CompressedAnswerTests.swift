import Foundation
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Compressed documents") struct CompressedAnswerTests {
  private static let body = [UInt8](String(repeating: "{\"a\":1}", count: 100).utf8)
  private static let answer = CachedAnswer(body, entityTag: "\"t\"", lifetime: "public, max-age=60")

  private static func header(_ name: String, of response: HTTPResponse) -> String? {
    response.headers.first { $0.name == name }?.value
  }

  @Test(
    "go to who takes them, with a tag of their own",
    arguments: [
      (nil, false), ("", false), ("identity", false), ("br", false), ("gzip;q=0", false),
      ("gzip", true), ("gzip, deflate, br", true), ("br, gzip;q=0.1", true), ("GZIP", true),
    ] as [(String?, Bool)])
  func accepted(accept: String?, isCompressed: Bool) throws {
    let response = Self.answer.response(ifNoneMatch: nil, acceptEncoding: accept)
    #expect(Self.header("Content-Encoding", of: response) == (isCompressed ? "gzip" : nil))
    #expect(Self.header("ETag", of: response) == (isCompressed ? "\"t-gzip\"" : "\"t\""))
    #expect(Self.header("Vary", of: response) == "Accept-Encoding")
    #expect((response.body == Self.body) == !isCompressed)
    if isCompressed { #expect(response.body == Gzip.compressed(Self.body)) }
  }

  @Test(
    "a tag of either form says that the client has the document",
    arguments: [
      ("\"t\"", nil, 304, "\"t\""), ("\"t\"", "gzip", 304, "\"t\""),
      ("\"t-gzip\"", "gzip", 304, "\"t-gzip\""), ("\"t-gzip\"", nil, 304, "\"t-gzip\""),
      ("*", "gzip", 304, "\"t-gzip\""), ("\"t-br\"", "gzip", 200, "\"t-gzip\""),
      ("\"x\"", nil, 200, "\"t\""),
    ] as [(String, String?, UInt32, String)])
  func conditions(condition: String, accept: String?, status: UInt32, tag: String) {
    let response = Self.answer.response(ifNoneMatch: condition, acceptEncoding: accept)
    #expect(response.status == status)
    #expect(Self.header("ETag", of: response) == tag)
  }

  @Test(
    "a header that goes on and on is not read, and one as long as caches send it is",
    arguments: [(300, 200), (200, 304)] as [(Int, UInt32)])
  func endless(count: Int, status: UInt32) {
    let response = Self.answer.response(
      ifNoneMatch: String(repeating: "\"a\",", count: count) + "\"t\"",
      acceptEncoding: String(repeating: "a,", count: count) + "gzip")
    #expect(response.status == status)
    #expect(Self.header("ETag", of: response) == "\"t\"")
    let tagged = Self.answer.response(
      ifNoneMatch: nil, acceptEncoding: String(repeating: "a,", count: count) + "gzip")
    #expect(Self.header("Content-Encoding", of: tagged) == (count == 200 ? "gzip" : nil))
  }

  @Test("what does not get smaller stays as it is")
  func small() {
    let answer = CachedAnswer([1, 2, 3], entityTag: "\"t\"", lifetime: "no-cache")
    let response = answer.response(ifNoneMatch: nil, acceptEncoding: "gzip")
    #expect(Self.header("Content-Encoding", of: response) == nil)
    #expect(response.body == [1, 2, 3])
  }

  @Test("a document and its parts are smaller on the wire, and the same to who reads them")
  func served() async throws {
    let server = try await HTTPAnswerTests.publishing()
    for path in [HTTPAnswerTests.path, HTTPAnswerTests.path + "/statement"] {
      let plain = try await server.get(path)
      // Foundation takes gzip and reads it.
      let read = try await server.get(path, headers: ["Accept-Encoding": "gzip"])
      #expect(plain.status == 200 && read.status == 200)
      let wire = try await RawConnection.ask(
        try #require(server.service.address),
        "HEAD \(path) HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
      #expect(wire.contains("Content-Encoding: gzip\r\n"))
      let length = wire.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
        .flatMap { Int($0.dropFirst(16)) }
      #expect(try #require(length) < plain.body.count)
    }
    await server.service.stop()
  }
}
