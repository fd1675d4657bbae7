import Foundation
import SslPinningRules

/// What happens to a client beside its verdicts: for logs, and for whoever watches over an app.
public enum PinningEvent: Equatable, Sendable {
  /// A registry came into force: at the start, or with other pins than before.
  case registryInForce(RegistryStatus)
  /// A refresh was answered, and hosts and pins are those of before: also where a server's key that is
  /// not pinned was the reason to ask.
  case registryConfirmed(RegistryStatus)
  /// A refresh brought nothing; the last good registry stays in force. The number counts the
  /// failures since the last success.
  case refreshFailed(SslPinningError, consecutive: Int)
  /// What in the registry that came into force could not be used, or vanished from it.
  case registryProblems([RegistryProblem])
  /// What was stored could not be read or believed: the start was a first start.
  case storedRegistryRefused(reason: String)
  /// The registry could not be stored: the next start may be a first start.
  case registryNotStored(reason: String)
  /// The registry goes on from another statement than the one that this client believed: somebody else has
  /// its online key, or two servers sign it.
  case registryForked(RegistryFork)
  /// The document that the app handed over at the start is not believed.
  case handedRegistryRefused(SslPinningError)
  /// The registry in force lists hosts that the client itself asks outside of all pins: for the registry or a mirror of
  /// it, or to report. Told on Apple's systems alone: there a pinned session may resume such a TLS session, and nobody is
  /// asked again. Serve the registry and take reports under names that are not listed.
  case listedHostsAskedUnpinned([String])
  /// Trouble with sending failure reports.
  case reporting(ReportingEvent)
  /// A request went over a connection that was never judged for its host. Only Apple's systems let
  /// that happen, and tell of it afterwards.
  case unjudgedReuse(PinEvaluation)
}

extension PinningEvent: CustomStringConvertible {
  public var description: String {
    switch self {
    case .registryInForce(let status): "\(status)"
    case .registryConfirmed(let status): "no other pins: \(status)"
    case .refreshFailed(let error, let count): "refresh failed (\(count) in a row): \(error)"
    case .registryProblems(let problems):
      "in the registry: " + problems.map(\.description).joined(separator: "; ")
    case .storedRegistryRefused(let reason): "the stored registry is not used: \(reason)"
    case .registryNotStored(let reason):
      "the registry is not stored: \(reason); "
        + "hint: the next start can be fed an old one; name a directory that can be written to"
    case .registryForked(let fork): "the registry is forked: \(fork)"
    case .handedRegistryRefused(let error): "the registry handed over is not used: \(error)"
    case .listedHostsAskedUnpinned(let hosts):
      "listed, and asked by the client itself under no pins: \(hosts.joined(separator: ", ")); "
        + "hint: a pinned session may resume such a TLS session; give registry and reports other names"
    case .reporting(let event): "failure reports: \(event)"
    case .unjudgedReuse(let evaluation): evaluation.description
    }
  }
}

/// Trouble with sending failure reports: for logs, nothing an app must act on.
///
/// Collectors are named by their host alone: their URLs often hold a key.
public enum ReportingEvent: Hashable, Sendable {
  /// No report is sent to this host before this time. The reason is a status, or the transport's words.
  case postponed(host: String, until: Date, reason: String)
  /// The host answered a report with this status, and it is not sent there again.
  case rejected(host: String, status: Int)
  /// So many failures found the queue full and are not reported.
  case dropped(failures: Int64)
  /// What lay on the disk cannot be read as a queue of reports; it was begun anew.
  case queueUnreadable
  /// Reports cannot be kept on the disk, for this reason. They are sent from memory and do not
  /// survive the process until the disk can be written again.
  case notSaved(reason: String)
}

extension ReportingEvent: CustomStringConvertible {
  public var description: String {
    switch self {
    case .postponed(let host, let until, let reason):
      "nothing goes to \(host) before \(RFC3339.text(until.unixSeconds)): \(reason)"
    case .rejected(let host, let status): "\(host) rejected a report with status \(status)"
    case .dropped(let failures): "\(failures) failures found the queue full"
    case .queueUnreadable: "what was kept cannot be read, and was begun anew"
    case .notSaved(let reason): "reports are not kept: \(reason)"
    }
  }
}
