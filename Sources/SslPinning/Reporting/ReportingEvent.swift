import Foundation
import SslPinningRules

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
