import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TestSupport
import Testing

@Suite("A client while time passes")
struct LiveRegistryTests {
  private static let day: TimeInterval = 86400

  private let site: LiveSite

  init() throws { site = try LiveSite() }

  @Test("refreshes by itself once per interval, and follows what it finds")
  func background() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry)
    let session = client.createPinnedSession()
    #expect(try await site.refusal(client, session) == nil)
    #expect(await eventually { site.clock.waits == 1 })
    try registry.publish(["localhost": [LiveSite.otherPin]], at: site.clock.now)
    site.clock.advance(by: 3599)
    #expect(registry.requests == 1)
    site.clock.advance(by: 1)
    #expect(await eventually { client.registryStamp.version?.version == 2 })
    #expect(registry.requests == 2)
    // The kept connection was accepted under the old pins.
    #expect(try await site.refusal(client, session)?.rule == "leaf-pin")
    #expect(site.server.requests.count == 1)
  }

  @Test(
    "has its second verdict waited for by a condition that looks at all of them",
    .timeLimit(.minutes(1)))
  func secondVerdict() async throws {
    let registry = try ScriptedRegistry(["localhost": [LiveSite.otherPin]], at: site.clock.now)
    let client = try await site.client(registry)
    let verdicts = VerdictRecorder(client)
    let second = Task { await verdicts.first(timeout: 30) { _ in verdicts.all.count >= 2 } }
    for _ in 0..<2 { #expect(try await site.refusal(client)?.rule == "leaf-pin") }
    #expect(await second.value?.rule == "leaf-pin")
  }

  @Test("tells of a mismatch for which the registry had nothing newer", .timeLimit(.minutes(2)))
  func confirmed() async throws {
    let registry = try ScriptedRegistry(["localhost": [LiveSite.otherPin]], at: site.clock.now)
    let client = try await site.client(registry)
    #expect(try await site.refusal(client)?.rule == "leaf-pin")
    #expect(registry.requests == 2)
    for await event in client.events {
      guard case .registryConfirmed(let status) = event else { continue }
      #expect("\(status)".hasPrefix("registry from network, version 0.1, confirmed 2"))
      break
    }
  }

  @Test("tells once that two statements of one number are signed", .timeLimit(.minutes(2)))
  func forked() async throws {
    let registry = try site.registry()
    let thief = try ScriptedRegistry(["localhost": [LiveSite.otherPin]], at: site.clock.now)
    let client = try await site.client(registry)
    registry.answer(.document(thief.document))
    for _ in 0..<2 { await #expect(throws: SslPinningError.self) { try await client.refresh() } }
    registry.answer(.published)
    try await client.refresh()
    var told: [RegistryFork] = []
    for await event in client.events {
      if case .registryForked(let fork) = event { told.append(fork) }
      if case .registryConfirmed = event { break }
    }
    #expect(told.map(\.believed.number) == [.init(epoch: 0, version: 1)])
    #expect(told.map(\.named.number) == [.init(epoch: 0, version: 1)])
    #expect(client.registryStamp.fork == told.first)
    #expect(try await site.refusal(client) == nil)
  }

  @Test("asks later and later while the registry fails, and not before the time it names")
  func backOff() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry)
    #expect(await eventually { site.clock.waits == 1 })
    registry.answer(.status(503, retryAfter: 500))
    site.clock.advance(by: 3600)
    #expect(await eventually { registry.requests == 2 && site.clock.waits == 1 })
    site.clock.advance(by: 499)
    #expect(site.clock.waits == 1)
    #expect(registry.requests == 2)
    registry.answer(.unreachable)
    site.clock.advance(by: 1)
    #expect(await eventually { registry.requests == 3 && site.clock.waits == 1 })
    // Twice failed: a minute, three quarters of it with the clock's middling chance.
    registry.answer(.published)
    site.clock.advance(by: 45)
    #expect(await eventually { registry.requests == 4 && site.clock.waits == 1 })
    #expect(client.registryStatus.age == 0)
  }

  @Test("ends its refreshes with the client")
  func end() async throws {
    let registry = try site.registry()
    var client: SslPinningClient? = try await site.client(registry)
    #expect(client != nil)
    #expect(await eventually { site.clock.waits == 1 })
    client = nil
    #expect(await eventually { site.clock.waits == 0 })
  }

  @Test("a host that the registry has come to list is reached at the first request")
  func newHost() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry)
    try registry.publish(
      ["localhost": [site.pin], "a.localhost": [site.pin]], at: site.clock.now)
    #expect(try await site.refusal(client, host: "a.localhost") == nil)
    #expect(registry.requests == 2)
    // Whatever is not listed asks once in 10 seconds, all hosts together, and holds up no rotation.
    site.clock.advance(by: 10)
    for host in ["b.localhost", "b.localhost"] {
      #expect(try await site.refusal(client, host: host)?.rule == "unlisted-host")
    }
    #expect(registry.requests == 3)
    let chain = ([site.identity.leaf] + site.identity.intermediates).map { Data($0.der) }
    for host in ["127.0.0.1", "b.localhost"] {
      #expect(client.evaluate(presented: chain, host: host).decision == .refuse)
    }
    #expect(registry.requests == 3)
    try registry.publish(["localhost": [LiveSite.otherPin]], at: site.clock.now)
    #expect(try await client.refresh())
    try registry.publish(["localhost": [site.pin]], at: site.clock.now)
    #expect(try await site.refusal(client) == nil)
  }

  @Test("says stale after a week without a refresh, and goes on pinning")
  func stale() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry)
    let verdicts = VerdictRecorder(client)
    registry.answer(.unreachable)
    site.clock.set(site.clock.now + TimeInterval(RegistryStamp.staleAfter))
    #expect(try await site.refusal(client) == nil)
    #expect(await verdicts.first()?.isStale == false)
    site.clock.set(site.clock.now + 1)
    #expect(try await site.refusal(client) == nil)
    #expect(await verdicts.first { $0.isStale }?.outcome == .matched)
    #expect(verdicts.all.count == 2)
    // A verdict that never comes is not waited for till the end of days.
    #expect(await verdicts.first(timeout: 0.01) { $0.host == "elsewhere" } == nil)
  }

  @Test(
    "an expired registry refuses, unless the app keeps pinning; then never looser",
    arguments: [TrustedRegistry.WhenExpired.refuse, .keepPinning])
  func expired(whenExpired: TrustedRegistry.WhenExpired) async throws {
    let registry = try ScriptedRegistry(["localhost": [site.pin]], at: site.clock.now)
    try registry.publish(
      ["localhost": [site.pin], "b.localhost": [site.pin]], denied: [LiveSite.otherPin],
      at: site.clock.now, days: 30)
    let client = try await site.client(registry) { $0.whenExpired = whenExpired }
    registry.answer(.unreachable)
    site.clock.set(site.clock.now + 30 * Self.day - 1)
    #expect(try await site.refusal(client) == nil)
    site.clock.set(site.clock.now + 1)
    let refusal = try await site.refusal(client)
    switch whenExpired {
    case .refuse:
      #expect(refusal?.rule == "expired-registry")
      // A registry that comes back heals, once the host may ask again.
      site.clock.advance(by: 10)
      registry.answer(.published)
      try registry.publish(["localhost": [site.pin]], at: site.clock.now)
      #expect(try await site.refusal(client) == nil)
    case .keepPinning:
      #expect(refusal == nil)
      #expect(try await site.refusal(client, host: "a.localhost")?.rule == "unlisted-host")
    }
  }

  @Test("a denied key closes open connections, even where the app only reports")
  func denied() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry) { $0.enforcement = .reportOnly }
    let session = client.createPinnedSession()
    #expect(try await site.refusal(client, session) == nil)
    try registry.publish(
      ["localhost": [LiveSite.otherPin]], denied: [site.pin], at: site.clock.now)
    #expect(try await client.refresh())
    #expect(try await site.refusal(client, session)?.rule == "denied-key")
  }

  @Test("a denial reaches a device that was asleep with the nap that it wakes in")
  func asleep() async throws {
    let registry = try site.registry()
    var clocks = site.clock.clocks
    clocks.sleep = Clocks.waits(wall: clocks.wall, steady: clocks.steady, nap: clocks.sleep)
    let client = try await registry.client(clocks: clocks) {
      $0.trust = .anchors([site.authority.root.der])
    }
    let session = client.createPinnedSession()
    #expect(try await site.refusal(client, session) == nil)
    try registry.publish(
      ["localhost": [LiveSite.otherPin]], denied: [site.pin], at: site.clock.now)
    for isAsleep in [false, true] {
      #expect(await eventually { site.clock.waits == 1 })
      #expect(registry.requests == 1)
      if isAsleep { site.clock.set(site.clock.now + 8 * 3600) }
      site.clock.advance(by: ContinuousWait.longestNap)
    }
    #expect(await eventually { client.registryStamp.version?.version == 2 })
    #expect(try await site.refusal(client, session)?.rule == "denied-key")
  }

  @Test("report-only forgives a missing pin until a statement enforces it")
  func reportOnly() async throws {
    let registry = try ScriptedRegistry(["localhost": [LiveSite.otherPin]], at: site.clock.now)
    let client = try await site.client(registry) { $0.enforcement = .reportOnly }
    let verdicts = VerdictRecorder(client)
    #expect(try await site.refusal(client) == nil)
    let told = await verdicts.first { $0.decision == .accept }
    #expect(told?.outcome == .mismatch(.leaf))
    try registry.publish(
      ["localhost": [LiveSite.otherPin]], enforced: true, at: site.clock.now)
    #expect(try await client.refresh())
    #expect(try await site.refusal(client)?.rule == "leaf-pin")
  }

  @Test("a clock set back revives nothing, and one set ahead and back locks nobody out")
  func clocks() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry)
    let start = site.clock.now
    for clock in [start - 400 * Self.day, start - 30 * 3600, start + 25 * 3600, start] {
      site.clock.set(clock)
      #expect(try await site.refusal(client) == nil, "at \(clock.timeIntervalSince(start)) s")
    }
  }

  @Test("verdicts go to every listener, and a slow one loses the oldest")
  func streams() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry)
    let (slow, quick) = (client.evaluations, VerdictRecorder(client))
    for number in 0..<300 {
      #expect(
        client.transport.refusal(for: CancellationError()) == nil)
      client.transport.judge.record(
        PinEvaluation(host: "\(number)", outcome: .unlisted, decision: .refuse))
    }
    #expect(await quick.first { $0.host == "299" } != nil)
    var iterator = slow.makeAsyncIterator()
    #expect(await iterator.next()?.host == "44")
  }
}
