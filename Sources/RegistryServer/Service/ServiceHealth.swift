import PinningPlatform

/// What keeps the server from doing its work at this moment, for `/readyz`.
final class ServiceHealth: Sendable {
  private struct State {
    var failures: [String: String] = [:]
    var missingFirstLooks = Int.max
    var isStopping = false
  }

  private let state = Locked(State())

  /// A document could not be stored or signed.
  func report(_ file: String, _ reason: String) { state.withLock { $0.failures[file] = reason } }

  /// A document could be stored.
  func clear(_ file: String) { state.withLock { $0.failures[file] = nil } }

  /// So many endpoints are to be looked at for the first time since the start.
  func expect(firstLooks count: Int) { state.withLock { $0.missingFirstLooks = count } }

  /// One of them was.
  func finishedFirstLook() { state.withLock { $0.missingFirstLooks -= 1 } }

  /// The server is about to stop.
  func stopping() { state.withLock { $0.isStopping = true } }

  /// Whether traffic should come here, and what is amiss either way.
  ///
  /// - A server is ready when it publishes every document, or has looked at every endpoint once and
  ///   publishes some: an endpoint that has been down since before the start must not take the
  ///   documents of all others out of service, but one that was merely not looked at yet should not
  ///   be answered for.
  /// - A store that fails does not make it unready: the last documents are still right.
  func readiness(of documents: PublishedDocuments) -> (isReady: Bool, reasons: [String]) {
    let waiting = documents.waitingFiles
    let hasDocument = documents.hasDocument
    return state.withLock { state in
      var reasons = waiting.map { "\($0): no key of its endpoints has been seen yet" }
      reasons += state.failures.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
      if state.isStopping { reasons.insert("the server is stopping", at: 0) }
      let isComplete = waiting.isEmpty || state.missingFirstLooks <= 0
      return (hasDocument && isComplete && !state.isStopping, reasons)
    }
  }
}
