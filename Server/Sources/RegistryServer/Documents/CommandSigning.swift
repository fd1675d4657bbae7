import Dispatch
import TLSTools

/// Where commands sign: on a thread of its own, one after another.
///
/// A command may take seconds. Threads of the cooperative pool, which are few, would all wait for it, and nobody would
/// be probed meanwhile.
enum CommandSigning {
  static let queue = DispatchQueue(label: "signing commands")

  static func run<Answer: Sendable>(_ work: @escaping @Sendable () -> Answer) async -> Answer {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: work()) }
    }
  }
}

extension DocumentSigner {
  /// The keys here that commands hold.
  private var commandKeys: [TrustSigningKey] {
    ([key.trustKey] + (statements?.keys ?? [])).filter(\.isHeldByCommand)
  }

  /// Whether signing may take a while.
  var runsCommands: Bool { !commandKeys.isEmpty }

  /// Has each command sign something that nobody publishes. Blocks the thread, also for what signs already.
  ///
  /// - Throws: ``DocumentSignerError``.
  func tryCommands() throws(DocumentSignerError) {
    try CommandSigning.queue.sync { Result(catching: signTrial) }.get()
  }

  private func signTrial() throws(DocumentSignerError) {
    var tried: Set<[UInt8]> = []
    for key in commandKeys where tried.insert(key.publicKeyDER).inserted {
      do throws(SigningKeyError) {
        _ = try key.sign([UInt8]("ssl-pinning signing trial v1\0".utf8))
      } catch { throw .signingKey(path: SigningConfiguration.place, error) }
    }
  }
}
