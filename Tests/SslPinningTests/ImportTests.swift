import SslPinning
import SslPinningRules
import Testing

@Suite("With nothing but SslPinning imported")
struct ImportTests {
  @Test("an app can name what the API takes and hands out")
  func names() {
    let trust: TrustMode = .system
    let unlisted: UnlistedHosts = .refuse
    let config = SslPinningConfig(
      endpointUrl: "https://a.example/b.json", signingKeyBase64: "", trust: trust,
      unlistedHosts: unlisted)
    let explain: (PinEvaluation) -> String = { "\($0.host) \($0.rule) \($0.presented)" }
    _ = explain
    #expect(config.trust == .system)
  }
}
