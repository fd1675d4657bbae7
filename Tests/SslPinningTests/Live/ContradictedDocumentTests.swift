import Foundation
import SslPinning
import SslPinningRules
import SslPinningTesting
import TLSTools
import TestSupport
import Testing

/// `.pinnedKeysOnly` validates no path, so it can honour no CA pin.
@Suite("Lists with entries that the app's trust mode cannot honour")
struct ContradictedDocumentTests {
  private let site: LiveSite
  private let directory: TemporaryDirectory
  private let problem: RegistryProblem

  init() throws {
    site = try LiveSite()
    directory = try TemporaryDirectory()
    problem = .uncheckable(try HostPattern("b.localhost"), .ca)
  }

  private func hosts() throws -> KeyValuePairs<String, HostPins> {
    [
      "a.localhost": [try site.pin],
      "b.localhost": HostPins(leaf: [try site.pin], ca: [LiveSite.otherPin]),
    ]
  }

  private func client(
    _ registry: ScriptedRegistry, trust: TrustMode = .pinnedKeysOnly
  ) async throws -> SslPinningClient {
    try await site.client(registry) {
      $0.trust = trust
      $0.storage = .directory(directory.url)
    }
  }

  private func expectOnlyBIsRefused(_ client: SslPinningClient) async throws {
    #expect(client.registryProblems == [problem])
    #expect(try await site.refusal(client, host: "a.localhost") == nil)
    let refusal = try await site.refusal(client, host: "b.localhost")
    #expect(refusal?.outcome == .uncheckable(.ca))
    #expect(refusal?.rule == "trust-mode")
  }

  @Test("start a fresh install; such an entry refuses its own hosts alone, and is told")
  func freshInstall() async throws {
    let registry = try ScriptedRegistry(try hosts(), at: site.clock.now)
    let client = try await client(registry)
    try await expectOnlyBIsRefused(client)
    for await event in client.events {
      guard case .registryProblems(let problems) = event else { continue }
      #expect(problems == [problem])
      break
    }
  }

  @Test("come into force: a rotation of another host arrives beside such an entry")
  func refresh() async throws {
    let registry = try ScriptedRegistry(
      ["a.localhost": [LiveSite.otherPin]], at: site.clock.now)
    let client = try await client(registry)
    try registry.publish(try hosts(), at: site.clock.now)
    #expect(try await client.refresh())
    try await expectOnlyBIsRefused(client)
    // And the entry heals like any other, on the first connection that needs it.
    try registry.publish(
      ["a.localhost": [site.pin], "b.localhost": [site.pin]], at: site.clock.now)
    site.clock.advance(by: 11)
    #expect(try await site.refusal(client, host: "b.localhost") == nil)
    #expect(client.registryProblems.isEmpty)
  }

  @Test("start from what another mode had stored, and ask the network for a newer one")
  func stored() async throws {
    let registry = try ScriptedRegistry(try hosts(), at: site.clock.now)
    _ = try await client(registry, trust: .anchors([site.authority.root.der]))
    #expect(registry.requests == 1)
    registry.answer(.unreachable)
    let offline = try await client(registry)
    #expect(offline.registryStatus.origin == .cache)
    #expect(await eventually { registry.requests == 2 })
    try await expectOnlyBIsRefused(offline)
    registry.answer(.published)
    try registry.publish(
      ["a.localhost": [site.pin], "b.localhost": [site.pin]], at: site.clock.now)
    let online = try await client(registry)
    #expect(await eventually { online.registryStamp.version?.version == 2 })
    #expect(try await site.refusal(online, host: "b.localhost") == nil)
  }

  @Test("are no excuse: what the app's own settings contradict is an error, and nothing is asked")
  func ownSettings() async throws {
    let registry = try ScriptedRegistry(["a.localhost": [site.pin]], at: site.clock.now)
    for (error, configure): (PolicyError, (inout SslPinningConfig) -> Void) in [
      (.reportOnlyWithoutPath(nil), { $0.enforcement = .reportOnly }),
      (.unlistedHostsWithoutPath, { $0.unlistedHosts = .systemTrust }),
    ] {
      await #expect(throws: SslPinningError.badConfiguration(error)) {
        try await site.client(registry) {
          $0.trust = .pinnedKeysOnly
          configure(&$0)
        }
      }
    }
    #expect(registry.requests == 0)
  }
}
