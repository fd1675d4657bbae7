import Foundation
import SslPinning

/// Shows the main job on loopback, one line for each claim that was proved.
enum Demo {
  /// Runs all proofs.
  ///
  /// - Parameters:
  ///   - say: receives the lines.
  ///   - stay: awaited at the end, while everything is still up.
  /// - Returns: whether every claim held.
  static func run(
    say: @Sendable (String) -> Void, stay: @Sendable (DemoStage) async -> Void
  ) async -> Bool {
    let stage: DemoStage
    do { stage = try DemoStage() } catch {
      say("✘ the stage could not be set: \(error)")
      return false
    }
    var holds = true
    do {
      try await stage.service.start()
      try await prove(on: stage, say: say)
      say("all 6 claims proved")
      await stay(stage)
    } catch {
      say("✘ \(error)")
      holds = false
    }
    await stage.tearDown()
    return holds
  }

  private static func prove(on stage: DemoStage, say: @Sendable (String) -> Void) async throws {
    let proofs = DemoProofs(stage: stage)
    let (client, proof) = try await proofs.registryVerified()
    say("✔ \(proof)")
    let session = client.createPinnedSession()
    defer { session.invalidateAndCancel() }
    say("✔ \(try await proofs.pinnedRequestServed(client, session))")
    for line in try await proofs.manInTheMiddleRefused(client, session) { say("✔ \(line)") }
    say("✔ \(try await proofs.unlistedHostRefused(client, session))")
    say("✔ \(try await proofs.rotationFollowed(client, session))")
    say("✔ \(try await proofs.tamperedRegistryRefused())")
  }

  /// What to try while the demo stays up.
  static func hints(for stage: DemoStage) -> [String] {
    let directory = stage.directory.path(percentEncoded: false)
    // As it was called, so that the lines can be pasted as they stand.
    let tool = CommandLine.arguments.first ?? "ssl-pinning"
    let get =
      "\(tool) get --registry \(stage.registryURL) --key \(directory)pub.pem"
      + " --ca \(directory)ca.pem"
    let attacked = "https://\(DemoStage.shop):\(stage.attacker.port)/account"
    return [
      "", "Still up; Ctrl-C ends it. Try, in another terminal:", "",
      "  # served", "  \(get) \(stage.shopURL)", "",
      "  # the man in the middle: refused, with the verdict", "  \(get) \(attacked)", "",
      "  # the same without pins: he reads it", "  curl --cacert \(directory)ca.pem \(attacked)",
      "",
      "  # what the registry says",
      "  \(tool) verify --key \(directory)pub.pem \(stage.registryURL)", "",
    ]
  }
}
