import Foundation
import Pinning
import TestSupport
import Testing

/// One chain of x509-limbo, with what must come of it.
struct LimboCase: Decodable, Sendable {
  struct Peer: Decodable, Sendable {
    let kind: String
    let value: String
  }

  let id: String
  let features: [String]
  let trusted_certs: [String]
  let untrusted_intermediates: [String]
  let peer_certificate: String
  let validation_time: String?
  let expected_result: String
  let expected_peer_name: Peer?

  /// The anchors, in DER.
  var trusted: [[UInt8]] { get throws { try trusted_certs.map(Self.der) } }

  /// The leaf and what was sent beside it, in DER.
  var presented: [[UInt8]] {
    get throws { try ([peer_certificate] + untrusted_intermediates).map(Self.der) }
  }

  /// Unix seconds; `nil` means now.
  var unixSeconds: Int64? { validation_time.flatMap(RFC3339.unixSeconds) }

  private static func der(_ pem: String) throws -> [UInt8] {
    try #require(try PEMBlock.blocks(in: [UInt8](pem.utf8)).first).bytes
  }

  private struct File: Decodable { let testcases: [LimboCase] }

  static func all() throws -> [LimboCase] {
    try JSONDecoder().decode(
      File.self, from: Data(try Vectors.bytes("x509-limbo/limbo_core.json"))
    ).testcases
  }
}
