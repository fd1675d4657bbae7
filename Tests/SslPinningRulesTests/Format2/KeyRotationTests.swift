import Foundation
import SslPinningRules
import TestSupport
import Testing

/// The key-rotation tables of the TUF conformance suite (`Vectors/tuf/key_rotation_cases.json`).
@Suite("Rotation of root and online keys")
struct KeyRotationTests {
  struct Tables: Decodable {
    let root: [String: [Step]]
    let nonRoot: [String: [Step]]

    enum CodingKeys: String, CodingKey {
      case root = "root_rotation_cases"
      case nonRoot = "non_root_rotation_cases"
    }
  }
  struct Step: Decodable, Sendable {
    let keys: [Int]
    let threshold: Int
    let signers: [Int]
    let accept: Bool

    enum CodingKeys: String, CodingKey {
      case keys, threshold, accept
      case signers = "signed_by"
    }
  }
  struct Sequence: Sendable, CustomTestStringConvertible {
    let name: String
    let steps: [Step]
    var testDescription: String { name }
  }

  static func tables() throws -> Tables {
    try JSONDecoder().decode(
      Tables.self, from: Data(try Vectors.bytes("tuf/key_rotation_cases.json")))
  }

  static func sequences(_ table: KeyPath<Tables, [String: [Step]]>) -> [Sequence] {
    guard let tables = try? tables() else { return [] }
    return tables[keyPath: table].map { Sequence(name: $0.key, steps: $0.value) }
      .sorted { $0.name < $1.name }
  }

  @Test("the tables are whole")
  func whole() {
    #expect(Self.sequences(\.root).count == 15)
    #expect(Self.sequences(\.nonRoot).count == 10)
  }

  /// Signs statements of every epoch but the first.
  static let onlineKey = 11

  @Test("root keys", arguments: sequences(\.root))
  func root(sequence: Sequence) throws {
    let shipped = try #require(sequence.steps.first)
    let trust = try RegistrySimulator.trust(
      root: SimulatedKeys.role(shipped.keys, threshold: shipped.threshold))
    var registry = RegistrySimulator()
    registry.online = shipped.signers
    var client = try registry.client(under: trust)
    var epoch: Int64 = 0
    for step in sequence.steps.dropFirst() {
      try registry.add(
        root: SimulatedKeys.role(step.keys, threshold: step.threshold),
        online: SimulatedKeys.role([Self.onlineKey]), signedBy: step.signers)
      epoch += 1
      (registry.epoch, registry.online) = (epoch, [Self.onlineKey])
      let update = try client.update(with: registry, under: trust)
      #expect(
        (update.refusal == nil) == step.accept,
        "step \(epoch): \(String(describing: update.refusal))")
      #expect(update.registry.keySetEpoch == (step.accept ? epoch : epoch - 1))
      if !step.accept {
        switch update.refusal {
        case .invalidKeySet(epoch, .notSigned), .invalidKeySet(epoch, .tooFewSignatures): break
        case let other:
          Issue.record("\(String(describing: other))")
          return
        }
      }
      client = update.registry
      // A client that was away for the whole sequence comes to the same end.
      let document = try registry.document()
      if step.accept {
        #expect(
          try TrustedRegistry(accepting: document, under: trust, at: RegistrySimulator.start)
            .keySetEpoch == epoch)
      } else {
        #expect(throws: RegistryError.self) {
          try TrustedRegistry(accepting: document, under: trust, at: RegistrySimulator.start)
        }
      }
    }
  }

  @Test("online keys", arguments: sequences(\.nonRoot))
  func online(sequence: Sequence) throws {
    let trust = try RegistrySimulator.trust()
    var registry = RegistrySimulator()
    let client = try registry.client()
    for step in sequence.steps {
      try registry.add(
        root: SimulatedKeys.role([0]),
        online: SimulatedKeys.role(step.keys, threshold: step.threshold), signedBy: [0])
      (registry.epoch, registry.online) = (1, step.signers)
      let update = try client.update(with: registry, under: trust)
      #expect((update.refusal == nil) == step.accept)
      if !step.accept {
        // Distinct keys of the role; a threshold that is met would not be refused.
        let count = Set(step.keys).intersection(step.signers).count
        let signers = DocumentFault.Signers.onlineKeys(epoch: 1)
        #expect(
          update.refusal
            == .invalidStatement(
              count == 0
                ? .notSigned(by: signers)
                : .tooFewSignatures(of: signers, count: count, threshold: step.threshold)))
      }
      #expect(update.registry.keySetEpoch == 1)
      #expect(update.registry.stamp.version?.epoch == (step.accept ? 1 : 0))
    }
  }
}
