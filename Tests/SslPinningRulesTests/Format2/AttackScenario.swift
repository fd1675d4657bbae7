import SslPinningRules
import TestSupport
import Testing

/// One row of `Vectors/tuf/scenarios.tsv`, and what it comes to on this registry.
struct AttackScenario: Sendable, CustomTestStringConvertible {
  let id: String
  let attack: String
  let upstream: String
  let mapping: String

  var testDescription: String { "\(id) \(attack): \(mapping)" }

  static func all() throws -> [AttackScenario] {
    try Vectors.rows("tuf/scenarios.tsv").map { row in
      try #require(row.count == 6)
      return AttackScenario(id: row[0], attack: row[1], upstream: row[2], mapping: row[5])
    }
  }
}
