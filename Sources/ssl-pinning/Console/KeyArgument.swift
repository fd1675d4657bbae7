import Pinning
import PinningPlatform

/// The `--key` of commands that verify: a file, or the key's text itself.
enum KeyArgument {
  static let flag = Flag.text(
    "--key", "KEY",
    "the public key: a file, or its text; PEM, base64 of PEM, base64 of DER (SPKI or PKCS#1)",
    isRequired: true)

  /// The largest file that is read as a key.
  static let maximumBytes = 1 << 20
  /// The base64 of the smallest key has more characters; a shorter text was meant as a file.
  private static let shortestText = 180

  /// Reads the key.
  ///
  /// - Returns: the key, and its text in a spelling that the SDK takes.
  /// - Throws: what could not be read is ``CommandFailure/couldNotFindOut(_:)``, what was read and is
  ///   no key ``CommandFailure/no(_:)``.
  static func read(_ invocation: Invocation) throws(CommandFailure) -> VerificationKey {
    let text = try invocation.require(flag)
    try InputFile.refuseSharedInput(text, invocation)
    if text == InputFile.standardInput || InputFile.exists(text) {
      let bytes = try InputFile.read(text, limit: maximumBytes)
      do throws(VerificationKeyError) { return try VerificationKey(bytes: bytes) } catch {
        throw .no("\(text): \(error)")
      }
    }
    do throws(VerificationKeyError) { return try VerificationKey(text) } catch {
      guard text.utf8.count >= shortestText else {
        throw .couldNotFindOut(
          "cannot read \(text): no such file; hint: --key takes pub.pem or the base64 in it")
      }
      throw .no("\(error)")
    }
  }
}
