import Foundation
import SslPinning

extension LogEntry {
  /// One labelled value of an opened entry.
  struct Detail: Hashable, Sendable {
    let label: String
    let value: String

    init(_ label: String, _ value: String) {
      self.label = label
      self.value = value
    }
  }

  /// What is shown once the entry is opened.
  var details: [Detail] {
    let common = [Detail("URL", url.absoluteString), Detail("Session", session.name)]
    switch result {
    case .answered(let status, let headers, let bodyBytes):
      return common + [
        Detail("Status", "\(status)"), Detail("Verdict", verdict),
        Detail("Body", "\(bodyBytes) bytes"),
      ] + headers.sorted { $0.key < $1.key }.map { Detail("\($0.key):", $0.value) }
    case .refused(let evaluation):
      return common + Self.details(of: evaluation)
    case .failed(let reason):
      return common + [Detail("Reason", reason)]
    }
  }

  private static func details(of evaluation: PinEvaluation) -> [Detail] {
    var details = [
      Detail("Verdict", "\(evaluation)"), Detail("Host", evaluation.host),
      Detail("Rule", evaluation.rule), Detail("What may help", advice(for: evaluation)),
      Detail("Presented pins, leaf first", lines(evaluation.presented.map(\.base64))),
      Detail("Expected leaf pins", lines(evaluation.expectedLeaf.map(text))),
    ]
    if !evaluation.expectedCA.isEmpty {
      details.append(Detail("Expected CA pins", lines(evaluation.expectedCA.map(text))))
    }
    if let registry = evaluation.registry {
      details.append(Detail("Registry payload, SHA-256", registry.payloadDigest))
      details.append(Detail("Registry confirmed", date(registry.confirmationDate)))
    }
    return details
  }

  /// Words for people. None of them offers a request without pins.
  private static func advice(for evaluation: PinEvaluation) -> String {
    lines(
      evaluation.remedies.map { remedy in
        switch remedy {
        case .refresh: "Try again in a minute: the list may be about to change."
        case .otherNetwork: "Use another network: somebody on this one may be in the way."
        case .appUpdate: "Update the app."
        case .clock: "Check the date and time of the device."
        }
      })
  }

  private static func text(_ pin: Pin) -> String {
    pin.expirationDate.map { "\(pin.spki.base64), expires \(date($0))" } ?? pin.spki.base64
  }

  private static func date(_ date: Date) -> String { date.formatted() }

  private static func lines(_ texts: [String]) -> String {
    texts.isEmpty ? "none" : texts.joined(separator: "\n")
  }
}
