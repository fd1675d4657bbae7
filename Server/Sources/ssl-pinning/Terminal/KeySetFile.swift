import CanonicalJSON
import SslPinningRules
import TLSTools

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
