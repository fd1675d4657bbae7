import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// One registry under one app's settings at one time, and what must become of connections. A number in
/// `path` stands for the pin of 32 bytes of that value.
struct VerdictVector: Decodable, Sendable, CustomTestStringConvertible {
  struct App: Decodable, Sendable {
    var acceptsUnlisted = false
    var reportsOnly = false
    var keepsPinning = false
  }
  struct Verdict: Decodable, Sendable {
    let host: String
    /// The validated path, leaf first; `null` where there is none.
    let path: [UInt8]?
    let result: String
  }

  let name: String
  /// Documents that were accepted before it.
  let before: [String]?
  let document: String
  /// When the document is accepted, and when connections are judged.
  let accepted: Int64
  let clock: Int64
  let app: App
  let verdicts: [Verdict]

  var testDescription: String { name }

  static func all() throws -> [VerdictVector] {
    try JSONDecoder().decode([Self].self, from: Data(try Vectors.bytes("registry/verdicts.json")))
  }

  /// The results as the specification names them.
  static func result(_ evaluation: PinEvaluation) -> String {
    switch (evaluation.outcome, evaluation.decision) {
    case (.matched, .accept), (.unlisted, .accept): "accepted"
    case (.mismatch, .accept), (.noLivePin, .accept): "forgiven"
    case (.mismatch, .refuse), (.noLivePin, .refuse): "mismatch"
    case (.chainRejected, .refuse): "chain"
    case (.denied, .refuse): "denied"
    case (.registryExpired, .refuse): "expired"
    case (.unlisted, .refuse): "unlisted"
    case (.clientTooOld, .refuse): "client-too-old"
    default: "\(evaluation.outcome) \(evaluation.decision)"
    }
  }
}

@Suite("The verdicts of the registry format")
struct RegistryVerdictVectorTests {
  @Test("are as the table says, before and after a restart", arguments: try VerdictVector.all())
  func verdicts(vector: VerdictVector) throws {
    let trust = try RegistryVector(name: "", trust: .init(), steps: []).registryTrust()
    var taken: TrustedRegistry?
    for document in (vector.before ?? []) + [vector.document] {
      let bytes = try Vectors.bytes("registry/documents/\(document)")
      if let before = taken {
        let update = before.update(with: bytes, under: trust, at: vector.accepted)
        #expect(update.refusal == nil)
        taken = update.registry
      } else {
        taken = try TrustedRegistry(accepting: bytes, under: trust, at: vector.accepted)
      }
    }
    let first = try #require(taken)
    let restored = try TrustedRegistry(
      restoring: StoredState(decoding: first.state.encoded), under: trust, at: vector.clock)
    for registry in [first, restored] {
      let policy = try registry.policy(
        unlistedHosts: vector.app.acceptsUnlisted ? .systemTrust : .refuse,
        enforcement: vector.app.reportsOnly ? .reportOnly : .enforce,
        whenExpired: vector.app.keepsPinning ? .keepPinning : .refuse)
      for verdict in vector.verdicts {
        let host = try HostName(verdict.host)
        let path = (verdict.path ?? []).map(SPKIPin.test)
        let chain = ValidatedChain(host: host, path: path)
        let evaluation = policy.evaluate(
          ChainEvidence(
            presented: path, validation: chain.map { .success($0) } ?? .failure(.wrongHost)),
          host: host, at: registry.time(at: vector.clock))
        #expect(VerdictVector.result(evaluation) == verdict.result, "\(verdict)")
      }
    }
  }

  @Test("every result is there")
  func whole() throws {
    let results = Set(try VerdictVector.all().flatMap(\.verdicts).map(\.result))
    #expect(
      results == [
        "accepted", "forgiven", "mismatch", "chain", "denied", "expired", "unlisted",
        "client-too-old",
      ])
  }
}
