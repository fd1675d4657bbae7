import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `keys generate`: a pair of keys that a registry is signed and verified with.
///
/// - Existing files are never overwritten: whoever loses a signing key locks every app out.
/// - The private key is readable by its owner alone from its first byte on, and never printed.
/// - Both files come to be or none: what was written is taken back where the second fails.
enum KeysGenerate {
  private static let out = Flag.text(
    "--out", "DIR", "the directory for prv.pem and pub.pem; made where it is missing",
    isRequired: true)
  private static let algorithm = Flag<TrustSigningKey.Kind>(
    "--algorithm", "NAME",
    "rsa-4096 (default), rsa-3072, rsa-2048; p256 or ed25519 for statements and key sets only"
  ) { text throws(FlagValueError) in
    switch text {
    case "rsa-4096": return .rsa(bits: 4096)
    case "rsa-3072": return .rsa(bits: 3072)
    case "rsa-2048": return .rsa(bits: 2048)
    case "p256": return .p256
    case "ed25519": return .ed25519
    default: throw FlagValueError(wanted: "rsa-4096, rsa-3072, rsa-2048, p256 or ed25519")
    }
  }
  private static let root: Flag<String> = {
    var flag = Flag<String>(
      "--root", "DIR",
      "a root key as well, in DIR (root beside --out), and an online key under it"
    ) { text throws(FlagValueError) in text }.description
    flag.impliedValue = ""
    return Flag(description: flag)
  }()
  private static let names = Flag.texts(
    "--registry-name", "NAME",
    "with --root: a document that gets a key set; else the configuration's")
  private static let json = Flag("--json", "one line of JSON instead: key, its id, the files")

