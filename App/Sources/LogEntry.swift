import Foundation
import SslPinning

/// One request and what became of it.
struct LogEntry: Identifiable, Sendable {
  /// What became of a request.
  enum Result: Sendable {
    case answered(status: Int, headers: [String: String], bodyBytes: Int)
    /// The connection was refused; nothing of the request was sent.
    case refused(PinEvaluation)
    /// No verdict of the pins: offline, a time-out, the system's own refusal.
    case failed(reason: String)
  }

  let id: Int
  let date: Date
  let url: URL
  let session: SessionKind
  let result: Result

  /// What the pins said, in a word or two.
  var verdict: String {
    switch (result, session) {
    case (.answered, .pinned): "accepted"
    case (.answered, .plain): "not judged"
    case (.refused, _): "refused"
    case (.failed, _): "failed"
    }
  }

  /// The line that is shown before the entry is opened.
  var summary: String {
    switch result {
    case .answered(let status, _, _): "\(status), \(verdict)"
    case .refused(let evaluation): "\(verdict): \(evaluation.rule)"
    case .failed: verdict
    }
  }
}
