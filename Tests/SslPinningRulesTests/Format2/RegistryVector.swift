import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// One case of `Vectors/registry/cases.json`: what a client trusts, the documents that come to it one
/// after the other, and what must become of each. `docs/registry-format.md` describes the members.
struct RegistryVector: Codable, Sendable, CustomTestStringConvertible {
  struct Minimum: Codable, Sendable {
    var epoch: Int64
    /// Unix time in seconds.
    var issued: Int64
  }
  struct Trust: Codable, Sendable {
    var registry = "example.json"
    /// Names of files in `keys/`.
    var rootKeys = ["0.pub.pem"]
    var threshold = 1
    var signingKey: String? = "rsa.pub.pem"
    var requireStatement = false
    /// Nothing older is believed, where the app ships that.
    var minimum: Minimum?
  }
  struct Step: Codable, Sendable {
    /// A file in `documents/`.
    var document: String
    /// A file in `documents/` that stands at the digest of a statement part.
    var payload: String?
    /// Whether the document came by another road than from a server.
    var handed: Bool?
    /// Unix time in seconds.
    var clock: Int64
    var outcome: String
    /// Epoch and version that are believed afterwards; none under format 1.
    var number: [Int64]?
    /// The newest key set that is believed afterwards, with or without a registry.
    var keySet: Int64
    /// The leaf pins that count afterwards, by host; `null` for a host that is not listed.
    var leaf: [String: [String]?]
    /// The CA pins, where the step says.
    var ca: [String: [String]?]?
    /// The keys that are denied.
    var denied: [String]?
    /// The mirrors that count.
    var mirrors: [String]?
    /// Hosts that are refused whatever a server shows, where the step says.
    var refused: [String]?
    /// Hosts that a server with the right keys is accepted for.
    var usable: [String]?
  }

  var name: String
  var trust: Trust
  var steps: [Step]

  var testDescription: String { name }

  static func all() throws -> [RegistryVector] {
    try JSONDecoder().decode([Self].self, from: Data(try Vectors.bytes("registry/cases.json")))
  }

  func registryTrust() throws -> RegistryTrust {
    let signingKey = try trust.signingKey.map {
      try VerificationKey(bytes: try Vectors.bytes("registry/keys/\($0)"))
    }
    return try RegistryTrust(
      registry: trust.registry,
      rootKeys: try trust.rootKeys.map {
        try TrustKey(bytes: try Vectors.bytes("registry/keys/\($0)"))
      }, threshold: trust.threshold, signingKey: signingKey,
      requiresStatement: trust.requireStatement,
      minimum: trust.minimum.map { .init(epoch: $0.epoch, issued: $0.issued) })
  }

  /// The outcomes as the specification names them.
  static func outcome(_ error: RegistryError?) -> String {
    switch error {
    case nil: "accepted"
    case .tooLarge, .malformed, .missingMember, .unreadableSignature: "malformed"
    case .badSignature: "bad-signature"
    case .noUsableKey: "no-usable-key"
    case .invalidKeySet: "key-set-invalid"
    case .keySetExpired: "key-set-expired"
    case .invalidStatement: "statement-invalid"
    case .statementExpired: "statement-expired"
    case .rolledBack, .olderThanShipped: "rolled-back"
    case .clientTooOld: "client-too-old"
    case .otherPayload: "other-payload"
    case .statementStripped: "statement-stripped"
    case .statementRequired: "statement-required"
    case .minimumRequired: "minimum-required"
    case .noFormat1Key: "no-format-1-key"
    case .unreadableState: "state"
    }
  }
}
