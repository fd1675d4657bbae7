import CanonicalJSON

extension PinEvaluation: CustomStringConvertible {
  /// One line: host, what happened, and the hint that helps most.
  public var description: String {
    let text =
      switch outcome {
      case .matched: "pins match"
      case .unlisted: "the host is on no pin list"
      case .chainRejected(let fault): "chain not valid: \(fault)"
      case .mismatch(.leaf): "the server's key is not pinned"
      case .mismatch(.ca): "no CA on the validated path is pinned"
      case .mismatch(.certificate): "no certificate on the validated path is a pinned one"
      case .noLivePin: "the host is listed, and none of its pins can be used"
      case .uncheckable(let role): "its entry demands \(role), which pinnedKeysOnly cannot check"
      case .clientTooOld(let names):
        "its entry demands what this version does not know: "
          + ForeignText.list(names)
      case .registryExpired(let time): "the registry expired on \(RFC3339.text(time))"
      case .denied(let pin): "key \(pin) is denied"
      case .clearText(let scheme): "\(scheme) is clear text"
      case .unreadableHost(let error): "\(error)"
      case .unjudged(let reason): "connection not judged: \(reason)"
      }
    let verb = decision == .accept ? "accepted" : "refused"
    return "\(verb) \(host): \(text)\(hint.map { "; hint: \($0)" } ?? "")"
  }

  /// What helps, where something does.
  public var hint: String? {
    guard decision == .refuse else { return nil }
    return switch outcome {
    case .chainRejected(let fault) where fault.isEarly: "is the device's clock behind?"
    // Never towards a mode or a session that checks less: somebody on the way is met with the same
    // words.
    case .chainRejected(let fault) where fault.lacksAnchor:
      "if the server is under a CA of your own, pass that CA's certificate with .anchors"
    case .unlisted: "add the host to the list"
    case .registryExpired:
      "is the device's clock ahead? is the registry reachable, and does its server still sign?"
    case .uncheckable: "list leaf pins alone for this host"
    case .clientTooOld: "update the app"
    case .clearText: "use https"
    default: nil
    }
  }

  /// The rule that decided, as one word for logs and reports.
  public var rule: String {
    switch outcome {
    case .matched: "matched"
    case .unlisted: "unlisted-host"
    case .chainRejected(.wrongHost): "host-name"
    case .chainRejected: "chain"
    case .mismatch(.leaf): "leaf-pin"
    case .mismatch(.ca): "ca-pin"
    case .mismatch(.certificate): "certificate-pin"
    case .noLivePin: "expired-pins"
    case .uncheckable: "trust-mode"
    case .clientTooOld: "client-too-old"
    case .registryExpired: "expired-registry"
    case .denied: "denied-key"
    case .clearText: "clear-text"
    case .unreadableHost: "unreadable-host"
    case .unjudged: "unjudged"
    }
  }
}

extension PinEvaluation.PinRole: CustomStringConvertible {
  public var description: String {
    switch self {
    case .leaf: "leaf pins"
    case .ca: "CA pins"
    case .certificate: "whole certificates"
    }
  }
}
