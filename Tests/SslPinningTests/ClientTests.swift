import FaultLab
import Foundation
import FoundationNetworking
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A client and its registry")
struct ClientTests {
  private static let names = ["localhost", "a.localhost", "b.localhost", "127.0.0.1"]

  private let authority: CertificateAuthority
  private let identity: ServerIdentity
  private let server: LocalTLSServer
  private let registry: TestRegistry

  init() throws {
    authority = try CertificateAuthority.makeRoot(name: "Client test root")
    identity = try authority.issue(names: Self.names)
    server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    registry = try TestRegistry()
    try registry.publish([("localhost", identity)])
  }

  private func client() async throws -> SslPinningClient {
    // A steady clock that stands still: however busy the machine, it is all within one second.
    let clocks = Clocks(wall: Clocks.system.wall, steady: { 1000 }, longestRefresh: 60)
    return try await SslPinningClient(
      config: registry.config(trust: .anchors([authority.root.der])), clocks: clocks)
  }

  private func get(_ session: URLSession, host: String = "localhost", port: UInt16? = nil)
    async throws -> String
  {
    let url = try #require(URL(string: "https://\(host):\(port ?? server.port)/"))
    return String(decoding: try await session.data(from: url).0, as: UTF8.self)
  }

  private func refusal(
    _ client: SslPinningClient, _ session: URLSession, host: String = "localhost",
    port: UInt16? = nil
  ) async -> PinEvaluation? {
    do {
      _ = try await get(session, host: host, port: port)
      return nil
    } catch { return client.refusal(for: error) }
  }

