import SslPinningPlatform
import SslPinningRules

/// Public keys on the command line: a file, or the key's text itself.
enum KeyArgument {
  private static let spellings = "a file, or its text; PEM, base64 of PEM, base64 of DER"

  /// The `--key` of commands that verify.
  static let flag = Flag.text(
    "--key", "KEY", "the public key: \(spellings) (SPKI or PKCS#1)", isRequired: true)

  /// The same, for commands that can do without.
  static let optionalFlag = Flag.text(
    "--key", "KEY", "the app's signingKeyBase64, pub.pem: \(spellings) (SPKI or PKCS#1)")

  /// The largest file that is read as a key.
  static let maximumBytes = 1 << 20
  /// The base64 of the smallest RSA key has more characters; a shorter text was meant as a file.
  private static let shortestRSA = 180
  /// The same for Ed25519: 44 bytes.
  private static let shortestCurve = 56

  /// Reads the key of ``flag`` or ``optionalFlag``.
  ///
  /// - Throws: what could not be read is ``CommandFailure/couldNotFindOut(_:)``, what was read and is
  ///   no key ``CommandFailure/no(_:)``.
  static func read(_ invocation: Invocation) throws(CommandFailure) -> VerificationKey {
    try read(
      try invocation.require(flag), "--key", shortest: shortestRSA, invocation,
      bytes: { (bytes) throws(VerificationKeyError) in try VerificationKey(bytes: bytes) },
      text: { (text) throws(VerificationKeyError) in try VerificationKey(text) })
  }

  /// Reads the keys of a role; any algorithm that key sets know.
  static func trustKeys(
    _ flag: Flag<[String]>, _ invocation: Invocation
  ) throws(CommandFailure) -> [TrustKey] {
    var keys: [TrustKey] = []
    for text in invocation[flag] ?? [] { keys.append(try trustKey(text, flag, invocation)) }
    return keys
  }

  /// The ids of the keys of a role; a key may be named by its id alone, and a file of such a name as `./NAME`.
  static func trustKeyIDs(
    _ flag: Flag<[String]>, _ invocation: Invocation
  ) throws(CommandFailure) -> [SPKIPin] {
    var ids: [SPKIPin] = []
    for text in invocation[flag] ?? [] {
      // Whoever writes files here must not choose what an id means.
      if let id = try? SPKIPin(base64: text) {
        ids.append(id)
        continue
      }
      let key = try trustKey(text, flag, invocation)
      do throws(DocumentFault) { ids.append(try key.roleKey.id) } catch {
        throw .no("\(flag.description.name): \(error)")
      }
    }
    return ids
  }

  private static func trustKey(
    _ text: String, _ flag: Flag<[String]>, _ invocation: Invocation
  ) throws(CommandFailure) -> TrustKey {
    try read(
      text, flag.description.name, shortest: shortestCurve, invocation,
      bytes: { (bytes) throws(VerificationKeyError) in try TrustKey(bytes: bytes) },
      text: { (text) throws(VerificationKeyError) in try TrustKey(text) })
  }

  private static func read<Key>(
    _ argument: String, _ flag: String, shortest: Int, _ invocation: Invocation,
    bytes fromBytes: ([UInt8]) throws(VerificationKeyError) -> Key,
    text fromText: (String) throws(VerificationKeyError) -> Key
  ) throws(CommandFailure) -> Key {
    try InputFile.refuseSharedInput(argument, invocation)
    // Whoever writes files here must not choose what a key's text means; ./NAME is a file of that name.
    if let key = try? fromText(argument) { return key }
    if argument == InputFile.standardInput || InputFile.exists(argument) {
      let bytes = try InputFile.read(argument, limit: maximumBytes)
      do throws(VerificationKeyError) { return try fromBytes(bytes) } catch {
        throw .no("\(argument): \(error)")
      }
    }
    do throws(VerificationKeyError) { return try fromText(argument) } catch {
      guard argument.utf8.count >= shortest || InputFile.isText(argument) else {
        throw .couldNotFindOut(
          "cannot read \(argument): no such file; hint: \(flag) takes pub.pem or the base64 in it")
      }
      throw .no("\(error)")
    }
  }
}
