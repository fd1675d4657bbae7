import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A registry on a loopback port whose answer the test sets, signed with a key of its own.
final class TestRegistry: Sendable {
  /// Made once: a new RSA key takes a while.
  static let key = Result { try SigningKey.generate(bits: 2048) }
  static let otherKey = Result { try SigningKey.generate(bits: 2048) }

  let server: LocalHTTPServer
  private let answer: Locked<HTTPResponse>

  init() throws {
    let answer = Locked(HTTPResponse(status: 404))
    self.answer = answer
    server = try LocalHTTPServer { request in
      let response = answer.withLock { $0 }
      let etag = response.headers.first { $0.name == "ETag" }?.value
      if let etag, request.header("If-None-Match") == etag {
        return HTTPResponse(status: 304, headers: response.headers)
      }
      return response
    }
  }

  var url: String { "http://127.0.0.1:\(server.port)/api/v1/test.json" }

  func config(trust: TrustMode = .system) throws -> SslPinningConfig {
    SslPinningConfig(
      endpointUrl: url, signingKeyBase64: try Self.key.get().publicKeyPEM, trust: trust,
      storage: .none)
  }

  /// Answers with these bytes from now on.
  func answer(_ response: HTTPResponse) { answer.withLock { $0 = response } }

  /// Publishes a signed document that pins each host to the identity's key.
  func publish(_ pins: [(String, ServerIdentity)]) throws {
    let document = try Self.document(
      pins.map { host, identity in
        .object([
          "domainName": .string(host),
          "key": .string(try SPKIPin(certificateDER: identity.leaf.der).base64),
        ])
      })
    answer(HTTPResponse(headers: [HTTPField("ETag", Self.tag(of: document))], body: document))
  }

  /// The tag that a registry server gives a document.
  static func tag(of document: [UInt8]) -> String {
    "\"\(StrictBase64.encode(Digest.sha256(document)))\""
  }

  /// A document with these entries, signed by `key`.
  static func document(
    _ keys: [JSONValue], signedBy key: SigningKey? = nil
  ) throws -> [UInt8] {
    let payload = JSONValue.object(["keys": .array(keys)])
    let signature = try (key ?? Self.key.get()).sign(payload.canonicalBytes)
    return JSONValue.object([
      "payload": payload, "signature": .string(StrictBase64.encode(signature)),
    ]).canonicalBytes
  }
}
