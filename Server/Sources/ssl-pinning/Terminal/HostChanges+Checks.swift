import SslPinningRules

/// What `sign` refuses of it.
extension HostChanges {
  /// Judges a list that `--key` alone signs, of format 1 or beside a retired statement whose hosts and denied pins
  /// stay in force. Refused is what replaces all leaf pins of a host, or forgets those of a host of the statement:
  /// clients do not keep them as they do for a host that vanishes. All else is told: format 1 has nothing that
  /// would say that it is meant.
  ///
  /// - Parameters:
  ///   - retired: the statement; `nil` in format 1.
  ///   - loosens: whether the operator means it where all leaf pins of a host are replaced.
  func checkList(beside retired: Statement?, loosens: Bool) throws(CommandFailure) {
    try refuseOpened()
    try refuseForgotten { change in
      retired?.hosts.contains { $0.pattern.matches(change.host) } == true
    }
    try refuse(replaced: cutOff, unless: loosens)
    let form = Form(retired)
    Terminal.warn(warnings(form) + letGo(form))
  }

  /// Judges the list under a new statement, save for what ``takenBack`` has.
  func checkStatement(loosens: Bool) throws(CommandFailure) {
    try refuseLockedOut()
    let names = names { $0.isForgotten && !$0.isListed }
    guard !loosens else {
      return Terminal.warn(
        names.isEmpty
          ? [] : ["the statement takes back the pins of \(names): a wider pattern is left"])
    }
    guard names.isEmpty else {
      throw .no(
        "the payload leaves out \(names), and a wider pattern matches hosts of it: clients would let go of its pins at"
          + " once, and go by those of the wider one alone; hint: list the host once more, or name it in removed in"
          + " --statement")
    }
  }

  /// Refuses to replace leaf pins, or tells of it if that is meant.
  func refuse(replaced names: String, unless loosens: Bool) throws(CommandFailure) {
    guard !names.isEmpty else { return }
    let text = "the payload replaces all leaf pins of \(names): servers that show one of them"
    guard !loosens else { return Terminal.warn([text + " are refused at once"]) }
    throw .no(
      text + " would be refused at once;"
        + " hint: list both, switch the servers, then leave the old one out; or --allow-loosening")
  }

  /// Refuses a list that forgets the pins of hosts that have no others. That is never meant.
  private func refuseLockedOut() throws(CommandFailure) {
    let names = names { $0.isForgotten && $0.isRefused }
    guard names.isEmpty else {
      throw .no(
        "the payload leaves out all pins of \(names), and hosts of the statement lists it, or a wider pattern: every"
          + " connection there would be refused at once; hint: list the pins once more, or let --statement leave it"
          + " out of hosts and name it in removed")
    }
  }

  private func refuseOpened() throws(CommandFailure) {
    let names = names(\.isOpened)
    guard names.isEmpty else {
      throw .no(
        "the payload leaves out pins without which hosts of \(names) have match any by the retired statement:"
          + " connections there would no longer need a leaf key; hint: list the pins once more, or --retired signs the"
          + " retirement anew, with a --statement that has no match any there, or names the host in removed"
      )
    }
  }

  private func refuseForgotten(_ isOfStatement: (HostChange) -> Bool) throws(CommandFailure) {
    let locked = names { $0.isForgotten && $0.isRefused && isOfStatement($0) }
    let names = locked.isEmpty ? names { $0.isForgotten && isOfStatement($0) } : locked
    guard !names.isEmpty else { return }
    throw .no(
      "the payload leaves out all pins of \(names), and hosts of the retired statement lists it, or a wider pattern: "
        + (locked.isEmpty
          ? "connections there would no longer need one of its leaf keys"
          : "every connection there would be refused at once")
        + "; hint: list the pins once more, or --retired signs the retirement anew, with a --statement that"
        + " leaves it out of hosts and names it in removed")
  }
}
