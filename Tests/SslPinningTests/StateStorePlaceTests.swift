import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import SslPinning

@Suite("Where the file between two runs lies")
struct StateStorePlaceTests {
  private static let now: Int64 = 1_780_000_000

  private let directory: TemporaryDirectory
  private let trust: RegistryTrust

  init() throws {
    directory = try TemporaryDirectory()
    trust = try Self.trust(in: TestRegistry.key.get())
  }

  private static func trust(in key: SigningKey, named name: String = "r.json") throws
    -> RegistryTrust
  {
    try RegistryTrust(registry: name, signingKey: try VerificationKey(key.publicKeyPEM))
  }

  private func store(_ endpoint: String, _ trust: RegistryTrust) -> StateStore {
    StateStore(directory: directory.path(), identity: endpoint, trust: trust)
  }

  /// What is believed of one host under these keys.
  private func registry(under trust: RegistryTrust, _ key: SigningKey) throws -> TrustedRegistry {
    let pin = try #require(SPKIPin(digest: [UInt8](repeating: 7, count: 32)))
    let document = try TestRegistry.document(
      [.object(["domainName": .string("www.example.com"), "key": .string(pin.base64)])],
      signedBy: key)
    return try TrustedRegistry(accepting: document, under: trust, at: Self.now)
  }

  @Test("is one per endpoint, per registry's name and per root keys")
  func apart() throws {
    let (key, otherKey) = (try TestRegistry.key.get(), try TestRegistry.otherKey.get())
    let own = store("https://one.example/r.json", trust)
    _ = try own.save(registry(under: trust, key), under: trust, at: Self.now)
    #expect(try own.load(under: trust, at: Self.now).registry?.registry.keys.count == 1)
    // Another endpoint of the same operator: its keys and its registry's name are the same.
    let elsewhere = store("https://two.example/r.json", trust)
    #expect(try elsewhere.load(under: trust, at: Self.now).registry == nil)
    // The app's next release ships other root keys, or asks for another registry.
    for next in [try Self.trust(in: otherKey), try Self.trust(in: key, named: "next.json")] {
      let store = store("https://one.example/r.json", next)
      #expect(try store.load(under: next, at: Self.now).registry == nil)
    }
    // And the release before it, still installed elsewhere on the machine, finds its own again.
    let next = try Self.trust(in: otherKey)
    _ = try store("https://one.example/r.json", next)
      .save(registry(under: next, otherKey), under: next, at: Self.now)
    #expect(try own.load(under: trust, at: Self.now).registry?.registry.keys.count == 1)
  }
}
