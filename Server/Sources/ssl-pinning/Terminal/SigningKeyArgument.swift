import Foundation
import SslPinningRules
import TLSTools

/// Private keys that are named on the command line.
enum SigningKeyArgument {
  /// Reads a key that signs key sets and statements.
  ///
  /// - Throws: what could not be read is ``CommandFailure/couldNotFindOut(_:)``, what was read and is
  ///   no such key ``CommandFailure/no(_:)``.
  static func trustKey(_ path: String) throws(CommandFailure) -> TrustSigningKey {
    let pem = try read(path)
    do throws(SigningKeyError) {
      return try TrustSigningKey(pem: pem)
    } catch { throw .no("\(path): \(error)") }
  }

  /// Reads the key of format 1.
  static func format1Key(_ path: String) throws(CommandFailure) -> SigningKey {
    let pem = try read(path)
    do throws(SigningKeyError) {
      return try SigningKey(pem: pem)
    } catch { throw .no("\(path): \(error)") }
  }

  private static func read(_ path: String) throws(CommandFailure) -> String {
    let pem = try InputFile.read(path, limit: KeyArgument.maximumBytes)
    var status = stat()
    if path != InputFile.standardInput, stat(path, &status) == 0,
      status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o006 != 0
    {
      Terminal.say(
        "warning: every user of this machine may read or write the private key \(path); hint: chmod 600"
      )
    }
    return String(decoding: pem, as: UTF8.self)
  }

  /// Reads several, in order.
  static func trustKeys(_ paths: [String]) throws(CommandFailure) -> [TrustSigningKey] {
    var keys: [TrustSigningKey] = []
    for path in paths { keys.append(try trustKey(path)) }
    return keys
  }
}
