import CanonicalJSON
import Foundation
import RegistryCore
import RegistryServer
import SslPinningRules
import TLSTools

/// `keys rotate`: a new online key for one document of a server, under the next key set.
///
/// - Nothing that was is overwritten: the new key gets a file of its own, and the chain of key sets only
///   grows. Clients walk the chain, so none of them notices.
/// - The name is that of a document of the configuration at hand: under another one nothing would be rotated,
///   and whoever did it to be rid of a stolen key would believe that he was.
/// - A next set goes on from all that was published, by the copy in `publish.dir` and by the store: an older `tls.dir`
///   that was put back knows less, and clients that hold the newest set believe no other one of its number.
/// - Root keys may lie elsewhere: what still lacks signatures waits in the same file, and the server goes
///   on under the set before until `keys sign-set` has completed it.
enum KeysRotate {
  private static let directory = Flag.text(
    "--dir", "DIR", "the server's tls.dir, with prv.pem; the configuration's by default, or tls")
  private static let algorithm = Flag<TrustSigningKey.Kind>(
    "--algorithm", "NAME", "of the new online key: ed25519 (default), p256 or rsa-3072"
  ) { text throws(FlagValueError) in
    switch text {
    case "ed25519": return .ed25519
    case "p256": return .p256
    case "rsa-3072": return .rsa(bits: 3072)
    default: throw FlagValueError(wanted: "ed25519, p256 or rsa-3072")
    }
  }
  private static let onlineKey = Flag.text(
    "--online-key", "FILE",
    "a private key that is there, or the file of a command that signs, instead of a new key")
  private static let root = Flag.texts(
    "--root", "PUB", "a root key of the new set; by default those of the set before, or prv.pem")
  private static let rootThreshold = Flag.number(
    "--root-threshold", "K", "so many root keys must sign; needed with several --root",
    in: 1...1000)
  private static let signWith = Flag.texts(
    "--sign-with", "PRV", "a private root key; prv.pem signs by itself where it is one")
  private static let first = Flag(
    "--first", "say that the document never had a key set, where that cannot be found out")
  private static let epoch = Flag.number(
    "--epoch", "N",
    "the new set's number, as a check; needed where nothing tells which was the last",
    in: 2...JSONNumber.greatestInteger)

