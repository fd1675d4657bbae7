import CanonicalJSON
import Foundation
import SslPinning
import SslPinningRules
import SslPinningTesting
import TestSupport
import Testing

@Suite("What a client starts with")
struct StartTests {
  private static let day: TimeInterval = 86400

  private let site: LiveSite
  private let directory: TemporaryDirectory

  init() throws {
    site = try LiveSite()
    directory = try TemporaryDirectory()
  }

  private func client(
    _ registry: ScriptedRegistry, bundled: Data? = nil,
    _ configure: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws -> SslPinningClient {
    try await site.client(registry) {
      $0.storage = .directory(directory.url)
      $0.bundledRegistry = bundled
      configure(&$0)
    }
  }

  /// Everything that a client has told so far.
  private func events(_ client: SslPinningClient, count: Int) async -> [PinningEvent] {
    var events: [PinningEvent] = []
    for await event in client.events {
      events.append(event)
      if events.count == count { break }
    }
    return events
  }

  @Test("a first start asks the network and says so; one soon after starts from what was stored")
  func cache() async throws {
    let registry = try site.registry()
    let first = try await client(registry)
    #expect(first.registryStatus.origin == .network)
    #expect(first.registryStatus.age == 0)
    #expect(registry.requests == 1)
    site.clock.advance(by: 3599)
    registry.answer(.unreachable)
    let second = try await client(registry)
    #expect(second.registryStatus.origin == .cache)
    #expect(second.registryStatus.age == 3599)
    #expect(registry.requests == 1)
    #expect(second.registryStamp.version == .init(epoch: 0, version: 1))
    #expect(try await site.refusal(second) == nil)
  }

  @Test("a stored registry that is older than the interval is asked about first")
  func olderCache() async throws {
    let registry = try site.registry()
    // Its last task may not have ended when the clock moves; it must not be due then.
    _ = try await client(registry) { $0.refreshInterval = 86400 }
    site.clock.advance(by: 3600)
    try registry.publish(["localhost": [site.pin]], at: site.clock.now)
    let later = try await client(registry)
    #expect(registry.requests == 2)
    #expect(later.registryStatus.origin == .network)
    #expect(later.registryStamp.version?.version == 2)
  }

  @Test(
    "a registry that is down, or answers garbage, leaves the stored one in force for 80 days",
    arguments: [
      .unreachable, .status(503, retryAfter: 60), .document(Data()),
      .document(Data("<html>".utf8)),
    ] as [ScriptedRegistry.Answer])
  func down(answer: ScriptedRegistry.Answer) async throws {
    let registry = try site.registry()
    _ = try await client(registry)
    site.clock.advance(by: 80 * Self.day)
    registry.answer(answer)
    let later = try await client(registry)
    #expect(later.registryStatus.origin == .cache)
    #expect(later.registryStatus.isStale)
    #expect("\(later.registryStatus)".contains(" (stale), expires "))
    let told = await events(later, count: 2)
    guard case .registryInForce = told[0], case .refreshFailed(_, consecutive: 1) = told[1] else {
      Issue.record("\(told)")
      return
    }
  }

  @Test("without a network, a store and a bundle there is no client")
  func nothing() async throws {
    let registry = try site.registry()
    registry.answer(.unreachable)
    await #expect(
      throws:
        SslPinningError.unreachable(
          "the test took the network away", url: "https://registry.test/test.json")
    ) {
      try await client(registry)
    }
  }

  @Test("a bundled registry stands in on a first start without a network")
  func bundle() async throws {
    let registry = try site.registry()
    let bundled = registry.document
    registry.answer(.unreachable)
    site.clock.advance(by: 8 * Self.day)
    let client = try await client(registry, bundled: bundled)
    #expect(client.registryStatus.origin == .bundle)
    // Nobody confirmed it since it was made.
    #expect(client.registryStatus.age == 8 * Self.day)
    #expect(client.registryStatus.isStale)
    #expect(registry.requests == 1)
  }

