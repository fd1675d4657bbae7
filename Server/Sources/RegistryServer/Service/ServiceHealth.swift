import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// What keeps the server from doing its work at this moment, for its probes.
final class ServiceHealth: Sendable {
  private struct State {
    var failures: [String: HealthFacts.Failure] = [:]
    var refusedConfiguration: String?
    var missingFirstProbes: Int?
    var clockTrouble: String?
    var isStopping = false
  }

  private let state = Locked(State())

  /// A document could not be stored or signed.
  func report(_ file: String, _ reason: String, as kind: HealthReport.Kind = .store) {
    state.withLock { $0.failures[file] = HealthFacts.Failure(kind: kind, reason: reason) }
  }

  /// A configuration was read: why it is not in force, or `nil` where it is.
  func configuration(refused reason: String?) {
    state.withLock { $0.refusedConfiguration = reason }
  }

  /// The machine's clock is doubted, or believed again.
  func doubts(clock change: SteadyTime.Change) {
    state.withLock { state in
      if case .doubted(let wall, _) = change {
        state.clockTrouble =
          "the machine's clock is doubted: at first it said \(RFC3339.text(wall))"
      } else {
        state.clockTrouble = nil
      }
    }
  }

  /// What was reported of a document is over.
  ///
  /// - Parameter kind: only a failure of this kind; `nil` for any.
  func clear(_ file: String, _ kind: HealthReport.Kind? = nil) {
    state.withLock { state in
      guard kind == nil || state.failures[file]?.kind == kind else { return }
      state.failures[file] = nil
    }
  }

  /// Why it could not; `nil` where it could.
  func reason(of file: String) -> String? { state.withLock { $0.failures[file]?.reason } }

  /// So many endpoints are to be probed for the first time since the start.
  func expect(firstProbes count: Int) { state.withLock { $0.missingFirstProbes = count } }

  /// One of them was.
  func finishedFirstProbe() { state.withLock { $0.missingFirstProbes? -= 1 } }

  /// The server is about to stop.
  func stopping() { state.withLock { $0.isStopping = true } }

  /// What is known at this moment.
  func facts(of documents: PublishedDocuments) -> HealthFacts {
    let (waiting, hasDocument) = (documents.waitingFiles, documents.hasDocument)
    return state.withLock { state in
      HealthFacts(
        waitingFiles: waiting, hasDocument: hasDocument, missingFirstProbes: state.missingFirstProbes,
        failures: state.failures, refusedConfiguration: state.refusedConfiguration,
        clockTrouble: state.clockTrouble, isStopping: state.isStopping)
    }
  }

  /// ``HealthFacts/readiness`` of what is known at this moment.
  func readiness(of documents: PublishedDocuments) -> (isReady: Bool, reasons: [String]) {
    let report = facts(of: documents).readiness
    return (report.isGood, report.reasons)
  }
}
