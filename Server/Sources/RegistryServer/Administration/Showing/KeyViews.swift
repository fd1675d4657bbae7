import CanonicalJSON
import RegistryCore
import SslPinningRules

extension KnownKey {
  /// As administrators see it.
  ///
  /// - Parameter grace: how long it is kept after it was missed, in seconds.
  func shown(grace: Int64, isDenied: Bool) -> JSONValue {
    .object([
      "pin": .string(pin.base64), "state": .string(state.rawValue), "denied": .bool(isDenied),
      "firstSeen": .integer(firstSeen), "lastSeen": .integer(lastSeen),
      "missedSince": .nullable(missedSince),
      "retiresAt": .nullable(missedSince.map { $0 + grace }),
      "certificateExpires": .nullable(certificateExpires),
      "staged": staged?.shown ?? .null,
    ])
  }
}

extension KnownKey.Staging {
  fileprivate var shown: JSONValue {
    .object(["at": .integer(at), "by": .string(by), "note": .string(note)])
  }
}

extension CandidateKey {
  /// As administrators see it.
  var shown: JSONValue {
    .object([
      "pin": .string(chain.leaf.pin.base64), "state": .string(state.rawValue),
      "firstSeen": .integer(firstSeen), "lastSeen": .integer(lastSeen), "probes": .count(probes),
      "reasons": .array(reasons.map(\.shown)),
      "vantages": .texts(vantages), "chain": .array(chain.path.map(\.shown)),
    ])
  }
}

extension CandidateKey.HoldReason {
  fileprivate var shown: JSONValue {
    .object(["reason": .string(rawValue), "explanation": .string(explanation)])
  }
}

extension SeenCertificate {
  /// As administrators see it.
  var shown: JSONValue {
    .object([
      "pin": .string(pin.base64), "subject": .string(subject), "issuer": .string(issuer),
      "notBefore": .nullable(notBefore == 0 ? nil : notBefore), "notAfter": .nullable(expiry),
    ])
  }
}
