import Foundation
import RegistryStores
import TLSTools

/// What an operator should mend about keys, secrets and names although the server works: told at every reading.
enum KeyCare {
  /// Fewer bits of the signing key are worth a warning.
  static let weakBits = 2048

  /// Warns of private files that others than their owner can read, of a weak signing key, of metrics that strangers
  /// can read, and of a store that forgets what was decided.
  static func warn(
    of configuration: ServerConfiguration, signer: DocumentSigner, _ log: ServerLog
  ) {
    let online = configuration.tls.directory + "/online"
    var rotated: [String] = []
    do throws(SigningKeyError) { rotated = try StatementSigner.rotated(in: online) } catch {
      log.event(
        .warn, "online_keys_unreadable",
        ["file": online, "message": "nobody probed who can read the keys in it: \(error)"])
    }
    for path in privateFiles(of: configuration) + rotated {
      var status = stat()
      guard stat(path, &status) == 0, status.st_mode & 0o077 != 0 else { continue }
      log.event(
        .warn, "private_file_exposed",
        ["file": path, "message": "others can read \(path); hint: chmod 600 \(path)"])
    }
    let left = configuration.tls.directory + "/prv.pem"
    if signer.key.isHeldByCommand, access(left, F_OK) == 0 {
      log.event(
        .warn, "signing_key_left",
        [
          "file": left,
          "message":
            "\(left) is there, and signing.command signs: what lies on a disk can be copied; hint: if nothing else"
            + " needs it, keep it offline and remove it here",
        ])
    }
    if signer.key.bits < weakBits {
      log.event(
        .warn, "signing_key_weak",
        [
          "message":
            "prv.pem has \(signer.key.bits) bits, which can be broken in time; hint: a new one needs a"
            + " release of the app, ssl-pinning keys generate --root makes one that never will again"
        ])
    }
    if configuration.metricsListen == nil, !configuration.listen.isLoopback {
      log.event(
        .warn, "metrics_public",
        [
          "message":
            "whoever reaches server.listen reads in /metrics which files, endpoints and vantage points there"
            + " are; hint: metrics.listen, as 127.0.0.1:9090"
        ])
    }
    if configuration.isAdministrationExposed {
      log.event(
        .warn, "administration_off",
        [
          "message": "tokens would cross the network in clear text; documents are served; hint: "
            + ServerConfiguration.exposureHint
        ])
    }
    if configuration.storage == .memory, configuration.publishing.directory == nil {
      log.event(
        .warn, "storage_forgets",
        [
          "message":
            "storage.type is memory, and there is no publish.dir: after a restart whatever key an"
            + " endpoint shows is a first sight, and believed; hint: storage.type sqlite, or publish.dir"
        ])
    }
  }

  /// The files that only their owner should be able to read, beside the online keys of `tls.dir`.
  static func privateFiles(of configuration: ServerConfiguration) -> [String] {
    let directory = configuration.tls.directory
    // What names a command is no secret.
    let online = configuration.publishing.onlineKeys.filter { path in
      (try? TrustSigningKey(named: path))?.isHeldByCommand != true
    }
    return ["prv.pem", "prv.old.pem", SealKeyFile.name, SealKeyFile.formerName].map {
      directory + "/" + $0
    }
      + online
      + [configuration.server.privateKey, configuration.tls.clientKey].compactMap(\.self)
      + configuration.tls.vantagePoints.compactMap { $0.security?.privateKey }
      + [configuration.secretsFile].compactMap(\.self)
  }
}