  static let command = Command(
    "keys rotate", "give one document of a server a new online key, under the next key set",
    flags: [
      RegistryNameArgument.flag.description, directory.description,
    ] + ServerArguments.places + [
      algorithm.description, onlineKey.description,
      root.description, rootThreshold.description, signWith.description, first.description,
      epoch.description,
    ],
    notes: [
      "Writes DIR/online/NAME-EPOCH.pem and extends DIR/keysets/NAME; NAME is the document's file.\n"
        + "Then SIGHUP has the server sign under the new set. Where root signatures are missing, they\n"
        + "are told: carry DIR/keysets/NAME to where the root keys are, let keys sign-set sign it, and\n"
        + "put it back. Until then the server signs under the set before. There, compare the id of the\n"
        + "online key with the one printed here, or say all that the hint says, from --registry-name to\n"
        + "--online ID: the file may be changed on its way.",
      "NAME must be a document of the configuration: the one that is named, or config.yaml here or in\n"
        + "/etc/ssl-pinning if its tls.dir is DIR. Without one, nothing can say whether NAME is right.",
      "The next set goes on from what publish.dir and the store tell of the last one. If they cannot be asked,\n"
        + "--first says that there was none, or --epoch N that the one before it was the last: clients that hold\n"
        + "another set N believe nothing that is signed under this one.",
      "If signing.command signs in place of prv.pem, it is run wherever that would sign. With --online-key no\n"
        + "key is made and none is written: the server must have it by publish.online_keys before.",
      "Old online keys stay in DIR/online: delete one when its set is no longer the newest.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let name = try invocation.require(RegistryNameArgument.flag)
    let place = try place(of: name, invocation)
    let path = place.keySets + "/" + name
    try OutputFile.lock(beside: path)
    var list =
      InputFile.exists(path)
      ? try KeySetFile.read(path, name: name) : KeySetList(registry: name)
    try KeySetReport.refuseToLoseAlso(of: list, path)
    if let shortage = list.shortages.first {
      throw .no("\(path): \(shortage); hint: let keys sign-set complete it first")
    }
    let shipped = try shippedKey(place)
    try await checkPublished(list, path, place, invocation)
    let epoch = list.sets.count + 1
    let (online, keyName) = (place.keys + "/online", "\(name)-\(epoch).pem")
    let given = try givenKey(invocation, place)
    guard given != nil || !InputFile.exists(online + "/" + keyName) else {
      throw .no(
        "\(online)/\(keyName) is there, and no key set \(epoch); hint: delete the key"
          + " if a rotation broke off, or put the newest \(path) back")
    }
    let key: TrustSigningKey
    do throws(SigningKeyError) {
      key = if let given { given } else { try .generate(invocation[algorithm] ?? .ed25519) }
    } catch { throw .couldNotFindOut("\(error)") }
    let root = try rootRole(after: list, shipped, invocation)
    let onlineRole = try role([key.roleKey], threshold: 1)
    do throws(KeySetListError) { try list.append(root: root, online: onlineRole) } catch {
      throw .no("\(error)")
    }
    if let fault = list.newest.flatMap({ KeySetReport.unusableKey(in: $0.keySet) }) {
      throw .no("key set \(epoch) \(fault); hint: --root names the root keys anew")
    }
    // Set 1 is signed by the shipped key; later ones where it is among the roots.
    let signers = try SigningKeyArgument.trustKeys(invocation[signWith] ?? []) + [shipped]
    KeySetReport.say(of: list)
    if epoch == 1 { warnOfOthers(signers.dropLast(), than: root) }
    for signer in signers {
      do throws(KeySetListError) { try list.sign(with: signer) } catch {
        guard case .notARootKey = error, signer.roleKey.id == shipped.roleKey.id else {
          throw .no("\(error)")
        }
      }
    }
    // The key first: a chain that names a key which is nowhere would stop the server's signing.
    if given == nil {
      try OwnedDirectory(online, like: place.keys).write(key, called: keyName)
    }
    let keySets = try OwnedDirectory(place.keySets, like: place.keys)
    try keySets.replace(name, with: list.json.canonicalBytes + [0x0a])
    try Terminal.write(line: "key set \(epoch) of \(name): online key \(key.roleKey.id.base64)")
    for shortage in list.shortages { Terminal.say("warning: \(shortage)") }
    let wanted = list.newest.map { KeySetReport.expectation(of: $0.keySet) } ?? ""
    Terminal.say(
      list.shortages.isEmpty
        ? "hint: send the server SIGHUP, and it signs under the new set"
        : "hint: keys sign-set \(wanted) signs it, and no other set in its place")
    // Key sets say nothing of tokens: the thief would go on listing keys as an administrator, under the new set.
    if epoch > 1, let source = place.configuration?.tokenSource {
      Terminal.say(
        "hint: if the key before was stolen, its thief may have \(source), too, and make administrators' tokens:"
          + " another server.key ends them all, also at SIGHUP")
    }
    return .yes
  }

  /// The online key that is there already. A set that names one which the server does not have would stop its signing.
  private static func givenKey(
    _ invocation: Invocation, _ place: Place
  ) throws(CommandFailure) -> TrustSigningKey? {
    guard let path = invocation[onlineKey] else { return nil }
    let known = place.configuration?.publishing.onlineKeys ?? [path]
    guard known.contains(where: { isSame($0, path) }) else {
      throw .no(
        "publish.online_keys does not have \(path), and the server could sign nothing under the new set; hint: name"
          + " it there, and start the server anew")
    }
    return try SigningKeyArgument.trustKey(path)
  }

  /// The key that apps ship.
  private static func shippedKey(_ place: Place) throws(CommandFailure) -> TrustSigningKey {
    do throws(SigningKeyError) {
      if let key = try place.configuration?.publishing.signing.key { return key }
    } catch { throw .couldNotFindOut("signing.command: \(error)") }
    return try SigningKeyArgument.trustKey(place.keys + "/prv.pem")
  }

  /// Where a server keeps what belongs to a document, and what it published.
  private struct Place {
    let keys: String
    let keySets: String
    /// `nil` where no configuration is at hand.
    var configuration: ServerConfiguration?
  }

  /// Refuses a chain that does not go on from what was published.
  private static func checkPublished(
    _ list: KeySetList, _ path: String, _ place: Place, _ invocation: Invocation
  ) async throws(CommandFailure) {
    let due = Int64(list.sets.count) + 1
    guard invocation[epoch] ?? due == due else {
      throw .usage("key set \(due) is due, as \(path) tells; hint: put the newest one there")
    }
    guard due == 1 || !invocation[first] else {
      throw .usage("\(path) has key set \(due - 1); hint: leave --first out")
    }
    try await PublishedKeySets(of: list.registry, in: place.configuration).check(
      list, path, isSaid: invocation[first] || invocation[epoch] != nil,
      hint: due == 1
        ? "--first says that it had none" : "--epoch \(due) says that \(due - 1) was the last")
  }

  /// Anybody may sign set 1: the app may ship root keys that are not here.
  private static func warnOfOthers(_ signers: some Sequence<TrustSigningKey>, than root: KeyRole) {
    for id in signers.map(\.roleKey.id) where !root.keys.contains(where: { $0.id == id }) {
      Terminal.say(
        "warning: \(id) of --sign-with is no root key of key set 1: it counts for apps that ship it as one, and"
          + " signs no later set; hint: --root names the root keys")
    }
  }

  /// The directories of the server that publishes a document.
  private static func place(
    of name: String, _ invocation: Invocation
  ) throws(CommandFailure) -> Place {
    // It names files here.
    guard DocumentConfiguration.isSafe(file: name), !DocumentConfiguration.isTaken(file: name)
    else {
      throw .usage("--registry-name is the name of a document; hint: www.example.com.json")
    }
    let given = invocation[directory]
    let atHand = try ServerArguments.configurationAtHand(invocation)
    guard let atHand,
      ServerArguments.isNamed(invocation) || given == nil
        || isSame(given, atHand.configuration.tls.directory)
    else {
      Terminal.say(
        "note: no configuration here says which documents there are; hint: with --config-file"
          + " the name is checked")
      let keys = given ?? "tls"
      return Place(keys: keys, keySets: keys + "/keysets")
    }
    let configuration = atHand.configuration
    let files = configuration.documents.map(\.file)
    guard files.contains(name) else {
      let nearest = Suggestion.nearest(to: name, among: files)
      throw .no(
        "\(atHand.file ?? "the configuration") has no document \"\(name)\"; hint: "
          + (nearest.map { "was \($0) meant?" }
            ?? "there is \(files.prefix(5).joined(separator: ", "))"))
    }
    let keys = given ?? configuration.tls.directory
    return Place(
      keys: keys, keySets: configuration.publishing.keySets ?? keys + "/keysets",
      configuration: configuration)
  }

  private static func isSame(_ left: String?, _ right: String) -> Bool {
    guard let left else { return false }
    return URL(filePath: left).resolvingSymlinksInPath().standardizedFileURL.pathComponents
      == URL(filePath: right).resolvingSymlinksInPath().standardizedFileURL.pathComponents
  }

  private static func rootRole(
    after list: KeySetList, _ shipped: TrustSigningKey, _ invocation: Invocation
  ) throws(CommandFailure) -> KeyRole {
    let given = try KeyArgument.trustKeys(root, invocation)
    guard !given.isEmpty else {
      if let newest = list.newest { return newest.keySet.root }
      return try role([shipped.roleKey], threshold: 1)
    }
    guard let threshold = invocation[rootThreshold] ?? (given.count == 1 ? 1 : nil) else {
      throw .usage(
        "missing \(rootThreshold.description.usage): \(rootThreshold.description.help)")
    }
    do throws(DocumentFault) {
      var members: [RoleKey] = []
      for key in given { members.append(try key.roleKey) }
      return try KeyRole(keys: members, threshold: Int(threshold))
    } catch { throw .usage("the root role cannot be: \(error)") }
  }

  private static func role(
    _ keys: [RoleKey], threshold: Int
  ) throws(CommandFailure) -> KeyRole {
    do throws(DocumentFault) { return try KeyRole(keys: keys, threshold: threshold) } catch {
      throw .no("\(error)")
    }
  }
}
