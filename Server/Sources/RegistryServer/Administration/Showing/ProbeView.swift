import CanonicalJSON
import RegistryCore
import SslPinningRules

extension LastProbe {
  /// What came of it, in a word and the first reason.
  var summary: JSONValue {
    let outcomes = probe.observations.map(\.outcome)
    let words = Set(outcomes.map(\.word))
    return .object([
      "at": .integer(at),
      "outcome": .string(words.count > 1 ? "mixed" : words.first ?? ProbeObservation.Outcome.nobody),
      "reason": .nullable(outcomes.lazy.compactMap(\.reason).first),
      "failures": .count(failures),
    ])
  }

  /// Every observation.
  var shown: JSONValue {
    .object([
      "at": .integer(at), "failures": .count(failures),
      "observations": .array(probe.observations.map(\.shown)),
    ])
  }
}

extension ProbeObservation {
  fileprivate var shown: JSONValue {
    var chain: [SeenCertificate] = []
    if case .accepted(let seen) = outcome { chain = seen.path }
    return .object([
      "vantage": .string(vantage), "address": .string(address), "outcome": .string(outcome.word),
      "reason": .nullable(outcome.reason), "presented": .nullable(outcome.presented),
      "chain": .array(chain.map(\.shown)),
    ])
  }
}

extension ProbeObservation.Outcome {
  /// What a probe without an observation came to.
  fileprivate static let nobody = "unreachable"

  fileprivate var word: String {
    switch self {
    case .accepted: "accepted"
    case .refused: "refused"
    case .unreachable: Self.nobody
    }
  }

  fileprivate var reason: String? {
    switch self {
    case .accepted: nil
    case .refused(let reason, _), .unreachable(let reason): reason
    }
  }

  fileprivate var presented: SPKIPin? {
    switch self {
    case .accepted(let chain): chain.leaf.pin
    case .refused(_, let presented): presented
    case .unreachable: nil
    }
  }
}
