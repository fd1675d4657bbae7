import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Making a client")
struct InitializeTests {
  private func entry(_ host: String, key: String) -> JSONValue {
    .object(["domainName": .string(host), "key": .string(key)])
  }

  private static let somePin = StrictBase64.encode([UInt8](repeating: 7, count: 32))

  private func failure(_ config: SslPinningConfig) async -> SslPinningError? {
    switch await SslPinningClient.initialize(config: config) {
    case .success: nil
    case .failure(let error): error
    }
  }

  @Test("succeeds with a verified registry, and the throwing twin does too")
  func success() async throws {
    let registry = try TestRegistry()
    registry.answer(
      HTTPResponse(body: try TestRegistry.document([entry("a.example", key: Self.somePin)])))
    #expect(await failure(try registry.config()) == nil)
    let client = try await SslPinningClient(config: registry.config())
    #expect(client.registryProblems.isEmpty)
    #expect(client.registryStamp.payloadDigest.utf8.count == 64)
  }

  @Test(
    "refuses an endpoint that is no https URL",
    arguments: [
      ("", SslPinningError.badURL("")),
      ("not a url", .badURL("not a url")),
      ("https://registry.example/x.json ", .badURL("https://registry.example/x.json ")),
      (" https://registry.example/x.json", .badURL(" https://registry.example/x.json")),
      ("https://registry.example/a b.json", .badURL("https://registry.example/a b.json")),
      ("https://registry.example/x.json\n", .badURL("https://registry.example/x.json\n")),
      ("/api/v1/x.json", .badURL("/api/v1/x.json")),
      ("ftp://registry.example/x.json", .badURL("ftp://registry.example/x.json")),
      ("file:///etc/passwd", .badURL("file:///etc/passwd")),
      ("https://user:secret@registry.example/x", .badURL("https://…@registry.example/x")),
      ("https://user:sec/ret@registry.example/x", .badURL("https://…@registry.example/x")),
      ("https://user:sec?ret@registry.example/x", .badURL("https://…")),
      ("user:secret@registry.example/x", .badURL("…@registry.example/x")),
      ("https:/user:secret@registry.example//x", .badURL("…@registry.example//x")),
      ("https:\\\\user:secret@registry.example/x", .badURL("…@registry.example/x")),
      ("http://registry.example/x.json", .clearTextURL("http://registry.example/x.json")),
      ("http://127.0.0.1.evil.example/x", .clearTextURL("http://127.0.0.1.evil.example/x")),
      ("http://localhost.evil.example/x", .clearTextURL("http://localhost.evil.example/x")),
    ])
  func urls(url: String, expected: SslPinningError) async throws {
    var config = try TestRegistry().config()
    config.endpointUrl = url
    #expect(await failure(config) == expected)
  }

  @Test("tells a registry that cannot be reached from one that answers badly")
  func unreachable() async throws {
    let registry = try TestRegistry()
    let config = try registry.config()
    #expect(await failure(config) == .httpStatus(404, url: registry.url))
    registry.answer(HTTPResponse(status: 500))
    #expect(await failure(config) == .httpStatus(500, url: registry.url))
    for (text, seconds) in [("120", 120.0), ("soon", nil)] as [(String, Double?)] {
      registry.answer(HTTPResponse(status: 503, headers: [HTTPField("Retry-After", text)]))
      #expect(await failure(config) == .httpStatus(503, retryAfter: seconds, url: registry.url))
    }
    registry.answer(HTTPResponse(delivery: .hangUp))
    guard case .unreachable = await failure(config) else {
      Issue.record("a hang-up is no answer")
      return
    }
    let closed = try ClosedPort()
    var nobody = config
    nobody.endpointUrl = "http://127.0.0.1:\(closed.port)/test.json"
    guard case .unreachable = await failure(nobody) else {
      Issue.record("a closed port is no answer")
      return
    }
  }

