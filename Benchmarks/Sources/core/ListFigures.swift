import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

/// What a client does with a list, from the bytes to a policy.
struct ListFigures {
  private let document: [UInt8]
  private let key: VerificationKey
  // A list beyond the default limit shows how cost grows.
  private let limits = RegistryLimits(maximumBytes: 64 << 20)

  init(document: [UInt8], key: [UInt8]) throws {
    self.document = document
    self.key = try VerificationKey(bytes: key)
  }

  /// The whole way; the memory of its first pass, over the document's own size.
  func whole(_ budget: Measurement.Budget) throws -> [(String, Double)] {
    let peak = try Usage.peakBytes { try policy(of: try envelope()) }
    let seconds = try Measurement.seconds(budget) { try policy(of: try envelope()) }
    return [
      ("list_ms", seconds * 1000), ("peak_mb", Double(peak) / 1e6),
      ("peak_times_document", Double(peak) / Double(document.count)),
    ]
  }

  /// Its parts, in milliseconds.
  func parts(_ budget: Measurement.Budget) throws -> [(String, Double)] {
    let envelope = try envelope()
    return [
      ("parse_ms", try Measurement.seconds(budget) { try self.envelope() } * 1000),
      (
        "signature_ms",
        Measurement.seconds(budget) {
          key.isValid(signature: envelope.signature, over: envelope.canonicalPayload)
        } * 1000
      ),
      (
        "sha512_ms",
        Measurement.seconds(budget) { Digest.sha512(envelope.canonicalPayload) } * 1000
      ),
      ("verify_and_policy_ms", try Measurement.seconds(budget) { try policy(of: envelope) } * 1000),
    ]
  }

  private func envelope() throws -> RegistryEnvelope {
    try RegistryEnvelope(parsing: document, limits: limits)
  }

  private func policy(of envelope: RegistryEnvelope) throws -> PinningPolicy {
    let registry = try Registry(format1: try envelope.verifiedPayload(by: key))
    return try PinningPolicy(entries: registry.policyEntries)
  }
}
