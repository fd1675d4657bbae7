import FaultLab
import Foundation
import SslPinning
import SslPinningRules

/// What there is to tell of a request.
struct PlaygroundStory {
  let title: String
  let details: [(String, String)]
  private let isAnswered: Bool
  private let isRefused: Bool
  private let isStolen: Bool

  /// - Parameters:
  ///   - stolen: what an attacker read.
  ///   - name: names a key by its pin.
  init(
    _ result: PlaygroundClients.Result, over kind: PlaygroundSession, to url: URL,
    stolen: FaultLab.HTTPRequest?, _ clients: PlaygroundClients, _ name: (String) -> String
  ) {
    func keys(_ pins: [String]) -> String {
      pins.isEmpty ? "none" : pins.map { "\($0) (\(name($0)))" }.joined(separator: "\n")
    }
    func pins(_ verdict: PinEvaluation) -> [(String, String)] {
      [
        ("Presented pins, leaf first", keys(verdict.presented.map(\.base64))),
        ("Expected leaf pins", keys(verdict.expectedLeaf.map(\.spki.base64))),
      ]
    }
    var details = [("URL", url.absoluteString), ("Session", kind.rawValue)]
    var refusal: PinEvaluation?
    switch result {
    case .answered(let status, let headers, let body):
      isAnswered = true
      title = stolen == nil ? "\(status), served" : "\(status), and the attacker read it"
      details += [("Status", "\(status)"), ("Body", body)]
      if kind == .pinned, let verdict = clients.verdict(on: url.host ?? "") {
        details += [("Verdict", "\(verdict)")] + pins(verdict)
      } else {
        details.append(("Verdict", "none: any certificate of the CA will do"))
      }
      details += headers.sorted { $0.key < $1.key }.map { ("Header \($0.key)", $0.value) }
    case .refused(let verdict):
      isAnswered = false
      refusal = verdict
      title = "refused: \(verdict.rule)"
      details += [("Verdict", "\(verdict)"), ("Rule", verdict.rule)] + pins(verdict)
    case .failed(let reason):
      isAnswered = false
      title = stolen == nil ? "failed" : "failed, and the attacker read it"
      details.append(("Reason", reason))
    }
    if let stolen {
      let secret = stolen.header("Authorization").map { ", Authorization: \($0)" } ?? ""
      details.append(("The attacker read", "\(stolen.method) \(stolen.target)\(secret)"))
    }
    isRefused = refusal != nil
    isStolen = stolen != nil
    self.details = details
  }

  /// - Parameter isForeign: whether an attacker stands before the host, or it is none of the app's.
  func fate(isForeign: Bool) -> PlaygroundFate {
    if isStolen { return .read }
    if isAnswered { return .served }
    guard isRefused else { return .failed }
    return isForeign ? .protected : .refused
  }
}
