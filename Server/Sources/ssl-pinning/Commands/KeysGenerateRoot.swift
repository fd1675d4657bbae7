import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What `keys generate --root` makes beside the format-1 key: a root key for a drawer, an online key for the server,
/// and key sets in which the one vouches for the other.
///
/// - The private root key is in a directory of its own, which the server never reads: whoever steals all that the
///   server has is shut out by the next key set, without a release.
/// - The format-1 key signs the sets, too: apps that ship it alone follow them.
/// - What was written is taken back if something later fails.
struct KeysGenerateRoot {
  private let root: TrustSigningKey
  private let online: TrustSigningKey
  private let rootDirectory: URL
  private let onlineFile: URL
  private let keySets: [(name: String, file: URL)]
  private var made: [URL] = []

  /// Chooses the places, and refuses those that are taken.
  ///
  /// - Parameters:
  ///   - directory: where the format-1 key goes, `tls.dir`.
  ///   - root: where the root key goes.
  ///   - names: of documents that get a key set.
  init(beside directory: URL, root: URL, names: [String]) throws(CommandFailure) {
    rootDirectory = root
    onlineFile = directory.appending(path: "online/first.pem")
    keySets = names.map { ($0, directory.appending(path: "keysets").appending(path: $0)) }
    guard Self.path(root).hasPrefix(Self.path(directory)) == false else {
      throw .usage(
        "the root key does not belong into \(Self.path(directory)); hint: --root=DIR elsewhere")
    }
    let files =
      [root.appending(path: "prv.pem"), root.appending(path: "pub.pem"), onlineFile]
      + keySets.map(\.file)
    for file in files where InputFile.exists(Self.path(file)) {
      throw .couldNotFindOut("\(Self.path(file)) exists and is kept; hint: move it away")
    }
    do throws(SigningKeyError) {
      self.root = try .generate(.ed25519)
      online = try .generate(.ed25519)
    } catch { throw .couldNotFindOut("\(error)") }
  }

  /// Writes the keys and the sets.
  mutating func write(besides shipped: TrustSigningKey) throws(CommandFailure) {
    do throws(CommandFailure) {
      try makeDirectory(rootDirectory)
      try makeDirectory(onlineFile.deletingLastPathComponent())
      do throws(SigningKeyError) {
        let files = (
          rootDirectory.appending(path: "prv.pem"), rootDirectory.appending(path: "pub.pem")
        )
        try root.write(to: files.0)
        made.append(files.0)
        try root.writePublicKey(to: files.1)
        made.append(files.1)
        try online.write(to: onlineFile)
        made.append(onlineFile)
      } catch { throw .couldNotFindOut("\(error)") }
      for (name, file) in keySets {
        try makeDirectory(file.deletingLastPathComponent())
        let bytes = try keySet(of: name, shipped).json.canonicalBytes + [0x0a]
        try OutputFile.replace(Self.path(file), with: bytes, called: Self.path(file))
        made.append(file)
      }
    } catch {
      // Nobody has used them yet: they are seconds old, and ours.
      for file in made { unlink(Self.path(file)) }
      throw error
    }
  }

  private func keySet(
    of name: String, _ shipped: TrustSigningKey
  ) throws(CommandFailure) -> KeySetList {
    var list = KeySetList(registry: name)
    do {
      try list.append(
        root: KeyRole(keys: [root.roleKey], threshold: 1),
        online: KeyRole(keys: [online.roleKey], threshold: 1))
      for key in [root, shipped] { try list.sign(with: key) }
    } catch { throw .couldNotFindOut("\(error)") }
    return list
  }

  /// The line for an app's `rootKeys`.
  var line: String { StrictBase64.encode(root.publicKeyDER) }

  /// What `--json` says besides.
  var members: [(String, JSONValue)] {
    [
      ("rootKey", .string(line)), ("rootKeyId", .string(root.roleKey.id.base64)),
      ("rootPrivateKeyFile", .string(Self.path(rootDirectory.appending(path: "prv.pem")))),
      ("onlineKeyId", .string(online.roleKey.id.base64)),
      ("onlinePrivateKeyFile", .string(Self.path(onlineFile))),
      ("keySetFiles", .array(keySets.map { .string(Self.path($0.file)) })),
    ]
  }

  /// What is left to do.
  func hints(_ shippedFile: URL) -> [String] {
    let file = Self.path(rootDirectory.appending(path: "prv.pem"))
    var hints = [
      "note: \(file) is the root key: carry it off this machine, and keep a copy elsewhere"
    ]
    if keySets.isEmpty {
      hints.append(
        "hint: each document needs a key set: ssl-pinning keys sign-set --registry-name FILE"
          + " --root \(line) --online \(StrictBase64.encode(online.publicKeyDER))"
          + " --sign-with \(file) --sign-with \(Self.path(shippedFile))"
          + " --out \(Self.path(shippedFile.deletingLastPathComponent()))keysets/FILE")
    }
    return hints
  }

  private func makeDirectory(_ directory: URL) throws(CommandFailure) {
    do {
      try FileManager.default.createDirectory(
        at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw .couldNotFindOut(
        "cannot make the directory \(Self.path(directory)): \(OutputFile.reason(error))")
    }
  }

  private static func path(_ file: URL) -> String { file.path(percentEncoded: false) }
}