  @Test("of a stored and a bundled registry the higher version wins, whichever it is")
  func cacheAndBundle() async throws {
    let registry = try site.registry()
    let older = registry.document
    try registry.publish(["localhost": [site.pin]], at: site.clock.now)
    _ = try await client(registry)
    registry.answer(.unreachable)
    #expect(try await client(registry, bundled: older).registryStatus.origin == .cache)
    registry.answer(.published)
    try registry.publish(["localhost": [site.pin, LiveSite.otherPin]], at: site.clock.now)
    registry.answer(.unreachable)
    let updated = try await client(registry, bundled: registry.document)
    #expect(updated.registryStatus.origin == .bundle)
    #expect(updated.registryStamp.version?.version == 3)
  }

  @Test("a bundle with a version is stored at once: a start without it believes nothing older")
  func storedBundle() async throws {
    let registry = try site.registry()
    let older = registry.document
    for version in [2, 3] as [Int64] {
      try registry.publish(["localhost": [site.pin]], at: site.clock.now)
      registry.answer(.unreachable)
      // The second start finds it in the store, where nobody has confirmed it either.
      for _ in 0..<2 {
        let shipping = try await client(registry, bundled: registry.document)
        #expect(shipping.registryStatus.origin == .bundle)
      }
      registry.answer(.document(older))
      let without = try await client(registry)
      await #expect(throws: SslPinningError.self) { try await without.refresh() }
      #expect(without.registryStamp.version?.version == version)
      registry.answer(.published)
    }
  }

  @Test("of bundles without a version, the app's own is in force until its registry answers")
  func bundlesInFormat1() async throws {
    let registry = try TestRegistry()
    var config = try registry.config()
    config.storage = .directory(directory.url)
    for host in ["a.example", "b.example"] {
      let bundle = try TestRegistry.document([
        .object(["domainName": .string(host), "key": .string(LiveSite.otherPin)])
      ])
      config.bundledRegistry = Data(bundle)
      let client = try await SslPinningClient(config: config)
      #expect(client.registryStatus.origin == .bundle)
    }
  }

  @Test("nothing older than the bundle is believed, nor anything without a statement")
  func floor() async throws {
    let registry = try site.registry()
    let older = registry.document
    try registry.publish(["localhost": [site.pin]], at: site.clock.now)
    let bundled = registry.document
    let fresh = try await client(registry, bundled: bundled) { $0.storage = .none }
    let stripped = Data(#"{"payload":{"keys":[]},"signature":"AAAA"}"#.utf8)
    for (served, reason) in [
      (
        older,
        RegistryError.rolledBack(
          to: .init(epoch: 0, version: 1), from: .init(epoch: 0, version: 2))
      ),
      (stripped, .statementStripped),
    ] {
      registry.answer(.document(served))
      let error = await #expect(throws: SslPinningError.self) { try await fresh.refresh() }
      guard case .registryRefused(let said, let url?) = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect(said == reason && !url.isEmpty)
    }
  }

  @Test("a bundled registry that cannot be believed is an error of the app")
  func badBundle() async throws {
    let registry = try site.registry()
    let text = String(decoding: registry.document, as: UTF8.self)
    let tampered = text.replacingOccurrences(of: "localhost", with: "elsewhere")
    #expect(tampered != text)
    do {
      _ = try await client(registry, bundled: Data(tampered.utf8))
      Issue.record("believed")
    } catch SslPinningError.badBundledRegistry {}
  }

  @Test("a stored registry that somebody changed is not believed, and the start says so")
  func tamperedCache() async throws {
    let registry = try site.registry()
    _ = try await client(registry)
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path())
    let name = try #require(names.first { $0.hasSuffix(".json") })
    let text = try String(contentsOf: directory.file(name), encoding: .utf8)
    let tampered = text.replacingOccurrences(of: "localhost", with: "elsewhere")
    #expect(tampered != text)
    try Data(tampered.utf8).write(to: directory.file(name))
    let next = try await client(registry)
    #expect(next.registryStatus.origin == .network)
    guard case .storedRegistryRefused = await events(next, count: 1).first else {
      Issue.record("the start says nothing")
      return
    }
    // And what it fetched is stored in its place.
    registry.answer(.unreachable)
    #expect(try await client(registry).registryStatus.origin == .cache)
  }

