import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TLSTools
import Testing

@Suite("What an app's user is shown of an error")
struct ErrorTextTests {
  static let errors: [(any Error, text: String, hint: String?)] = [
    (
      SslPinningError.badURL("x"), "\"x\" is no registry URL", "use https://host/path"
    ),
    (SslPinningError.cancelled, "the task was cancelled before the registry was there", nil),
    (
      SslPinningError.unreachable("no route", url: "https://a.example/r.json"),
      "the registry https://a.example/r.json cannot be reached: no route", nil
    ),
    (
      SslPinningError.httpStatus(404, url: "https://a.example/r.json"),
      "the registry https://a.example/r.json answered with status 404",
      "is this the registry's URL?"
    ),
    (SslPinningError.httpStatus(503), "the registry answered with status 503", nil),
    (
      SslPinningError.registryRefused(
        .statementExpired(at: 1_782_592_000), url: "https://a.example/r.json"),
      "the registry https://a.example/r.json is refused: the statement expired on 2026-06-27T20:26:40Z",
      "is the device's clock ahead? does the registry's server still sign?"
    ),
    (
      SslPinningError.badSignature(url: "https://a.example/r.json"),
      "https://a.example/r.json: the signature does not match the payload",
      "is this the registry's signing key?"
    ),
    (
      SslPinningError.tooLarge(limit: 4, url: "https://a.example/r.json"),
      "the registry https://a.example/r.json is larger than 4 bytes", nil
    ),
    (
      SslPinningError.clockBehind(
        at: Date(unixSeconds: 1_782_592_000), url: "https://a.example/r.json"),
      "the certificate of the registry https://a.example/r.json is not valid yet, by a clock that says"
        + " 2026-06-27T20:26:40Z",
      "the device's clock is the likely cause; set it right and try again"
    ),
    (SslPinningError.noUsableKey(), "\(RegistryError.noUsableKey)", nil),
    (SslPinningError.platformCannotPin(reason: "x"), "this platform cannot pin: x", nil),
    (FixedPinsError.noPins(host: "a"), "a has no pins", nil),
    (
      FixedPinsError.badHost(.notHostAlone("https://a", has: .scheme)), "\"https://a\" is a URL",
      "write the host alone, without a scheme"
    ),
    (
      ReportingError.noURL, "no report URL is given", "leave reporting out to send nothing"
    ),
    (
      PinEvaluation.refused(host: "a", .unlisted), "refused a: the host is on no pin list",
      "add the host to the list"
    ),
    (
      PinEvaluation.refused(host: "a", .clearText(scheme: "http")),
      "refused a: http is clear text", "use https"
    ),
    (
      PinEvaluation.refused(host: "a", .registryExpired(at: Date(unixSeconds: 1_782_592_000))),
      "refused a: the registry expired on 2026-06-27T20:26:40Z",
      "is the device's clock ahead? is the registry reachable, and does its server still sign?"
    ),
  ]

  @Test("is the cause in words, never a number; what helps is apart", arguments: errors.indices)
  func texts(index: Int) {
    let (error, text, hint) = Self.errors[index]
    #expect(error.localizedDescription == text)
    #expect((error as? any LocalizedError)?.recoverySuggestion == hint)
    #expect("\(error)" == text + (hint.map { "; hint: \($0)" } ?? ""))
  }

  @Test("another signing key than the registry's is called that, also for a statement")
  func signingKey() async throws {
    let registry = try SignedRegistry(epochs: 2)
    func failure(epoch: Int, shipped: Int) async throws -> SslPinningError? {
      let document = try registry.document(epoch: epoch, version: 1, hosts: ["a.example"])
      let trust = RegistryTrust(
        registry: SignedRegistry.name,
        shipped: try KeyRole(keys: [registry.keys[shipped].roleKey], threshold: 1),
        format1Key: nil, requiresStatement: true, crypto: PlatformRegistryCrypto())
      let config = SslPinningConfig(
        endpointUrl: "https://registry.test/\(SignedRegistry.name)", signingKeyBase64: "",
        storage: .none)
      do {
        _ = try await SslPinningClient(
          config: config, source: .whole { _ in .success(.fresh(document, etag: nil)) },
          trust: trust, clocks: TestClock(now: Date(unixSeconds: SignedRegistry.start)).clocks)
        return nil
      } catch { return error }
    }
    // The control.
    #expect(try await failure(epoch: 0, shipped: 0) == nil)
    #expect(try await failure(epoch: 1, shipped: 0) == nil)
    for epoch in 0...1 {
      let error = try #require(try await failure(epoch: epoch, shipped: 1))
      #expect(
        error.localizedDescription.hasSuffix("none of the keys that the app ships signed it"))
      #expect(error.recoverySuggestion == "is this the registry's signing key?")
    }
  }
}
