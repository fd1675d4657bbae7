import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@testable import SslPinning

@Suite("Root keys in a configuration")
struct RootKeyConfigTests {
  @Test(
    "need a threshold where there are several: a forgotten one is no one",
    arguments: [
      (1, nil, 1), (1, 1, 1), (3, 2, 2), (3, 3, 3), (3, nil, nil), (3, 0, nil), (3, 4, nil),
      // The list failed to load: one key must not do instead.
      (0, 2, nil),
    ] as [(Int, Int?, Int?)])
  func threshold(keys: Int, threshold: Int?, isUsed: Int?) throws {
    var config = SslPinningConfig(
      endpointUrl: "https://pins.example/app.json",
      signingKeyBase64: keys == 0 ? try TestRegistry.key.get().publicKeyPEM : "")
    config.rootKeys = try (0..<keys).map { _ in
      StrictBase64.encode(try TrustSigningKey.generate(.ed25519).roleKey.spki)
    }
    config.rootThreshold = threshold
    guard let isUsed else {
      #expect(throws: SslPinningError.badRootKeys(.threshold(Int64(threshold ?? 0), keys: keys))) {
        try RegistryTrust(config, name: "app.json")
      }
      return
    }
    #expect(try RegistryTrust(config, name: "app.json").shipped.root.threshold == isUsed)
  }
}
