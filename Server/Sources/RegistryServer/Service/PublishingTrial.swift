import Foundation
import RegistryStores
import SslPinningRules
import TLSTools

/// What of a configuration would be published nowhere, or where it should not be.
enum PublishingTrial {
  /// What a person should probe; nothing keeps the server from starting.
  static func warnings(_ configuration: ServerConfiguration, _ signer: DocumentSigner) -> [String] {
    copies(configuration) + keySets(configuration, signer)
  }

  /// Whoever reads the copies would go on with old documents, or meet what is none of his business.
  private static func copies(_ configuration: ServerConfiguration) -> [String] {
    guard let directory = configuration.publishing.directory else { return [] }
    if let reason = unwritable(directory) {
      return ["publish.dir: \(reason): no copy of a document would be written"]
    }
    let above = sequence(first: configuration.tls.directory) { $0 + "/.." }.prefix(32)
    guard above.contains(where: { isSame(directory, $0) }) else { return [] }
    return [
      "publish.dir is where web servers read, and tls.dir with prv.pem is in it; hint: another directory"
    ]
  }

  private static func unwritable(_ directory: String) -> String? {
    do throws(StoreError) {
      guard access(directory, F_OK) == 0 else {
        try StorageConfiguration.checkPlace(of: directory)
        return nil
      }
    } catch {
      guard case .cannotOpen(_, let reason) = error else { return "\(error)" }
      return "\(directory) cannot be made: \(reason)"
    }
    var status = stat()
    guard stat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      return "\(directory) is no directory"
    }
    return access(directory, W_OK | X_OK) == 0
      ? nil : "\(directory): \(String(cString: strerror(errno)).lowercased())"
  }

  private static func isSame(_ left: String, _ right: String) -> Bool {
    var (one, other) = (stat(), stat())
    return stat(left, &one) == 0 && stat(right, &other) == 0 && one.st_dev == other.st_dev
      && one.st_ino == other.st_ino
  }

  private static func keySets(
    _ configuration: ServerConfiguration, _ signer: DocumentSigner
  ) -> [String] {
    let directory = configuration.keySetsDirectory
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    let files = configuration.documents.map(\.file).filter(names.contains)
    guard let statements = signer.statements else {
      return files.isEmpty
        ? []
        : [
          "publish.statements is false, and \(directory) has key sets: nothing is signed under them; hint: true,"
            + " or remove them"
        ]
    }
    return files.filter { file in
      // What cannot be read is told as such.
      guard let first = (try? statements.storedKeySets(of: file))??.sets.first,
        let shipped = try? KeyRole(keys: [signer.key.trustKey.roleKey], threshold: 1)
      else { return false }
      return first.signers(of: shipped).isEmpty
    }.map {
      "prv.pem did not sign key set 1 of \($0): apps that ship its public half alone refuse the statements;"
        + " hint: keys sign-set --sign-with, if they do not ship rootKeys"
    }
  }
}
