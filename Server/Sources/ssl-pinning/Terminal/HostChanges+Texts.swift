import SslPinningRules

/// What there is to say of it, by `sign` before it happens and by `verify` afterwards.
extension HostChanges {
  /// How a list was made, and so what an operator can do about it.
  enum Form {
    case format1, retired, statement

    init(_ statement: Statement?) {
      self = statement.map { $0.isRetired ? .retired : .statement } ?? .format1
    }

    fileprivate var hint: String {
      self == .format1
        ? "list the keys that its servers show under the host, too, or sign a statement, --online-key"
        : "list the pins once more"
    }
  }

  /// Hosts at which other leaf pins take the place of all. A statement can deny: what it denies by its name is meant.
  var replaced: String { names { $0.isReplaced && !$0.deniedRoles.contains(.leaf) } }

  /// The same, with patterns that are left out and have no key of theirs left.
  var cutOff: String {
    names { ($0.isReplaced || $0.isCutOff) && !$0.deniedRoles.contains(.leaf) }
  }

  /// Patterns without leaf pins of their own whose hosts a listed pattern matches, and all of whose keys are gone.
  var forgotten: String { names(\.isForgotten) }

  /// Everything that a list does which is no reason to refuse it by itself.
  func warnings(_ form: Form) -> [String] {
    narrowed + shortened(form) + grown + denied + (form == .statement ? [] : gone(form))
  }

  /// All that is to be told of a list that was signed already.
  func told(_ form: Form) -> [String] {
    let replaced =
      cutOff.isEmpty
      ? []
      : [
        "the payload replaces all leaf pins of \(cutOff): servers that show one of them are refused at once; hint: list"
          + " both, switch the servers, then leave the old one out"
      ]
    guard form == .statement else { return replaced + warnings(form) + letGo(form) }
    return replaced + warnings(form) + letGo(form) + gone(form)
      + takenBack.map { "the statement takes back \($0)" }
  }

  /// Of all leaf or CA pins of a host, denied at once: its servers may show none of the others yet.
  var denied: [String] {
    let roles: [(PinEvaluation.PinRole, String)] = [(.leaf, "leaf"), (.ca, "CA")]
    return roles.compactMap { role, text in
      let names = names { $0.isCutOff(byDenialOf: role) }
      return names.isEmpty
        ? nil
        : "all \(text) pins that \(names) had are denied from now on, and servers with one of them in their chain are"
          + " refused at once; hint: do they show other keys by now?"
    }
  }

  /// Of servers that need another role.
  var grown: [String] {
    let grown = all.filter(\.grows)
    let needs: [(roles: Set<PinEvaluation.PinRole>, text: String)] = [
      ([.leaf, .ca], "a leaf pin and a CA pin from now on, and needed one of the two before"),
      ([.leaf], "a leaf pin from now on, and needed none before"),
      ([.ca], "a CA pin from now on, and needed none before"),
    ]
    return needs.compactMap { roles, text in
      let names = Self.names(grown.filter { $0.after?.demandedRoles == roles })
      return names.isEmpty
        ? nil
        : "servers of \(names) need \(text); hint: match any in hosts, if either is to be enough"
    }
  }

  /// Of hosts that stay without the key of a wider pattern that goes: nobody keeps it for them.
  private var narrowed: [String] {
    let staying = all.filter { !$0.isReplaced && !$0.isBared && !$0.narrowed.isEmpty }
    let wide = Set(staying.flatMap(\.narrowed)).sorted { $0.description < $1.description }
    return wide.map { wide in
      "servers of \(Self.names(staying.filter { $0.narrowed.contains(wide) })) that show a key which \(wide) had are"
        + " refused at once; hint: list that key for them, too, if one shows it"
    }
  }

  /// Of patterns that are gone and keep some of their keys, by those of wider patterns, and not all.
  private func shortened(_ form: Form) -> [String] {
    let forgotten = Set(patterns(\.isForgotten))
    let names = names { $0.isShortened && !forgotten.contains($0.pattern) }
    return names.isEmpty
      ? []
      : [
        "the payload leaves out \(names), and a wider pattern lists only some of its keys: servers that show the others"
          + " are refused at once; hint: \(form.hint)"
      ]
  }

  /// Of those that a list of format 1 lets go of at once.
  func letGo(_ form: Form) -> [String] {
    forgotten.isEmpty
      ? []
      : [
        "the payload leaves out \(forgotten), and a wider pattern matches hosts of it: clients let go of its pins at"
          + " once, and go by those of the wider one alone; hint: \(form.hint)"
      ]
  }

  /// Of those that a list leaves out: nothing in it says that this is meant, and the list that follows does not
  /// know what clients keep.
  private func gone(_ form: Form) -> [String] {
    let names = names { $0.isUnlisted && !$0.isListed && !$0.isRemoved && !$0.served.isEmpty }
    return names.isEmpty
      ? []
      : [
        "the payload leaves out \(names): clients keep the last pins \(form == .statement ? "in this epoch" : "for 30 days"),"
          + " and new ones refuse every connection there; \(Self.comeback); hint: "
          + (form == .format1
            ? form.hint : form.hint + ", or name the host in removed, of the statement")
      ]
  }

  /// No document knows what clients keep of older ones.
  static let comeback =
    "a later list that has it again replaces the pins that are kept, all at once"

  /// What the next statement takes back of these hosts.
  var takenBack: [String] {
    patterns(\.isOpened).map { "match all of \($0)" }
      + patterns(\.losesCA).map { "the CA pins of \($0)" }
      + patterns(\.replacesCA).map { "the CA pins of \($0), all of them" }
  }

  /// The patterns of these hosts, as messages name them.
  func names(_ isSuch: (HostChange) -> Bool) -> String { Self.names(all.filter(isSuch)) }

  private static func names(_ changes: [HostChange]) -> String {
    Set(changes.map(\.pattern.description)).sorted().joined(separator: ", ")
  }
}
