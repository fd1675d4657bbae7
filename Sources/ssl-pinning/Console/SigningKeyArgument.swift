import Pinning
import TLSTools

/// Private keys that are named on the command line.
enum SigningKeyArgument {
  /// Reads a key that signs key sets and statements.
  ///
  /// - Throws: what could not be read is ``CommandFailure/couldNotFindOut(_:)``, what was read and is
  ///   no such key ``CommandFailure/no(_:)``.
  static func trustKey(_ path: String) throws(CommandFailure) -> TrustSigningKey {
    let pem = try InputFile.read(path, limit: KeyArgument.maximumBytes)
    do throws(SigningKeyError) {
      return try TrustSigningKey(pem: String(decoding: pem, as: UTF8.self))
    } catch { throw .no("\(path): \(error)") }
  }

  /// Reads the key of format 1.
  static func format1Key(_ path: String) throws(CommandFailure) -> SigningKey {
    let pem = try InputFile.read(path, limit: KeyArgument.maximumBytes)
    do throws(SigningKeyError) {
      return try SigningKey(pem: String(decoding: pem, as: UTF8.self))
    } catch { throw .no("\(path): \(error)") }
  }

  /// Reads several, in order.
  static func trustKeys(_ paths: [String]) throws(CommandFailure) -> [TrustSigningKey] {
    var keys: [TrustSigningKey] = []
    for path in paths { keys.append(try trustKey(path)) }
    return keys
  }
}
