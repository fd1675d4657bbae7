import Foundation
import Pinning
import TLSTools

/// `keys generate`: the pair of keys that a registry is signed and verified with.
///
/// - Existing files are never overwritten: whoever loses a signing key locks every app out.
/// - The private key is readable by its owner alone from its first byte on, and never printed.
/// - Both files come to be or none: what was written is taken back where the second fails.
enum KeysGenerate {
  private static let out = Flag.text(
    "--out", "DIR", "the directory for prv.pem and pub.pem; made where it is missing",
    isRequired: true)
  private static let algorithm = Flag<Int>(
    "--algorithm", "NAME", "rsa-4096 (default), rsa-3072 or rsa-2048"
  ) { text throws(FlagValueError) in
    switch text {
    case "rsa-4096": return 4096
    case "rsa-3072": return 3072
    case "rsa-2048": return 2048
    default: throw FlagValueError(wanted: "rsa-4096, rsa-3072 or rsa-2048")
    }
  }

  static let command = Command(
    "keys generate", "make the keys that a registry is signed and verified with",
    flags: [out.description, algorithm.description],
    notes: [
      "Writes prv.pem (PKCS#8, mode 0600; keep it on the server, and a copy offline) and pub.pem, and\n"
        + "prints the public key as one line of base64: the app's signingKeyBase64. Never overwrites."
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
      throw .couldNotFindOut("cannot make the directory \(path): \(reason(error))")
    }
    let key: SigningKey
    do throws(SigningKeyError) {
      key = try SigningKey.generate(bits: invocation[algorithm] ?? 4096)
      try key.write(to: files.privateKey)
      do throws(SigningKeyError) { try key.writePublicKey(to: files.publicKey) } catch {
        // Nobody has used the key yet: it is seconds old, and ours.
        unlink(files.privateKey.path(percentEncoded: false))
        throw error
      }
    } catch {
      throw .couldNotFindOut(error.description)
    }
    try Console.write(line: StrictBase64.encode(key.publicKeyDER))
    return .yes
  }

  private static func exists(_ path: String) -> CommandFailure {
    .couldNotFindOut("\(path) exists and is kept; hint: choose another --out, or move it away")
  }

  /// Foundation's sentences name neither the cause nor keep to our case; its codes do.
  private static func reason(_ error: any Error) -> String {
    switch (error as? CocoaError)?.code {
    case .fileWriteFileExists: "a file is in its place"
    case .fileWriteNoPermission, .fileReadNoPermission: Console.reason(EACCES)
    case .fileWriteVolumeReadOnly: Console.reason(EROFS)
    case .fileWriteOutOfSpace: Console.reason(ENOSPC)
    case .fileNoSuchFile, .fileReadNoSuchFile: Console.reason(ENOENT)
    case .fileWriteUnknown: "a part of the path is no directory"
    default: error.localizedDescription
    }
  }
}
