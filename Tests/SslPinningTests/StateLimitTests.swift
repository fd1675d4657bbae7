import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import SslPinning

@Suite("The stored registry's file")
struct StateLimitTests {
  private let registry: SignedRegistry
  private let directory: TemporaryDirectory
  private let start = SignedRegistry.start

  init() throws {
    registry = try SignedRegistry(epochs: 1)
    directory = try TemporaryDirectory()
  }

  private func store(largest: Int) throws -> StateStore {
    StateStore(
      directory: directory.path(), identity: "a", trust: try registry.trust(), largest: largest)
  }

  @Test("stays within its limit, whatever vanishes: the oldest goes, and no floor is lost")
  func limit() throws {
    let trust = try registry.trust()
    let store = try store(largest: 30_000)
    var trusted = try TrustedRegistry(
      accepting: try registry.document(
        version: 1, hosts: ["a.example", "h1.example"], filler: 4000),
      under: trust, at: start)
    for version in 2...20 as ClosedRange<Int64> {
      // Each version drops a host of the one before without a word.
      let update = trusted.update(
        with: try registry.document(
          version: version, hosts: ["a.example", "h\(version).example"], filler: 4000),
        under: trust, at: start + version)
      #expect(update.refusal == nil)
      trusted = try store.save(update.registry, under: trust, at: start + version)
    }
    let restored = try #require(try store.load(under: trust, at: start + 21).registry)
    #expect(restored.stamp.version == .init(epoch: 0, version: 20))
    let problems = restored.registry.problems.map { "\($0)" }.joined()
    #expect(problems.contains("h19.example"))
    #expect(!problems.contains("h1.example"))
  }

  @Test("a file beyond its limit is written over, not left to stand for good")
  func tooLarge() throws {
    let trust = try registry.trust()
    let trusted = try TrustedRegistry(
      accepting: try registry.document(version: 1, hosts: ["a.example"], filler: 20_000),
      under: trust, at: start)
    _ = try store(largest: 1 << 20).save(trusted, under: trust, at: start)
    let small = try TrustedRegistry(
      accepting: try registry.document(version: 2, hosts: ["a.example"]), under: trust, at: start)
    let store = try store(largest: 10_000)
    #expect(throws: StateStoreError.self) { try store.load(under: trust, at: start).registry }
    _ = try store.save(small, under: trust, at: start)
    #expect(try store.load(under: trust, at: start).registry?.stamp.version?.version == 2)
  }
}
