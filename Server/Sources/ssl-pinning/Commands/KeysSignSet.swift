import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `keys sign-set`: whose signatures count from an epoch on, signed by root keys that may lie apart.
enum KeysSignSet {
  private static let root = Flag.texts("--root", "PUB", "a root key of the new set")
  private static let rootThreshold = Flag.number(
    "--root-threshold", "K", "so many root keys must sign; needed where there are several",
    in: 1...1000)
  private static let online = Flag.texts("--online", "PUB", "an online key: signs statements")
  private static let onlineThreshold = Flag.number(
    "--online-threshold", "K", "so many online keys must sign; 1 by default", in: 1...1000)
  private static let previous = Flag.text(
    "--previous", "FILE", "the chain so far; left out for set 1")
  private static let epoch = Flag.number(
    "--epoch", "N", "the new set's number, as a check; the next one by default",
    in: 1...JSONNumber.greatestInteger)
  private static let expires = Flag.unixTime(
    "--expires", "nothing new is accepted under the set from then on; never by default")
  private static let signWith = Flag.texts(
    "--sign-with", "PRV", "a private root key, of this set or the one before")

  static let command = Command(
    "keys sign-set", "make the next key set of a registry, or sign it with another root key",
    argument: Argument(
      placeholder: "CHAIN.json", help: "sign the newest set of this chain, and make none",
      count: .optional),
    flags: [
      RegistryNameArgument.flag.description, root.description, rootThreshold.description,
      online.description, onlineThreshold.description, previous.description, epoch.description,
      expires.description, signWith.description, OutputFile.flag.description,
    ],
    notes: [
      "Prints the whole chain, for sign --key-sets and for the next sign-set. A new set needs --root\n"
        + "and --online; with CHAIN.json alone the newest set there is signed once more: so root keys\n"
        + "that lie apart sign one after another. What is still missing is told.",
      "What is to be signed is told first: compare the key ids with those that keys rotate printed.\n"
        + "Beside CHAIN.json, --root and --online (a key, or its id), the thresholds, --epoch, --expires and\n"
        + "--registry-name say what the set must be: another one is not signed. With --root or --online, all\n"
        + "that the set has must be said, its --epoch and --registry-name too. A set that is expired, has\n"
        + "more in it than is told, or a key of an algorithm that is not known here, is not signed. What reads\n"
        + "as an id or a key is one; ./NAME is a file of that name.",
      "Set n+1 needs enough root keys of set n and of set n+1. Set 1 needs what the app ships: the key\n"
        + "of signingKeyBase64, or its rootKeys; verify tells whether they signed.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    // Two people may sign the same file at once.
    try OutputFile.lock(invocation)
    var list: KeySetList
    if let path = invocation.arguments.first {
      list = try existing(path, invocation)
    } else {
      list = try extended(invocation)
    }
    let signers = try (invocation[signWith] ?? []).map { (path) throws(CommandFailure) in
      (path, try SigningKeyArgument.trustKey(path))
    }
    KeySetReport.say(of: list)
    if !invocation.arguments.isEmpty, let set = list.newest?.keySet {
      try refuse(set, unlessAsExpectedBy: invocation)
      try refuseUnsaid(of: set, invocation)
    }
    for (path, key) in signers {
      do throws(KeySetListError) { try list.sign(with: key) } catch {
        throw .no("\(path): \(error)")
      }
    }
    if let target = OutputFile.existing(invocation) {
      try OutputFile.refusePrivateKey(target)
      guard let there = try OutputFile.present(invocation).flatMap({ try? KeySetList($0.json) })
      else {
        throw .no("\(target) is there and is no chain of key sets; hint: another --out")
      }
      guard list.goesOn(from: there) else {
        throw .no(
          "key set \(there.sets.count) in \(target) would be lost: clients never go back;"
            + " hint: --previous \(target) makes the set after it")
      }
      // Each may have signed a copy of their own.
      list.unite(with: there)
    }
    try OutputFile.write(list.json, invocation)
    for shortage in list.shortages { Terminal.say("warning: \(shortage)") }
    return .yes
  }

  private static func existing(
    _ path: String, _ invocation: Invocation
  ) throws(CommandFailure) -> KeySetList {
    guard invocation[previous] == nil else {
      throw .usage(
        "CHAIN.json is signed as it is; hint: --previous \(path) makes the set after it")
    }
    guard invocation[signWith] != nil else {
      throw .usage("nobody signs; hint: --sign-with PRV")
    }
    return try KeySetFile.read(path, name: invocation[RegistryNameArgument.flag])
  }

  /// The set may have been changed on its way here: where it was said what it must be, it is no other.
  private static func refuse(
    _ set: KeySet, unlessAsExpectedBy invocation: Invocation
  ) throws(CommandFailure) {
    let name = "key set \(set.epoch)"
    let hint = "hint: the file is not what was expected, and nothing is signed"
    if let member = KeySetReport.surplus(in: set) {
      throw .no("\(name) has \"\(member)\", which is not shown here; \(hint)")
    }
    if let fault = KeySetReport.unusableKey(in: set) { throw .no("\(name) \(fault); \(hint)") }
    if let end = set.expires, set.isExpired(at: Int64(Date().timeIntervalSince1970)) {
      throw .no(
        "\(name) is expired since \(dateText(end)): no client would take anything under it; \(hint)"
      )
    }
    for (role, keys, threshold) in [
      (set.root, root, rootThreshold), (set.online, online, onlineThreshold),
    ] {
      let ids = try KeyArgument.trustKeyIDs(keys, invocation)
      guard ids.isEmpty || Set(ids) == Set(role.keys.map(\.id)) else {
        throw .no("\(name) has other keys than \(keys.description.name) says; \(hint)")
      }
      guard invocation[threshold] ?? Int64(role.threshold) == Int64(role.threshold) else {
        throw .no("\(name) is not as \(threshold.description.name) says; \(hint)")
      }
    }
    guard invocation[epoch] ?? set.epoch == set.epoch else {
      throw .no("\(name) is not as \(epoch.description.name) says; \(hint)")
    }
    guard invocation[expires] == nil || invocation[expires] == set.expires else {
      throw .no("\(name) is not as \(expires.description.name) says; \(hint)")
    }
  }

  /// Whoever says which keys of one role are to be signed means to be told of a chain that was changed. So
  /// the rest of the set is signed only if it was said, too. The set before is no measure: it comes in the
  /// same file, and whoever changed the one changed the other.
  private static func refuseUnsaid(
    of set: KeySet, _ invocation: Invocation
  ) throws(CommandFailure) {
    let said = [root, online].first { invocation[$0]?.isEmpty == false }
    guard let said = said?.description.name else { return }
    var unsaid: [String] = []
    for (role, keys, threshold) in [
      (set.root, root, rootThreshold), (set.online, online, onlineThreshold),
    ] {
      if invocation[keys]?.isEmpty != false { unsaid.append(keys.description.name) }
      if role.keys.count > 1, invocation[threshold] == nil {
        unsaid.append(threshold.description.name)
      }
    }
    if set.expires != nil, invocation[expires] == nil { unsaid.append(expires.description.name) }
    // A set of a later epoch, behind sets that others made up, has the keys that were meant, too.
    if invocation[epoch] == nil { unsaid.append(epoch.description.name) }
    if invocation[RegistryNameArgument.flag] == nil {
      unsaid.append(RegistryNameArgument.flag.description.name)
    }
    guard !unsaid.isEmpty else { return }
    throw .no(
      "\(said) says what is meant, and nobody says \(unsaid.joined(separator: ", "));"
        + " hint: compare with what was meant, then say"
        + " \(KeySetReport.expectation(of: set))")
  }

  private static func extended(_ invocation: Invocation) throws(CommandFailure) -> KeySetList {
    var list: KeySetList
    if let path = invocation[previous] {
      list = try KeySetFile.read(path, name: invocation[RegistryNameArgument.flag])
      try KeySetReport.refuseToLoseAlso(of: list, path)
    } else {
      list = KeySetList(registry: try invocation.require(RegistryNameArgument.flag))
    }
    let due = Int64(list.sets.count) + 1
    guard invocation[epoch] ?? due == due else {
      throw .usage("key set \(due) is due; hint: --previous names the chain so far")
    }
    if let end = invocation[expires], end <= Int64(Date().timeIntervalSince1970) {
      throw .no(
        "key set \(due) is expired since \(dateText(end)): no client would take anything under it;"
          + " hint: a later --expires")
    }
    let root = try role(root, rootThreshold, of: "root", default: nil, invocation)
    let online = try role(online, onlineThreshold, of: "online", default: 1, invocation)
    do throws(KeySetListError) {
      try list.append(root: root, online: online, expires: invocation[expires])
    } catch { throw .no("\(error)") }
    return list
  }

  private static func role(
    _ flag: Flag<[String]>, _ threshold: Flag<Int64>, of name: String, default number: Int64?,
    _ invocation: Invocation
  ) throws(CommandFailure) -> KeyRole {
    let keys = try KeyArgument.trustKeys(flag, invocation)
    guard !keys.isEmpty else {
      throw .usage("missing \(flag.description.usage): \(flag.description.help)")
    }
    guard let count = invocation[threshold] ?? (keys.count == 1 ? 1 : number) else {
      throw .usage("missing \(threshold.description.usage): \(threshold.description.help)")
    }
    do throws(DocumentFault) {
      var members: [RoleKey] = []
      for key in keys { members.append(try key.roleKey) }
      return try KeyRole(keys: members, threshold: Int(count))
    } catch { throw .usage("the \(name) role cannot be: \(error)") }
  }
}
