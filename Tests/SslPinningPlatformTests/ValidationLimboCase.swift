import Foundation
import SslPinningRules
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
  let trustedCerts: [String]
  let untrustedIntermediates: [String]
  let peerCertificate: String
  let validationTime: String?
  let expectedResult: String
  let expectedPeerName: Peer?
  /// The most certificates between leaf and anchor; `nil` where the case sets no limit.
  let maxChainDepth: Int32?

  /// The anchors, in DER.
  var trusted: [[UInt8]] { get throws { try trustedCerts.map(Self.der) } }

  /// The leaf and what was sent beside it, in DER.
  var presented: [[UInt8]] {
    get throws { try ([peerCertificate] + untrustedIntermediates).map(Self.der) }
  }

  /// Unix seconds; `nil` means now.
  var unixSeconds: Int64? { validationTime.flatMap(RFC3339.unixSeconds) }

  private static func der(_ pem: String) throws -> [UInt8] {
    try #require(try PEMBlock.blocks(in: [UInt8](pem.utf8)).first).bytes
  }

  private struct File: Decodable { let testcases: [LimboCase] }

  static func all() throws -> [LimboCase] {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let data = Data(try Vectors.bytes("x509-limbo/limbo_core.json"))
    return try decoder.decode(File.self, from: data).testcases
  }
}
