import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Parts of a document over HTTP") struct HTTPPartTests {
  private static let path = HTTPAnswerTests.path
  private static let file = "www.example.com.json"

  private func object(_ body: [UInt8]) throws -> JSONObject {
    try #require(try JSONValue(parsing: body).objectValue)
  }

  @Test("the statement comes with its signatures, its own tag and the age limit of the document")
  func statement() async throws {
    let server = try await HTTPAnswerTests.publishing()
    let answer = try await server.get(Self.path + "/statement?epoch=0")
    #expect(answer.status == 200)
    #expect(answer.headers["content-type"] == "application/json")
    #expect(answer.headers["cache-control"] == "public, max-age=60")
    let part = try object(answer.body)
    let whole = try object(try await server.get(Self.path).body)
    #expect(part.keys == ["keySets", "statement", "statementSignatures"])
    #expect(part["statement"] == whole["statement"])
    #expect(part["statementSignatures"] == whole["statementSignatures"])
    #expect(part["keySets"] == .array([]))
    let tag = try #require(answer.headers["etag"])
    #expect(tag == EntityTag.of(answer.body))
    let again = try await server.get(
      Self.path + "/statement?epoch=0", headers: ["If-None-Match": tag])
    #expect(again.status == 304 && again.body.isEmpty && again.headers["etag"] == tag)
    // The document's tag is another one.
    let other = try #require(server.service.currentDocument(Self.file)).entityTag
    let changed = try await server.get(
      Self.path + "/statement", headers: ["If-None-Match": other])
    #expect(changed.status == 200)
    let head = try await RawConnection.ask(
      try #require(server.service.address),
      "HEAD \(Self.path)/statement HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(head.hasPrefix("HTTP/1.1 200 ") && head.hasSuffix("\r\n\r\n"))
    await server.service.stop()
  }

  @Test("the payload stands at its digest, for ever; the one before it too, and no other")
  func payload() async throws {
    let server = try await HTTPAnswerTests.publishing()
    func payload() async throws -> (path: String, bytes: [UInt8]) {
      let whole = try object(try await server.get(Self.path).body)
      let bytes = try #require(whole["payload"]).canonicalBytes
      let hex = Digest.sha256(bytes).map { String(format: "%02x", $0) }.joined()
      return (Self.path + "/payload/" + hex, bytes)
    }
    var seen = [try await payload()]
    for key in [2, 3] as [UInt8] {
      server.observer.show(.accepted(pin(key)), at: "www.example.com")
      await server.service.probe("www.example.com")
      seen.append(try await payload())
    }
    for (known, status) in zip(seen, [404, 200, 200]) {
      let answer = try await server.get(known.path)
      #expect(answer.status == status)
      #expect((answer.body == known.bytes) == (status == 200))
      #expect(
        answer.headers["cache-control"]
          == (status == 200 ? "public, max-age=31536000, immutable" : "no-store"))
    }
    let tag = try #require(try await server.get(seen[2].path).headers["etag"])
    #expect(try await server.get(seen[2].path, headers: ["If-None-Match": tag]).status == 304)
    await server.service.stop()
  }

  @Test(
    "what is no part is not there",
    arguments: [
      "/", "/statement/", "/statement/x", "/payload", "/payload/", "/payload/00", "/changes",
      "/Statement", "/payload/" + String(repeating: "A", count: 64),
    ])
  func noPart(_ rest: String) async throws {
    let server = try await HTTPAnswerTests.publishing()
    let answer = try await server.get(Self.path + rest)
    #expect(answer.status == 404 && answer.headers["cache-control"] == "no-store")
    #expect(try await server.get("/api/v1/other.json/statement").status == 404)
    await server.service.stop()
  }

  @Test("a document that waits for its first key has no part either, for now")
  func waiting() async throws {
    let server = try ScriptedService()
    server.observer.show(.refused(reason: "self-signed", presented: pin(9)), at: "www.example.com")
    try await server.start()
    for part in ["/statement", "/payload/" + String(repeating: "0", count: 64)] {
      #expect(try await server.get(Self.path + part).status == 503)
    }
    await server.service.stop()
  }

  @Test("key sets that a client believes are left out, and none where it says no number")
  func keySets() throws {
    let key = try TrustSigningKey.generate(.ed25519)
    let role = try KeyRole(keys: [key.roleKey], threshold: 1)
    var list = KeySetList(registry: Self.file)
    for _ in 0..<3 {
      try list.append(root: role, online: role)
      try list.sign(with: key)
    }
    let document = RegistryDocument(
      registry: Self.file, payload: ["keys": .array([])],
      terms: .init(number: .init(epoch: 3, version: 7), issued: 1, expires: 2),
      keySets: list.sets.map(\.json))
    func parts(_ change: (inout JSONObject) -> Void = { _ in }) throws -> PublishedParts {
      var json = try document.signed(format1Key: nil, onlineKeys: [key])
      change(&json)
      let published = PublishedDocument(
        file: Self.file, bytes: JSONValue.object(json).canonicalBytes, document: json, signed: 1)
      return PublishedParts(published, whole: PublishedParts.whole(of: published), before: nil)
    }
    for (epoch, count) in [(0, 3), (1, 2), (2, 1), (3, 0), (4, 0), (.max, 0), (-1, 3)]
      as [(Int64, Int)]
    {
      let answer = try #require(try parts().statement(since: epoch))
      let part = try object(answer.response(ifNoneMatch: nil).body)
      #expect(part["keySets"] == .array(document.keySets.suffix(count)), "\(epoch)")
    }
    #expect(try parts { $0["statement"] = nil }.statement(since: 0) == nil)
    #expect(
      try parts { $0["statement"] = .object(["retired": .bool(true)]) }.statement(since: 0) == nil)
  }

  @Test(
    "an epoch that is no number leaves nothing out",
    arguments: ["", "?epoch", "?epoch=x", "?epoch=-1", "?epoch=99999999999999999999", "?epoch=7"])
  func unreadableEpoch(_ query: String) async throws {
    let server = try await HTTPAnswerTests.publishing()
    let answer = try await server.get(Self.path + "/statement" + query)
    #expect(answer.status == 200)
    #expect(try object(answer.body)["keySets"] == .array([]))
    await server.service.stop()
  }
}
