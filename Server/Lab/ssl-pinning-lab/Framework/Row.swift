/// One scenario of the drill.
struct Row: Sendable {
  /// What happens in it. The outcomes can be made only from requests that were dialled, so a row
  /// without its control or its assertion does not compile, or fails.
  enum Scenario: Sendable {
    /// Something that operators and devices do. Nobody may be locked out by it.
    case change(@Sendable (ChangeLog) async throws -> ChangeOutcome)
    /// Something that attackers do. Nobody may be let in by it.
    case attack(@Sendable () async throws -> AttackOutcome)
  }

  /// What the row is called, in the table and for `--filter`.
  let name: String
  let scenario: Scenario

  static func change(
    _ name: String, _ body: @escaping @Sendable (ChangeLog) async throws -> ChangeOutcome
  ) -> Row {
    Row(name: name, scenario: .change(body))
  }

  static func attack(
    _ name: String, _ body: @escaping @Sendable () async throws -> AttackOutcome
  ) -> Row {
    Row(name: name, scenario: .attack(body))
  }

  var isAttack: Bool { if case .attack = scenario { true } else { false } }
}
