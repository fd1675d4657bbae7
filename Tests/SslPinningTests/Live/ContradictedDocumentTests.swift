import Foundation
import Pinning
import PinningPlatform
import SslPinning
import SslPinningTesting
import Testing

@Suite("Documents that the app's settings contradict")
struct ContradictedDocumentTests {
  @Test(
    "leave the last pins in force, and their newer key sets believed: a withdrawn key is no key")
  func keySets() async throws {
    let registry = try SignedRegistry(epochs: 2)
    let clock = TestClock(now: SignedRegistry.start)
    let answer = Locked(try registry.document(version: 1, hosts: ["a.example"]))
    var config = SslPinningConfig(
      endpointUrl: "https://registry.test/\(SignedRegistry.name)", signingKeyBase64: "",
      trust: .pinnedKeysOnly, storage: .none)
    config.requireStatement = true
    let client = try await SslPinningClient(
      config: config, source: .live { _ in .success(.fresh(answer.withLock { $0 }, etag: nil)) },
      trust: registry.trust(), clocks: clock.clocks)
    // A CA pin means nothing where no path is validated.
    let ca = HostSettings(
      try HostPattern("a.example"), ca: [SPKIPin(computed: Digest.sha256([1]))], match: .all,
      enforces: false)
    let contradicted = try registry.document(
      epoch: 1, version: 1, hosts: ["a.example"], settings: [ca])
    answer.withLock { $0 = contradicted }
    await #expect(
      throws: SslPinningError.badConfiguration(.caPinsWithoutPath(try HostPattern("a.example")))
    ) { try await client.refresh() }
    #expect(client.registryStamp.version == .init(epoch: 0, version: 1))
    // The key of epoch 0 was stolen; that is why there is an epoch 1.
    let stolen = try registry.document(version: 2, hosts: ["a.example", "evil.example"])
    answer.withLock { $0 = stolen }
    await #expect(throws: SslPinningError.self) { try await client.refresh() }
    #expect(client.registryStamp.version == .init(epoch: 0, version: 1))
    // What is right again is believed.
    let mended = try registry.document(epoch: 1, version: 2, hosts: ["a.example"])
    answer.withLock { $0 = mended }
    try await client.refresh()
    #expect(client.registryStamp.version == .init(epoch: 1, version: 2))
  }
}