  static let command = Command(
    "keys generate", "make the keys that a registry is signed and verified with",
    flags: [
      out.description, algorithm.description, root.description, names.description, json.description,
    ] + ServerArguments.places,
    notes: [
      "Writes prv.pem (PKCS#8, mode 0600; keep it on the server, and a copy offline) and pub.pem, and\n"
        + "prints the public key as one line of base64: the app's signingKeyBase64. Never overwrites.",
      "Format 1 is RSA: signingKeyBase64 and the --key of sign must be. A p256 or ed25519 key is a\n"
        + "root or online key of format 2: for keys sign-set, sign --online-key, and the app's rootKeys.",
      "With --root the app gets two lines, signingKeyBase64 and rootKeys. The root key signs who signs\n"
        + "lists, and is needed for nothing else: carry it away. The server has an online key under it, in\n"
        + "online, and a key set for each document, in keysets. If the server is robbed, keys rotate and\n"
        + "the root key shut the thief out of every app that has the second line.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let kind = invocation[algorithm] ?? .rsa(bits: 4096)
    var ceremony: KeysGenerateRoot?
    let directory = URL(filePath: try invocation.require(out), directoryHint: .isDirectory)
    let path = directory.path(percentEncoded: false)
    let files = (
      privateKey: directory.appending(path: "prv.pem"),
      publicKey: directory.appending(path: "pub.pem")
    )
    for file in [files.privateKey, files.publicKey] {
      let path = file.path(percentEncoded: false)
      // Asked before a second is spent on the key; the exclusive creation below is what counts.
      guard !InputFile.exists(path) else { throw exists(path) }
    }
    if let place = invocation[root] {
      guard case .rsa = kind else {
        throw .usage("--root goes beside a format-1 key, which is RSA; hint: --algorithm rsa-4096")
      }
      let beside = directory.standardizedFileURL.deletingLastPathComponent()
      ceremony = try KeysGenerateRoot(
        beside: directory.standardizedFileURL,
        root: place.isEmpty
          ? beside.appending(path: "root", directoryHint: .isDirectory)
          : URL(filePath: place, directoryHint: .isDirectory).standardizedFileURL,
        for: try documents(invocation))
    } else if invocation[names] != nil {
      throw .usage("--registry-name goes with --root")
    }
    try OutputFile.makePrivateDirectory(path)
    let key: TrustSigningKey
    do throws(SigningKeyError) {
      key = try TrustSigningKey.generate(kind)
      try key.write(to: files.privateKey)
      do throws(SigningKeyError) { try key.writePublicKey(to: files.publicKey) } catch {
        // Nobody has used the key yet: it is seconds old, and ours.
        unlink(files.privateKey.path(percentEncoded: false))
        throw error
      }
    } catch {
      throw .couldNotFindOut(error.description)
    }
    do throws(CommandFailure) { try ceremony?.write(besides: key) } catch {
      unlink(files.privateKey.path(percentEncoded: false))
      unlink(files.publicKey.path(percentEncoded: false))
      throw error
    }
    let line = StrictBase64.encode(key.publicKeyDER)
    if invocation[json] {
      var members = JSONObject([
        ("algorithm", .string(key.algorithm.rawValue)), ("keyId", .string(key.roleKey.id.base64)),
        ("publicKey", .string(line)),
        ("privateKeyFile", .string(files.privateKey.path(percentEncoded: false))),
        ("publicKeyFile", .string(files.publicKey.path(percentEncoded: false))),
      ])
      for (name, value) in ceremony?.members ?? [] { members[name] = value }
      try Terminal.write(.object(members))
    } else if let ceremony {
      try Terminal.write(line: "signingKeyBase64: \"\(line)\"")
      try Terminal.write(line: "rootKeys: [\"\(ceremony.line)\"]")
    } else {
      try Terminal.write(line: line)
    }
    if !invocation[json] {
      Terminal.say(
        "wrote \(files.privateKey.path(percentEncoded: false)), the server's secret, and pub.pem")
    }
    for hint in ceremony?.hints(files.privateKey) ?? [] { Terminal.say(hint) }
    if key.algorithm != .rs512 {
      Terminal.say(
        "note: \(key.algorithm.rawValue) signs statements and key sets; format 1 needs RSA")
    }
    return .yes
  }

  /// The documents that get a key set: those that were named, else those of the configuration here; and where that
  /// has their key sets, if not in `tls.dir`.
  private static func documents(
    _ invocation: Invocation
  ) throws(CommandFailure) -> (names: [String], keySets: String?) {
    let configuration = try ServerArguments.configurationAtHand(invocation)?.configuration
    let keySets = configuration?.publishing.keySets
    guard let named = invocation[names] else {
      return (configuration?.documents.map(\.file) ?? [], keySets)
    }
    for name in named
    where !DocumentConfiguration.isSafe(file: name) || DocumentConfiguration.isTaken(file: name) {
      throw .usage("--registry-name is the name of a document; hint: www.example.com.json")
    }
    return (named, keySets)
  }

  private static func exists(_ path: String) -> CommandFailure {
    .couldNotFindOut("\(path) exists and is kept; hint: choose another --out, or move it away")
  }
}

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
  private let keySetDirectory: URL
  private let keySets: [(name: String, file: URL)]
  private var made: [URL] = []

  /// Chooses the places, and refuses those that are taken.
  ///
  /// - Parameters:
  ///   - directory: where the format-1 key goes, `tls.dir`.
  ///   - root: where the root key goes.
  ///   - documents: those that get a key set, and where; `nil` for below `directory`.
  init(
    beside directory: URL, root: URL, for documents: (names: [String], keySets: String?)
  ) throws(CommandFailure) {
    rootDirectory = root
    onlineFile = directory.appending(path: "online/first.pem")
    let place =
      documents.keySets.map { URL(filePath: $0, directoryHint: .isDirectory).standardizedFileURL }
      ?? directory.appending(path: "keysets", directoryHint: .isDirectory)
    keySetDirectory = place
    keySets = documents.names.map { ($0, place.appending(path: $0)) }
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
      try makeDirectory(keySetDirectory)
      for (name, file) in keySets {
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
          + " --root \(Self.path(rootDirectory.appending(path: "pub.pem")))"
          // A key's own text would be hidden.
          + " --online <(openssl pkey -pubout -in \(Self.path(onlineFile)))"
          + " --sign-with \(file) --sign-with \(Self.path(shippedFile))"
          + " --out \(Self.path(keySetDirectory.appending(path: "FILE")))")
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