  @Test("refuses to follow a registry's redirect to clear text")
  func redirect() async throws {
    let registry = try TestRegistry()
    let other = try TestRegistry()
    other.answer(
      HTTPResponse(body: try TestRegistry.document([entry("a.example", key: Self.somePin)])))
    registry.answer(.redirect(to: other.url))
    guard case .unreachable = await failure(try registry.config()) else {
      Issue.record("the redirect was followed")
      return
    }
    #expect(other.server.requests.isEmpty)
  }

  @Test("gives up on a body without end, by its size, and on a dripping one, by the clock")
  func endless() async throws {
    let registry = try TestRegistry()
    var config = try registry.config()
    config.maximumRegistryBytes = 100_000
    registry.answer(
      HTTPResponse(body: [UInt8](repeating: 0x20, count: 4096), delivery: .endless()))
    #expect(await failure(config) == .tooLarge(limit: 100_000, url: config.endpointUrl))
    // No number ends the process.
    for limit in [Int.min, -1, 0] {
      config.maximumRegistryBytes = limit
      #expect(await failure(config) == .tooLarge(limit: limit, url: config.endpointUrl))
    }
    config.maximumRegistryBytes = 100_000
    config.fetchTimeout = 1
    registry.answer(
      HTTPResponse(
        body: [UInt8](repeating: 0x20, count: 4096),
        delivery: .drip(pieceBytes: 1, pauseMilliseconds: 50)))
    guard case .unreachable = await failure(config) else {
      Issue.record("the body ended")
      return
    }
    registry.answer(HTTPResponse(body: [1], delayMilliseconds: 20_000))
    guard case .unreachable = await failure(config) else {
      Issue.record("the silence ended")
      return
    }
  }

  @Test(
    "refuses an answer that is no registry",
    arguments: [
      "", "null", "[]", "{}", "<html></html>", #"{"payload":{}}"#,
      #"{"payload":{},"signature":7}"#, #"{"payload":{},"signature":"not base64"}"#,
      #"{"payload":[],"signature":"AAAA"}"#,
      #"{"payload":{},"payload":{},"signature":"AAAA"}"#,
      #"{"payload":{},"signature":"AAAA"} trailing"#,
    ])
  func malformed(answer: String) async throws {
    let registry = try TestRegistry()
    registry.answer(HTTPResponse(body: Array(answer.utf8)))
    guard case .malformed = await failure(try registry.config()) else {
      Issue.record("\(String(describing: await failure(try registry.config())))")
      return
    }
  }

  @Test(
    "refuses a signing key that is none",
    arguments: ["", "AAAA", "not base64!", "-----BEGIN PUBLIC KEY-----\nAAAA\n"])
  func signingKey(key: String) async throws {
    let registry = try TestRegistry()
    var config = try registry.config()
    config.signingKeyBase64 = key
    guard case .badSigningKey = await failure(config) else {
      Issue.record("\(key) was taken for a key")
      return
    }
    #expect(registry.server.requests.isEmpty)
  }

  @Test("takes the signing key as PEM, as base64 of PEM and as base64 of DER")
  func keyEncodings() async throws {
    let registry = try TestRegistry()
    registry.answer(
      HTTPResponse(body: try TestRegistry.document([entry("a.example", key: Self.somePin)])))
    let key = try TestRegistry.key.get()
    for text in [
      key.publicKeyPEM, StrictBase64.encode(Array(key.publicKeyPEM.utf8)),
      StrictBase64.encode(key.publicKeyDER),
    ] {
      var config = try registry.config()
      config.signingKeyBase64 = text
      #expect(await failure(config) == nil)
    }
  }

