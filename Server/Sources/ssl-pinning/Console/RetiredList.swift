import CanonicalJSON
import SslPinningRules

/// A list that `--key` alone signs: beside a retired statement, whose hosts and denied pins stay in force, or of
/// format 1.
enum RetiredList {
  /// Refuses a list that forgets leaf pins of hosts that the statement lists, itself or by a wider pattern. Clients
  /// do not keep the pins as they do for a host that vanishes.
  ///
  /// - Parameters:
  ///   - documents: what was published before.
  ///   - clock: Unix time in seconds.
  ///   - loosens: whether the operator means it where all leaf pins of a host are replaced.
  static func check(
    _ payload: JSONObject, under statement: Statement, after documents: [PublishedDocument],
    at clock: Int64, loosens: Bool
  ) throws(CommandFailure) {
    // A list without a usable key is refused as a whole.
    guard let list = try? Registry(payload: payload, settings: statement.hosts) else { return }
    let lists = documents.compactMap { $0.list(under: statement) }
    let listed = lists.reduce(into: Set()) { $0.formUnion($1.patterns) }
    let opened = Loosening.opened(
      from: statement.hosts, beside: listed, to: statement.hosts, beside: list.patterns,
      removed: Set(statement.removed).subtracting(list.patterns)
    ).map(\.description).sorted()
    guard opened.isEmpty else {
      throw .no(
        "the payload leaves out pins without which hosts of \(opened.joined(separator: ", ")) have match any by the"
          + " retired statement: connections there would no longer need a leaf key; hint: list the pins once"
          + " more, or --retired signs the retirement anew, with a --statement that has no match any there, or names"
          + " the host in removed")
    }
    let before = lists.flatMap(\.keys)
    let denied = Set(statement.denied)
    let changes = HostChanges(
      before: before, settingsBefore: statement.hosts, list: list, denied: denied, time: clock,
      living: LivingPins(before, open: [], denied: denied, at: clock))
    changes.warnOfGrown()
    try changes.refuseReplaced(unless: loosens)
    changes.warnOfGone(
      Set(statement.removed),
      hint:
        "list the pins once more, or --retired signs the retirement anew, with the host in removed")
    let lost = ForgottenLeaves(
      before: before, list: list, removed: Set(statement.removed), denied: denied, time: clock)
    lost.warnOfNarrower(than: list.patterns)
    warn(ofShortened: lost, hint: "list the pins once more")
    let gone = lost.patterns
    let forgotten = gone.filter { pattern in
      statement.hosts.contains { $0.pattern.touches(pattern) }
    }
    let others = Set(gone).subtracting(forgotten).map(\.description)
    if !others.isEmpty {
      Console.say(
        "warning: the payload leaves out \(others.sorted().joined(separator: ", ")), and a wider pattern matches hosts"
          + " of it: clients go by the pins of that one at once; hint: list the pins once more")
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

  /// Refuses a list of format 1 that replaces all leaf pins of a host, and warns of one that forgets hosts, or leaf
  /// pins of those which a wider pattern matches. That is signed: format 1 has nothing that would say that it is meant.
  static func check(
    _ payload: JSONObject, after documents: [PublishedDocument], at clock: Int64, loosens: Bool
  ) throws(CommandFailure) {
    guard let list = try? Registry(payload: payload, settings: []) else { return }
    let before = documents.compactMap { $0.list(under: nil) }.flatMap(\.keys)
    let living = LivingPins(before, open: [], denied: [], at: clock)
    let hint =
      "list the keys that its servers show under the host, too, or sign a statement, --online-key"
    let changes = HostChanges(
      before: before, settingsBefore: [], list: list, denied: [], time: clock, living: living)
    changes.warnOfGrown()
    try changes.refuseReplaced(unless: loosens)
    changes.warnOfGone(hint: hint)
    let lost = ForgottenLeaves(
      before: before, list: list, removed: [], denied: [], time: clock, living: living)
    lost.warnOfNarrower(than: list.patterns)
    let forgotten = lost.patterns.map(\.description).sorted().joined(separator: ", ")
    if !forgotten.isEmpty {
      Console.say(
        "warning: the payload leaves out \(forgotten), and a wider pattern matches hosts of it: clients let go of its"
          + " pins at once, and go by those of the wider one alone; hint: \(hint)")
    }
    warn(ofShortened: lost, hint: hint)
  }

  private static func warn(ofShortened lost: ForgottenLeaves, hint: String) {
    let shortened = lost.shortened.map(\.description).sorted().joined(separator: ", ")
    if !shortened.isEmpty {
      Console.say(
        "warning: the payload leaves out \(shortened), and a wider pattern lists only some of its keys: servers that"
          + " show the others are refused at once; hint: \(hint)")
    }
  }
}
