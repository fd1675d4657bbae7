import CanonicalJSON
import SslPinningRules
import TLSTools

/// The newest key set of a chain, as whoever is about to sign it must see it.
enum KeySetReport {
  /// Says on standard error what is to be signed.
  ///
  /// - Every key is told, changed or not: the set before comes in the same file, and whoever wrote the
  ///   one may have written the other.
  static func say(of list: KeySetList) {
    guard let set = list.newest?.keySet else { return }
    let before = list.sets.dropLast().last?.keySet
    var table = TextTable()
    table.add(["  registry", set.registry])
    add(set.root, before?.root, as: "root", to: &table)
    add(set.online, before?.online, as: "online", to: &table)
    table.add(["  expires", set.expires.map(dateText) ?? "never"])
    let changes = before.map { ", beside key set \($0.epoch)" } ?? ""
    Terminal.say("to be signed: key set \(set.epoch)\(changes)\n\(table.text)")
  }

  /// A member of the set that is not shown here, and that nobody signs unseen.
  static func surplus(in set: KeySet) -> String? {
    func first(_ object: JSONObject?, beside known: Set<String>) -> String? {
      object?.keys.sorted().first { !known.contains($0) }
    }
    if let name = first(
      set.json, beside: ["type", "registry", "epoch", "root", "online", "expires"])
    {
      return name
    }
    for member in ["root", "online"] {
      let role = set.json[member]?.objectValue
      let keys = role?["keys"]?.arrayValue ?? []
      let name =
        first(role, beside: ["keys", "threshold"])
        ?? keys.lazy.compactMap { first($0.objectValue, beside: ["alg", "spki"]) }.first
      if let name { return "\(member).\(name)" }
    }
    return nil
  }

  /// Says what is wrong with a key whose algorithm is not known here: no client that knows as much as this
  /// tool counts what it signs. Its id does not tell: it covers the key alone.
  static func unusableKey(in set: KeySet) -> String? {
    (set.root.keys + set.online.keys).first { !$0.isKnown }.map {
      "lists the key \($0.id) with the algorithm \($0.shownAlgorithm), and nothing that it signs would count"
    }
  }

  /// Refuses to make the set after one whose roles ask for keys under `also`. No command makes those, so it would
  /// be weaker, and nobody would have said so.
  static func refuseToLoseAlso(of list: KeySetList, _ path: String) throws(CommandFailure) {
    guard let set = list.newest?.keySet, set.root.also != nil || set.online.also != nil else {
      return
    }
    throw .no(
      "\(path): a role of key set \(set.epoch) has keys under \"also\", which this command does not"
        + " make; hint: write key set \(set.epoch + 1) by hand, with all of its roles")
  }

  /// The flags by which `keys sign-set` signs this set and no other.
  static func expectation(of set: KeySet) -> String {
    let roots = set.root.keys.map { "--root \($0.id)" } + ["--root-threshold \(set.root.threshold)"]
    let online = set.online.keys.map { "--online \($0.id)" }
    let threshold =
      set.online.keys.count == 1 ? [] : ["--online-threshold \(set.online.threshold)"]
    let end = set.expires.map { ["--expires \($0)"] } ?? []
    let name = ["--registry-name \(quoted(set.registry))", "--epoch \(set.epoch)"]
    return (name + roots + online + threshold + end).joined(separator: " ")
  }

  /// A name as a shell reads it: it comes from the file, and what is told here is copied into a shell.
  private static func quoted(_ name: String) -> String {
    let isPlain = name.utf8.allSatisfy {
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-".utf8.contains($0)
    }
    return isPlain && !name.isEmpty ? name : "'\(name.replacing("'", with: #"'\''"#))'"
  }

  private static func add(
    _ role: KeyRole, _ before: KeyRole?, as name: String, to table: inout TextTable
  ) {
    let count = "\(role.threshold) of \(role.keys.count) must sign"
    let old = before.map { $0.threshold == role.threshold ? "" : ", \($0.threshold) before" }
    table.add(["  \(name)", count + (old ?? "")])
    for key in role.keys {
      let isNew = before.map { !$0.keys.contains { $0.id == key.id } } ?? false
      table.add(["", "\(key.id) \(key.shownAlgorithm)\(isNew ? ", added" : "")"])
    }
    for key in before?.keys ?? [] where !role.keys.contains(where: { $0.id == key.id }) {
      table.add(["", "\(key.id) \(key.shownAlgorithm), removed"])
    }
    // One that is left is no member that is signed here.
    guard role.also == nil, let also = before?.also else { return }
    table.add(["", "besides \(also.threshold) of \(also.keys.count) had to sign, removed"])
    for key in also.keys { table.add(["", "\(key.id) \(key.shownAlgorithm), removed"]) }
  }
}

extension RoleKey {
  /// Whether clients that know as much as this tool count its signatures.
  var isKnown: Bool { SignatureAlgorithm(rawValue: algorithm) != nil }

  /// In quotes where it is not known: a blank more is one more algorithm.
  var shownAlgorithm: String { isKnown ? algorithm : "\"\(algorithm)\"" }
}

/// Files with the chain of key sets: the array that `keys sign-set` prints.
enum KeySetFile {
  /// Reads a chain.
  ///
  /// - Parameter name: the registry that it must be for, where that was said.
  static func read(_ path: String, name: String?) throws(CommandFailure) -> KeySetList {
    let json = try InputFile.json(path)
    return try list(json, InputFile.name(of: path), name: name)
  }

  /// Reads the chain of a file or a document.
  static func list(
    _ json: JSONValue, _ place: String, name: String?
  ) throws(CommandFailure) -> KeySetList {
    let list: KeySetList
    do throws(KeySetListError) { list = try KeySetList(json) } catch {
      throw .no("\(place): \(error)")
    }
    guard name.map({ $0.utf8.elementsEqual(list.registry.utf8) }) ?? true else {
      throw .no("\(place) is of the registry \"\(list.registry)\"; hint: --registry-name")
    }
    return list
  }
}

extension KeySetList {
  /// Whether a key that apps may ship signed set 1.
  func isSigned(by key: SigningKey) -> Bool {
    guard let first = sets.first,
      let shipped = try? KeyRole(keys: [key.trustKey.roleKey], threshold: 1)
    else { return false }
    return !first.signers(of: shipped).isEmpty
  }

  /// Whether this chain has all sets of an older one; more may follow.
  func goesOn(from older: KeySetList?) -> Bool {
    guard let older else { return true }
    return sets.count >= older.sets.count
      && zip(sets, older.sets).allSatisfy { $0.keySet.json == $1.keySet.json }
  }
}