  @Test("a rolled back registry is refused after a restart too")
  func rollbackAfterRestart() async throws {
    let registry = try site.registry()
    let older = registry.document
    try registry.publish(["localhost": [site.pin]], at: site.clock.now)
    _ = try await client(registry)
    site.clock.advance(by: 7200)
    registry.answer(.document(older))
    let restarted = try await client(registry)
    #expect(restarted.registryStatus.origin == .cache)
    #expect(restarted.registryStamp.version?.version == 2)
  }

  @Test("what cannot be stored is told, and pins all the same")
  func unwritable() async throws {
    let file = directory.file("a file")
    try Data([1]).write(to: file)
    let registry = try site.registry()
    let client = try await client(registry) {
      $0.storage = .directory(file)
    }
    #expect(try await site.refusal(client) == nil)
    let told = await events(client, count: 2)
    guard case .registryNotStored = told[1] else {
      Issue.record("\(told)")
      return
    }
  }

  @Test("two processes share what they know, and neither rolls the other back")
  func twoProcesses() async throws {
    let registry = try site.registry()
    let older = registry.document
    let first = try await client(registry)
    let second = try await client(registry)
    try registry.publish(["localhost": [LiveSite.otherPin]], at: site.clock.now)
    #expect(try await first.refresh())
    // The second is fed the old one; storing it, it meets the newer.
    registry.answer(.document(older))
    _ = try await second.refresh()
    #expect(second.registryStamp.version?.version == 2)
    #expect(try await site.refusal(second)?.rule == "leaf-pin")
  }

  @Test("what another process has learned counts at once, even where both have the newest version")
  func otherProcessKnowsMore() async throws {
    let registry = try site.registry()
    let first = try await client(registry)
    let second = try await client(registry)
    try registry.publish(
      ["localhost": [site.pin], "b.localhost": [LiveSite.otherPin]], at: site.clock.now)
    try await first.refresh()
    try registry.publish(["localhost": [site.pin]], at: site.clock.now)
    // The second has never seen the version that listed the other host.
    try await second.refresh()
    #expect(second.registryStatus.origin == .network)
    #expect(try await site.refusal(second, host: "b.localhost")?.rule == "leaf-pin")
  }

  @Test("a clock that ran ahead while a registry was stored keeps no later start from asking")
  func confirmedInTheFuture() async throws {
    let registry = try site.registry()
    let start = site.clock.now
    site.clock.set(start + 60 * Self.day)
    _ = try await client(registry)
    #expect(registry.requests == 1)
    site.clock.set(start + Self.day)
    try registry.publish(["localhost": [site.pin]], at: site.clock.now)
    let next = try await client(registry)
    #expect(registry.requests == 2)
    #expect(next.registryStamp.version?.version == 2)
    // Asked once, it is young again.
    _ = try await client(registry)
    #expect(registry.requests == 2)
  }

  @Test("a device that starts in 1970 asks first, and says stale while nobody answers")
  func withoutTime() async throws {
    let registry = try site.registry()
    _ = try await client(registry)
    site.clock.set(Date(timeIntervalSince1970: 30))
    registry.answer(.unreachable)
    let offline = try await client(registry)
    #expect(registry.requests == 2)
    #expect(offline.registryStatus.isStale)
    registry.answer(.published)
    try registry.publish(["localhost": [site.pin]], at: site.clock.now.addingTimeInterval(Self.day))
    let next = try await client(registry)
    #expect(next.registryStatus.origin == .network && !next.registryStatus.isStale)
  }

  @Test("a device whose clock begins anew with each start asks with each")
  func clockBeginsAnew() async throws {
    let registry = try site.registry()
    let (issued, begin) = (site.clock.now, site.clock.now - 400 * Self.day)
    site.clock.set(begin)
    _ = try await client(registry)
    try registry.publish(
      ["localhost": [site.pin]], denied: [site.pin], at: issued + Self.day)
    site.clock.set(begin + 30)
    let next = try await client(registry)
    #expect(registry.requests == 2)
    #expect(next.registryStatus.origin == .network && !next.registryStatus.isStale)
    // The session is judged by the statement's time: the clock says that its certificate is not valid yet.
    #expect(try await site.refusal(next)?.rule == "denied-key")
    registry.answer(.unreachable)
    site.clock.set(begin + 60)
    #expect(try await client(registry).registryStatus.isStale)
  }
}
