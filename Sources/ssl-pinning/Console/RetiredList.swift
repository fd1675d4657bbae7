import CanonicalJSON
import Pinning

/// A list that `--key` alone signs beside a retired statement, whose hosts and denied pins stay in force.
enum RetiredList {
  /// Refuses a list without a leaf pin for a host that had some, and that the statement lists. Clients do not
  /// keep the pins as they do for a host that vanishes.
  ///
  /// - Parameter documents: what was published before.
  static func check(
    _ payload: JSONObject, under statement: Statement, after documents: [PublishedDocument]
  ) throws(CommandFailure) {
    // A list without a usable key is refused as a whole.
    guard let list = try? Registry(payload: payload, settings: statement.hosts) else { return }
    let before = documents.compactMap { $0.list(under: statement) }.flatMap(\.keys)
    let gone = Set(before.map(\.pattern)).subtracting(list.keys.map(\.pattern))
    let forgotten = statement.hosts.filter { gone.contains($0.pattern) }
    guard !forgotten.isEmpty else { return }
    let denied = Set(statement.denied)
    let locked = forgotten.filter { denied.isSuperset(of: $0.ca) }
    let names = (locked.isEmpty ? forgotten : locked).map(\.pattern.description).sorted()
    throw .no(
      "the payload leaves out all pins of \(names.joined(separator: ", ")), and hosts of the retired statement"
        + " lists it: "
        + (locked.isEmpty
          ? "any certificate under its CA pins would be let in"
          : "every connection there would be refused at once")
        + "; hint: list the pins once more, or --retired signs the retirement anew, with a --statement that"
        + " leaves it out of hosts")
  }
}