  @Test("refuses a registry under another key's signature, and a changed one")
  func signature() async throws {
    let registry = try TestRegistry()
    let config = try registry.config()
    let entries = [entry("a.example", key: Self.somePin)]
    registry.answer(
      HTTPResponse(
        body: try TestRegistry.document(entries, signedBy: TestRegistry.otherKey.get())))
    #expect(await failure(config) == .badSignature(url: config.endpointUrl))
    let good = try TestRegistry.document(entries)
    let text = String(decoding: good, as: UTF8.self)
    for (from, to) in [("a.example", "b.example"), (Self.somePin, "8" + Self.somePin.dropFirst())] {
      let tampered = text.replacingOccurrences(of: from, with: to)
      #expect(tampered != text)
      registry.answer(HTTPResponse(body: Array(tampered.utf8)))
      #expect(await failure(config) == .badSignature(url: config.endpointUrl))
    }
    // The control: spacing is not content.
    registry.answer(
      HTTPResponse(body: Array(text.replacingOccurrences(of: ",", with: " ,\n").utf8)))
    #expect(await failure(config) == nil)
  }

  @Test("refuses a signed registry without a usable key, and keeps the good entries of a mixed one")
  func noUsableKey() async throws {
    let registry = try TestRegistry()
    let config = try registry.config()
    let bad = [
      entry("a.example", key: "short"), entry("*.*.example", key: Self.somePin), .null,
      .object(["key": .string(Self.somePin)]),
    ]
    for entries in [[], bad] {
      registry.answer(HTTPResponse(body: try TestRegistry.document(entries)))
      #expect(await failure(config) == .noUsableKey(url: config.endpointUrl))
    }
    registry.answer(
      HTTPResponse(
        body: try TestRegistry.document(bad + [entry("b.example", key: Self.somePin)])))
    let client = try await SslPinningClient(config: config)
    #expect(client.registryProblems.count == 4)
  }

  @Test("that is cancelled is told so, and is no outage", arguments: [true, false])
  func cancelled(early: Bool) async throws {
    let asked = AsyncStream<Void>.makeStream()
    // Says nothing for longer than the test takes.
    let silent = try LocalHTTPServer { _ in
      asked.continuation.yield()
      return HTTPResponse(body: [1], delayMilliseconds: 60_000)
    }
    var config = try TestRegistry().config()
    config.endpointUrl = "http://127.0.0.1:\(silent.port)/test.json"
    config.fetchTimeout = 60
    let start = Task { [config] in
      if early { withUnsafeCurrentTask { $0?.cancel() } }
      return await failure(config)
    }
    if !early {
      for await _ in asked.stream { break }
      start.cancel()
    }
    #expect(await start.value == .cancelled)
  }

  @Test("tells which URL answered, and what to look at", arguments: [404, 200])
  func wrongPlace(status: Int) async throws {
    let registry = try TestRegistry()
    registry.answer(
      HTTPResponse(status: status, body: Array("<!doctype html><html>hello</html>".utf8)))
    var config = try registry.config()
    config.endpointUrl += "?key=secret"
    let error = try #require(await failure(config))
    #expect(error.localizedDescription.contains("\(registry.url)"), "\(error)")
    #expect(!"\(error)".contains("secret"))
    #expect(
      error.recoverySuggestion
        == (status == 404
          ? "is this the registry's URL?" : "this looks like HTML; is the address the right one?"))
  }

  @Test("refuses an anchor that is no certificate")
  func badAnchor() async throws {
    let registry = try TestRegistry()
    guard case .badAnchor = await failure(try registry.config(trust: .anchors([[1, 2, 3]]))) else {
      Issue.record("three bytes were taken for a certificate")
      return
    }
    #expect(registry.server.requests.isEmpty)
  }

  @Test("refuses settings that leave hosts without any check")
  func badConfiguration() async throws {
    let registry = try TestRegistry()
    registry.answer(
      HTTPResponse(body: try TestRegistry.document([entry("a.example", key: Self.somePin)])))
    var config = try registry.config(trust: .pinnedKeysOnly)
    config.unlistedHosts = .systemTrust
    #expect(await failure(config) == .badConfiguration(.unlistedHostsWithoutPath))
  }
}
