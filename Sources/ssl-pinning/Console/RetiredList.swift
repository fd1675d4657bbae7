import CanonicalJSON
import Pinning

/// A list that `--key` alone signs beside a retired statement, whose hosts and denied pins stay in force.
enum RetiredList {
  /// Refuses a list that forgets leaf pins of hosts that the statement lists, itself or by a wider pattern. Clients
  /// do not keep the pins as they do for a host that vanishes.
  ///
  /// - Parameters:
  ///   - documents: what was published before.
  ///   - clock: Unix time in seconds.
  static func check(
    _ payload: JSONObject, under statement: Statement, after documents: [PublishedDocument],
    at clock: Int64
  ) throws(CommandFailure) {
    // A list without a usable key is refused as a whole.
    guard let list = try? Registry(payload: payload, settings: statement.hosts) else { return }
    let lost = ForgottenLeaves(
      before: documents.compactMap { $0.list(under: statement) }.flatMap(\.keys), list: list,
      removed: Set(statement.removed), denied: Set(statement.denied), time: clock)
    let forgotten = lost.patterns.filter { pattern in
      statement.hosts.contains { $0.pattern.covers(pattern) }
    }
    guard !forgotten.isEmpty else { return }
    let locked = forgotten.filter(lost.locksOut)
    let names = (locked.isEmpty ? forgotten : locked).map(\.description).sorted()
    throw .no(
      "the payload leaves out all pins of \(names.joined(separator: ", ")), and hosts of the retired statement"
        + " lists it, or a wider pattern: "
        + (locked.isEmpty
          ? "connections there would no longer need one of its leaf keys"
          : "every connection there would be refused at once")
        + "; hint: list the pins once more, or --retired signs the retirement anew, with a --statement that"
        + " leaves it out of hosts and names it in removed")
  }
}