  @Test("is served by a listed host, and refuses a man in the middle whose CA it trusts")
  func manInTheMiddle() async throws {
    let client = try await client()
    let session = client.createPinnedSession()
    #expect(try await get(session) == "hello")
    let attacker = try LocalTLSServer(identity: authority.issue(names: Self.names)) { _ in
      .text("read by the attacker")
    }
    let refused = try #require(await refusal(client, session, port: attacker.port))
    #expect(refused.rule == "leaf-pin")
    #expect(refused.registry?.payloadDigest == client.registryStamp.payloadDigest)
    #expect(refused.expectedLeaf.map(\.spki) == [try SPKIPin(certificateDER: identity.leaf.der)])
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.applicationBytesReceived == 0)
  }

  @Test("binds hosts to their own pins: another listed host's key is worth nothing")
  func boundToHost() async throws {
    let other = try authority.issue(names: Self.names)
    try registry.publish([("a.localhost", identity), ("b.localhost", other)])
    let client = try await client()
    let session = client.createPinnedSession()
    #expect(try await get(session, host: "a.localhost") == "hello")
    #expect(await refusal(client, session, host: "b.localhost")?.rule == "leaf-pin")
  }

  @Test("tells of a request that left unjudged, and not of one that was refused for it")
  func unjudged() async throws {
    let client = try await client()
    var events = client.events.makeAsyncIterator()
    for (reason, decision) in [
      ("refused", PinEvaluation.Decision.refuse), ("it resumed a TLS session", .accept),
    ] {
      client.transport.judge.record(
        PinEvaluation(host: "localhost", outcome: .unjudged(reason), decision: decision),
        of: ConnectionFacts())
    }
    while let event = await events.next() {
      guard case .unjudgedReuse(let told) = event else { continue }
      #expect(told.outcome == .unjudged("it resumed a TLS session"))
      return
    }
  }

  @Test("refuses unlisted hosts by default, and reaches them over the plain session only")
  func unlisted() async throws {
    let client = try await client()
    for (host, isListed) in [
      ("localhost", true), ("LOCALHOST.", true), ("127.0.0.1", false), ("a.localhost", false),
      ("", false),
    ] { #expect(client.lists(host: host) == isListed, "\(host)") }
    #expect(
      await refusal(client, client.createPinnedSession(), host: "127.0.0.1")?.outcome == .unlisted)
    // The plain session does not know the test CA: it fails as any session would.
    do {
      _ = try await get(client.createPlainSession(), host: "127.0.0.1")
      Issue.record("the plain session trusts a CA that the system does not know")
    } catch { #expect(client.refusal(for: error) == nil) }
  }

  @Test("follows an unannounced rotation: the first mismatch fetches the new pins")
  func rotation() async throws {
    let client = try await client()
    let session = client.createPinnedSession()
    #expect(try await get(session) == "hello")
    let next = try authority.issue(names: Self.names)
    try server.replaceIdentity(next, closingConnections: true)
    try registry.publish([("localhost", identity), ("localhost", next)])
    #expect(try await get(session) == "hello")
    #expect(registry.server.requests.count == 2)
    #expect(registry.server.requests.last?.header("Cache-Control") == "no-cache")
  }

  /// In a process of its own: tests beside it need the threads.
  @Test("follows a rotation while the app's own tasks block the threads that tasks share")
  func blockedThreads() async {
    await #expect(processExitsWith: .success) {
      let scene = try ClientTests()
      let session = try await scene.client().createPinnedSession()
      let next = try scene.authority.issue(names: Self.names)
      try scene.server.replaceIdentity(next)
      try scene.registry.publish([("localhost", scene.identity), ("localhost", next)])
      let url = try #require(URL(string: "https://localhost:\(scene.server.port)/"))
      // Each keeps a thread of those that tasks have until it is answered.
      func isServed() -> Bool {
        let (done, body) = (DispatchSemaphore(value: 0), Locked(""))
        session.dataTask(with: url) { data, _, _ in
          body.withLock { $0 = String(decoding: data ?? Data(), as: UTF8.self) }
          done.signal()
        }.resume()
        _ = done.wait(timeout: .now() + 30)
        return body.withLock { $0 } == "hello"
      }
      let served = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<20 { group.addTask { isServed() } }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      guard served == 20 else {
        print(served)
        exit(3)
      }
    }
  }

  @Test("asks the registry once for one attacked host, not once for each attempt")
  func limiter() async throws {
    let client = try await client()
    let session = client.createPinnedSession()
    let attacker = try LocalTLSServer(identity: authority.issue(names: Self.names)) { _ in
      .text("gotcha")
    }
    for _ in 0..<5 {
      #expect(await refusal(client, session, port: attacker.port)?.rule == "leaf-pin")
    }
    #expect(registry.server.requests.count == 2)
  }

  @Test("asks once more where the fetch under way was answered before the new key was published")
  func joinedTooEarly() async throws {
    let client = try await client()
    let session = client.createPinnedSession()
    // Holds back an answer that is old by the time it arrives.
    let old = try TestRegistry.document([
      .object([
        "domainName": .string("localhost"),
        "key": .string(try SPKIPin(certificateDER: identity.leaf.der).base64),
      ])
    ])
    registry.answer(HTTPResponse(body: old, delayMilliseconds: 500))
    let slow = Task { try await client.refresh() }
    #expect(await eventually { registry.server.requests.count == 2 })
    let next = try authority.issue(names: Self.names)
    try server.replaceIdentity(next)
    try registry.publish([("localhost", next)])
    #expect(try await get(session) == "hello")
    _ = try await slow.value
    #expect(registry.server.requests.count == 3)
  }

  @Test(
    "takes no \"unchanged\" after a refusal: a mirror whose tag never changes hides no rotation")
  func constantTag() async throws {
    var tag: String?
    func publish(_ identity: ServerIdentity) throws {
      let document = try TestRegistry.document([
        .object([
          "domainName": .string("localhost"),
          "key": .string(try SPKIPin(certificateDER: identity.leaf.der).base64),
        ])
      ])
      let first = tag ?? TestRegistry.tag(of: document)
      tag = first
      registry.answer(HTTPResponse(headers: [HTTPField("ETag", first)], body: document))
    }
    try publish(identity)
    let client = try await client()
    let session = client.createPinnedSession()
    #expect(try await get(session) == "hello")
    let next = try authority.issue(names: Self.names)
    try server.replaceIdentity(next, closingConnections: true)
    try publish(next)
    // The control: by itself it is told that nothing has changed.
    #expect(try await client.refresh() == false)
    #expect(try await get(session) == "hello")
  }

  @Test("makes sessions already handed out follow a refresh")
  func refresh() async throws {
    let client = try await client()
    let session = client.createPinnedSession()
    #expect(try await get(session) == "hello")
    #expect(try await client.refresh() == false)
    #expect(registry.server.requests.last?.header("If-None-Match") != nil)
    try registry.publish([("localhost", authority.issue(names: Self.names))])
    #expect(try await client.refresh() == true)
    #expect(await refusal(client, session)?.rule == "leaf-pin")
    #expect(server.requests.count == 1)
  }

  @Test("keeps the last good registry when a refresh brings a bad one")
  func badRefresh() async throws {
    let client = try await client()
    let session = client.createPinnedSession()
    for answer in [
      HTTPResponse(status: 500), HTTPResponse(body: Array("garbage".utf8)),
      HTTPResponse(body: try TestRegistry.document([], signedBy: TestRegistry.key.get())),
      HTTPResponse(body: try TestRegistry.document([], signedBy: TestRegistry.otherKey.get())),
    ] {
      registry.answer(answer)
      await #expect(throws: SslPinningError.self) { try await client.refresh() }
      #expect(try await get(session) == "hello")
    }
  }

  @Test("keeps the pins of a host that vanishes from the registry")
  func vanished() async throws {
    let client = try await client()
    try registry.publish([("other.localhost", identity)])
    _ = try await client.refresh()
    #expect(try await get(client.createPinnedSession()) == "hello")
    #expect(client.registryProblems.count == 1)
  }

  @Test("fetches a registry over https under the app's own anchors, and under no others")
  func httpsRegistry() async throws {
    let document = try TestRegistry.document([
      .object([
        "domainName": .string("localhost"),
        "key": .string(try SPKIPin(certificateDER: identity.leaf.der).base64),
      ])
    ])
    let secure = try LocalTLSServer(identity: authority.issue(names: Self.names)) { _ in
      HTTPResponse(body: document)
    }
    var config = try registry.config(trust: .anchors([authority.root.der]))
    config.endpointUrl = "https://localhost:\(secure.port)/test.json"
    let client = try await SslPinningClient(config: config)
    #expect(try await get(client.createPinnedSession()) == "hello")
    config.trust = .system
    await #expect(throws: SslPinningError.self) { try await SslPinningClient(config: config) }
    config.trust = .anchors([authority.root.der])
    config.endpointUrl = "https://other.localhost:\(secure.port)/test.json"
    await #expect(throws: SslPinningError.self) { try await SslPinningClient(config: config) }
  }
}
