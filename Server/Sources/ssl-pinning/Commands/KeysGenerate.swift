import CanonicalJSON
import Foundation
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
  private static let json = Flag("--json", "one line of JSON instead: key, its id, the files")

  static let command = Command(
    "keys generate", "make the keys that a registry is signed and verified with",
    flags: [out.description, algorithm.description, json.description],
    notes: [
      "Writes prv.pem (PKCS#8, mode 0600; keep it on the server, and a copy offline) and pub.pem, and\n"
        + "prints the public key as one line of base64: the app's signingKeyBase64. Never overwrites.",
      "Format 1 is RSA: signingKeyBase64 and the --key of sign must be. A p256 or ed25519 key is a\n"
        + "root or online key of format 2: for keys sign-set, sign --online-key, and the app's rootKeys.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
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
    do {
      try FileManager.default.createDirectory(
        at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw .couldNotFindOut("cannot make the directory \(path): \(OutputFile.reason(error))")
    }
    let key: TrustSigningKey
    do throws(SigningKeyError) {
      key = try TrustSigningKey.generate(invocation[algorithm] ?? .rsa(bits: 4096))
      try key.write(to: files.privateKey)
      do throws(SigningKeyError) { try key.writePublicKey(to: files.publicKey) } catch {
        // Nobody has used the key yet: it is seconds old, and ours.
        unlink(files.privateKey.path(percentEncoded: false))
        throw error
      }
    } catch {
      throw .couldNotFindOut(error.description)
    }
    if invocation[json] {
      try Console.write(
        .members([
          "algorithm": .string(key.algorithm.rawValue), "keyId": .string(key.roleKey.id.base64),
          "publicKey": .string(StrictBase64.encode(key.publicKeyDER)),
          "privateKeyFile": .string(files.privateKey.path(percentEncoded: false)),
          "publicKeyFile": .string(files.publicKey.path(percentEncoded: false)),
        ]))
    } else {
      try Console.write(line: StrictBase64.encode(key.publicKeyDER))
    }
    if key.algorithm != .rs512 {
      Console.say(
        "note: \(key.algorithm.rawValue) signs statements and key sets; format 1 needs RSA")
    }
    return .yes
  }

  private static func exists(_ path: String) -> CommandFailure {
    .couldNotFindOut("\(path) exists and is kept; hint: choose another --out, or move it away")
  }
}
