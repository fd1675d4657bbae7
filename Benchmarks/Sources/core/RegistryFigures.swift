import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

/// What a client does with a registry of many hosts, step by step.
struct RegistryFigures {
  private let document: [UInt8]
  private let key: VerificationKey
  private let envelope: RegistryEnvelope
  private let policy: PinningPolicy
  private let hosts: [HostName]
  private let evidence: ChainEvidence

  /// Reads the document's hosts; `certificate` is the one that every host shows. It is on no list,
  /// so every verdict is a refusal, the longest way through the rules.
  init(document: [UInt8], key: [UInt8], certificate: [UInt8]) throws {
    self.document = document
    self.key = try VerificationKey(bytes: key)
    envelope = try RegistryEnvelope(parsing: document)
    let registry = try Registry(format1: try envelope.verifiedPayload(by: self.key))
    policy = try PinningPolicy(entries: registry.policyEntries, trust: .pinnedKeysOnly)
    hosts = try registry.keys.compactMap(\.fqdn).map { try HostName($0) }
    guard let first = hosts.first else { throw RegistryError.noUsableKey }
    evidence = try ChainValidator(trust: .pinnedKeysOnly)
      .evidence(presented: [certificate], host: first)
  }

  func measured(seconds: Double) throws -> [(name: String, perSecond: Double)] {
    var next = 0
    let now: Int64 = 1_795_000_000
    return [
      (
        "documents_read_and_verified_per_s",
        try Measurement.rate(seconds: seconds) {
          let envelope = try RegistryEnvelope(parsing: document)
          return try Registry(format1: try envelope.verifiedPayload(by: key)).policyEntries
        }
      ),
      (
        "signature_verifications_per_s",
        Measurement.rate(seconds: seconds) {
          key.isValid(signature: envelope.signature, over: envelope.canonicalPayload)
        }
      ),
      (
        "policy_evaluations_per_s",
        Measurement.rate(seconds: seconds) {
          next = next + 1 == hosts.count ? 0 : next + 1
          return policy.evaluate(evidence, host: hosts[next], at: now)
        }
      ),
    ]
  }
}
