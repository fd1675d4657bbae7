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
    let directory: DemoDirectory
    let stage: DemoStage
    do {
      directory = try await DemoDirectory()
    } catch {
      say("✘ no directory could be made: \(error)")
      return false
    }
    defer { directory.remove() }
    do { stage = try DemoStage(in: directory) } catch {
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

  /// What to try while the demo stays up: lines that work as they stand, in any directory.
  ///
  /// - Parameter tool: how this process was called. It need not be on the other shell's path.
  static func hints(for stage: DemoStage, tool: String?) -> [String] {
    let directory = stage.directory.url.path(percentEncoded: false)
    let tool = tool.map(shellWord) ?? "ssl-pinning"
    let get =
      "\(tool) get --registry \(stage.registryURL) --key \(directory)pub.pem"
      + " --ca \(directory)ca.pem"
    let attacked = "https://\(DemoStage.shop):\(stage.attacker.port)/account"
    return [
      "", "Still up; Ctrl-C ends it. Try, in another terminal:", "",
      "  # served", "  \(get) \(stage.shopURL)", "",
      "  # the man in the middle: refused, with the verdict", "  \(get) \(attacked)", "",
      "  # the same without pins: he reads it", "  curl -s --cacert \(directory)ca.pem \(attacked)",
      "",
      "  # what the registry says",
      "  \(tool) verify --key \(directory)pub.pem \(stage.registryURL)", "",
    ]
  }

  /// A called program as a word that every shell of this machine takes for it.
  private static func shellWord(_ program: String) -> String {
    // Without a slash it was found on the path.
    guard program.contains("/") else { return program }
    let path = URL(filePath: program).absoluteURL.standardizedFileURL.path(percentEncoded: false)
    let isPlain = path.allSatisfy { $0.isLetter || $0.isNumber || "/._-+@:,".contains($0) }
    return isPlain ? path : "'\(path.replacingOccurrences(of: "'", with: "'\\''"))'"
  }
}
