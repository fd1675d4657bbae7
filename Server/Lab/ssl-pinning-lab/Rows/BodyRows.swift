import FaultLab
import SslPinning
import TLSTools

/// Attackers who answer for the registry and never come to an end.
enum BodyRows {
  static let all: [Row] = [
    .attack("endless registry body") {
      let space = [UInt8](repeating: 0x20, count: 100_000)
      return try await attack(
        HTTPResponse(body: space, delivery: .endless()), "the registry never ends: given up after"
      ) { if case .tooLarge(limit: 1_000_000) = $0 { "1 000 000 bytes" } else { nil } }
    },
    .attack("slow registry body") {
      let space = [UInt8](repeating: 0x20, count: 10_000)
      return try await attack(
        HTTPResponse(body: space, delivery: .drip(pieceBytes: 1, pauseMilliseconds: 50)),
        "the registry drips a byte at a time: given up after"
      ) { if case .unreachable = $0 { "one second" } else { nil } }
    },
  ]

  /// - Parameter given: what the client gave up by, where it is what the row is about.
  private static func attack(
    _ response: HTTPResponse, _ shown: String, given: @Sendable (SslPinningError) -> String?
  ) async throws -> AttackOutcome {
    let limit: (inout SslPinningConfig) -> Void = {
      $0.maximumRegistryBytes = 1_000_000
      $0.fetchTimeout = 1
    }
    let scene = try await Scenario(adjust: limit)
    scene.stage.registry.respond(response)
    var reason: String?
    do { try await scene.app.client.refresh() } catch { reason = given(error) }
    guard let reason else { throw Inconclusive("the refresh did not end as it must") }
    do {
      _ = try await scene.stage.start {
        limit(&$0)
        $0.storage = .none
      }
      throw Inconclusive("a first start brought a client")
    } catch let error as SslPinningError {
      try show(given(error) != nil, "the first start failed with \(error)")
    }
    try await scene.app.mustBeServed(by: scene.site)
    let (attacker, _) = try scene.middleman()
    let exhibits = try await scene.attack(
      by: attacker, at: attacker.port, .inHandshake("leaf-pin"))
    return try AttackOutcome("\(shown) \(reason), the real site served all the while", exhibits)
  }
}
