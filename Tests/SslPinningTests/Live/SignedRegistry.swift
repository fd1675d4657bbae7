import CanonicalJSON
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport

/// Documents of format 2 with real signatures: for what the scripted registry cannot say.
struct SignedRegistry {
  static let start: Int64 = 1_800_000_000
  static let name = "signed.json"

  /// The online keys by epoch; the first is the shipped one, which is the root as well.
  let keys: [TrustSigningKey]

  init(epochs: Int) throws {
    keys = try (0..<epochs).map {
      try TrustSigningKey(file: Vectors.root.appending(path: "registry/keys/\($0).pem"))
    }
  }

  func trust(minimum: RegistryMinimum? = nil) throws -> RegistryTrust {
    RegistryTrust(
      registry: Self.name, shipped: try KeyRole(keys: [keys[0].roleKey], threshold: 1),
      format1Key: nil, requiresStatement: true, minimum: minimum, crypto: PlatformRegistryCrypto())
  }

  func document(
    epoch: Int = 0, version: Int64, hosts: [String], settings: [HostSettings] = [],
    filler: Int = 0, issued: Int64 = start, mirrors: [String] = []
  ) throws -> [UInt8] {
    let payload = JSONValue.object([
      "keys": .array(
        hosts.map {
          .object([
            "domainName": .string($0),
            "key": .string(StrictBase64.encode([UInt8](repeating: 1, count: 32))),
          ])
        }),
      "filler": .string(String(repeating: "x", count: filler)),
    ])
    let statement = Statement(
      registry: Self.name, number: .init(epoch: Int64(epoch), version: version), issued: issued,
      expires: issued + 90 * 86400, payloadDigest: Digest.sha256(payload.canonicalBytes),
      hosts: settings, mirrors: try mirrors.map(RegistryMirror.init)
    ).json
    return JSONValue.object([
      "payload": payload, "statement": .object(statement),
      "statementSignatures": .array([
        try signature(
          of: keys[epoch], over: DocumentSignature.Domain.statement.bytes(over: statement))
      ]),
      "keySets": .array(try (1..<max(1, epoch + 1)).map(keySet)),
    ]).canonicalBytes
  }

  private func keySet(_ epoch: Int) throws -> JSONValue {
    let set = KeySet(
      registry: Self.name, epoch: Int64(epoch),
      root: try KeyRole(keys: [keys[0].roleKey], threshold: 1),
      online: try KeyRole(keys: [keys[epoch].roleKey], threshold: 1), expires: nil
    ).json
    return .object([
      "keySet": .object(set),
      "signatures": .array([
        try signature(of: keys[0], over: DocumentSignature.Domain.keySet.bytes(over: set))
      ]),
    ])
  }

  private func signature(of key: TrustSigningKey, over message: [UInt8]) throws -> JSONValue {
    DocumentSignature(by: key.roleKey.id, try key.sign(message)).json
  }
}
