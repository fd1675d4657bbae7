import Foundation
import SslPinning
import SslPinningPlatform

/// Proves the main job on loopback, with one line for each claim.
enum Demo {
  /// Runs all proofs.
  ///
  /// - Parameters:
  ///   - say: receives the lines.
  ///   - stay: awaited at the end, while everything still runs.
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

  /// Commands to try while the demo stays up; they work as printed, in any directory.
  ///
  /// - Parameter tool: the path of `ssl-pinning`, which may not be on the other shell's path.
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

  /// A program's path, quoted for the shell if necessary.
  private static func shellWord(_ program: String) -> String {
    // A name without a slash was found on the path.
    guard program.contains("/") else { return program }
    let path = URL(filePath: program).absoluteURL.standardizedFileURL.path(percentEncoded: false)
    let isPlain = path.allSatisfy { $0.isLetter || $0.isNumber || "/._-+@:,".contains($0) }
    return isPlain ? path : "'\(path.replacingOccurrences(of: "'", with: "'\\''"))'"
  }
}

/// `demo [--once]`: the main job on loopback, start to end.
///
/// Starts a private CA, two HTTPS servers, a man in the middle and a registry server, all on
/// 127.0.0.1, and removes everything at its end.
enum DemoCommand {
  /// - Returns: the exit status: 0 only if every claim held.
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    guard arguments.isEmpty || arguments == ["--once"] else {
      Terminal.complain("unknown argument \(arguments[0])")
      return 2
    }
    let staysUp = arguments.isEmpty
    let holds = await Demo.run(say: say) { stage in
      guard staysUp else { return }
      let tool = try? SslPinningTool.path()
      let isOver = Locked(false)
      var playground: Task<Void, Never>?
      await stage.directory.untilTerminated {
        for line in Demo.hints(for: stage, tool: tool) { say(line) }
        playground = play(in: stage.directory.url, until: isOver, say: say)
      }
      isOver.withLock { $0 = true }
      await playground?.value
    }
    return holds ? 0 : 1
  }

  /// Serves the playground, a stage of its own beside the demo's.
  private static func play(
    in place: URL, until isOver: Locked<Bool>, say: @escaping @Sendable (String) -> Void
  ) -> Task<Void, Never> {
    Task {
      do {
        try await Playground.run(in: place, until: isOver) { url in
          say(
            "  # the playground: two sessions, and everything that can happen to them; open it in a browser"
          )
          say("  \(url)\n")
        }
      } catch { say("  # the playground could not be set up: \(error)") }
    }
  }
}

/// The directory of the demo's keys, CA and database.
///
/// - It is removed however the demo ends: a signing key must not remain because somebody pressed
///   Ctrl-C before the last line.
final class DemoDirectory: Sendable {
  private struct State: @unchecked Sendable {
    var waiting: CheckedContinuation<Void, Never>?
    /// Held so that their events arrive; used under the lock only.
    var sources: [any DispatchSourceSignal] = []
  }

  let url: URL
  private let state = Locked(State())

  /// Listens for SIGINT and SIGTERM, then makes a directory that no other user can read.
  init() async throws {
    url = FileManager.default.temporaryDirectory
      .appending(path: "ssl-pinning-demo-\(UUID().uuidString)", directoryHint: .isDirectory)
    for number in [SIGINT, SIGTERM] { await listen(number) }
    // Under the lock, like the removal, so that the directory cannot be made after it was removed.
    try state.withLock { _ in
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
  }

  /// Returns once the signal is handled. Until then it has its default effect, which is right, since there is
  /// nothing to remove yet; ignoring it earlier could lose one.
  private func listen(_ number: Int32) async {
    let source = DispatchSource.makeSignalSource(signal: number)
    source.setEventHandler { [weak self] in self?.note(number) }
    state.withLock { $0.sources.append(source) }
    await withCheckedContinuation { continuation in
      source.setRegistrationHandler { continuation.resume() }
      source.resume()
    }
  }

  /// Waits for SIGINT or SIGTERM. A signal that comes while nobody waits removes the directory and ends
  /// the process.
  ///
  /// - Parameter whenWaiting: called once, as soon as a signal would end the demo cleanly.
  func untilTerminated(whenWaiting: () -> Void) async {
    await withCheckedContinuation { continuation in
      state.withLock { $0.waiting = continuation }
      whenWaiting()
    }
  }

  /// Ends the wait, as a signal would.
  func finish() { state.withLock { $0.waiting.take()?.resume() } }

  /// Removes the directory and its contents. Repeats while the demo is still writing, because a new file
  /// stops a removal half-way.
  func remove() {
    let path = url.path(percentEncoded: false)
    for _ in 0..<100 where FileManager.default.fileExists(atPath: path) {
      try? FileManager.default.removeItem(at: url)
    }
  }

  private func note(_ number: Int32) {
    state.withLock { state in
      if let waiting = state.waiting.take() { return waiting.resume() }
      remove()
      // End by the signal itself, so that the shell and make see it; this thread does not go on.
      signal(number, SIG_DFL)
      kill(getpid(), number)
      sleep(1)
      _exit(128 + number)
    }
  }
}

/// A claim of the demo that did not hold.
struct DemoFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
