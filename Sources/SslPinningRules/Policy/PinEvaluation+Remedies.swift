extension PinEvaluation {
  /// What may end a refusal. None of them checks less.
  public enum Remedy: String, Hashable, Sendable, CaseIterable {
    /// A newer list: the server may have changed its keys, or the host be new. Pinned requests ask for one by
    /// themselves, so it helps later rather than at once.
    case refresh
    /// A newer version of the app, which has what this one lacks.
    case appUpdate
    /// Another network: somebody on this one may show a certificate or a key of his own.
    case otherNetwork
    /// The right date and time on the device.
    case clock
  }

  /// What may end this refusal, the likeliest first; empty if only the app's developer or the server's operator can
  /// help, and for what was accepted.
  ///
  /// - A man in the middle looks like a server whose new key is not listed yet. So tell people both.
  /// - Hazard: a request without pins, or a mode that checks less, is no remedy. It is what an attacker waits for.
  public var remedies: [Remedy] {
    guard decision == .refuse else { return [] }
    // Pins that an app ships change with the app alone.
    let newerList = registry == nil ? Remedy.appUpdate : .refresh
    return switch outcome {
    case .matched, .clearText, .unreadableHost, .unjudged: []
    case .unlisted, .uncheckable: [newerList]
    case .noLivePin: [newerList, .clock]
    case .mismatch: [newerList, .otherNetwork]
    case .denied: [.otherNetwork]
    case .clientTooOld: [.appUpdate, newerList]
    case .registryExpired: [.refresh, .clock, .appUpdate]
    case .chainRejected(.outOfDate(_, _, mayBeEarly: true)) where registry != nil:
      [.clock, .refresh, .otherNetwork]
    case .chainRejected(.outOfDate): [.clock, .otherNetwork]
    case .chainRejected: [.otherNetwork]
    }
  }
}
