import TLSTools

/// How the service comes by its store.
extension RegistryService {
  /// Opens the store that is configured, to be sealed under the signer's keys.
  static func store(
    _ configuration: ServerConfiguration, signer: DocumentSigner, metrics: ServerMetrics
  ) throws(RegistryServiceError) -> SealedStore {
    let keys = try sealKeys(of: signer, configuration)
    do throws(StoreError) {
      return SealedStore(
        MeasuredStore(try configuration.storage.open(), metrics: metrics), keys: keys)
    } catch { throw .store(error) }
  }

  /// The keys that seal the store.
  static func sealKeys(
    of signer: DocumentSigner, _ configuration: ServerConfiguration
  ) throws(RegistryServiceError) -> SealKeys {
    do throws(SigningKeyError) { return try signer.sealKeys } catch {
      throw .signer(.signingKey(path: configuration.tls.directory + "/prv.pem", error))
    }
  }

  /// Warns of what works and should not stay so, at every reading.
  func warn(of configuration: ServerConfiguration, _ signer: DocumentSigner) {
    KeyCare.warn(of: configuration, signer: signer, log)
    UnusedKeySets.warn(of: configuration, log)
  }

  /// Tells which documents have their root key on this server.
  func tellRoots(of keepers: [DocumentKeeper]) async {
    var files: [String] = []
    for keeper in keepers where await services.signer.isRoot(of: keeper.file, after: keeper.state) {
      files.append(keeper.file)
    }
    guard let first = files.first else { return }
    log.event(
      .info, "root_key_on_server",
      [
        "documents": "\(files.count)", "first": first,
        "message":
          "prv.pem is the root key: whoever steals it is the registry, and only a release of the app"
          + " helps; hint: ssl-pinning keys generate --root for a new registry, docs/root-keys.md for this one",
      ])
  }

  /// Finds out which store it is, seals it if it is new, and tells.
  func openStore(_ configuration: ServerConfiguration) async throws(StoreError) {
    let mark = SealMark(directory: configuration.tls.directory)
    let opening = try await store.open(
      documents: configuration.documents.map(\.file), hasMark: mark.isThere)
    switch opening {
    case .fault(let fault):
      // Each document tells it, too; a server without any would not.
      log.event(.error, "store_not_believed", ["reason": "\(fault)"])
    case .sealed(let records):
      log.event(
        .info, "store_sealed",
        [
          "records": "\(records.count)",
          "message":
            "the store had no seal: what it has is believed this once, as whoever could write to it"
            + " left it, and sealed under prv.pem",
        ])
    case .new where mark.isThere && configuration.storage != .memory:
      log.event(
        .warn, "store_is_new",
        [
          "message":
            "this server had sealed a store, and this one is empty: if it was not made anew on purpose,"
            + " it was lost, and what endpoints show is believed as a first sight"
        ])
    case .new, .known: break
    }
    if case .fault = opening { return }
    guard configuration.storage != .memory, let id = store.id, let reason = mark.write(id) else {
      return
    }
    log.event(
      .info, "store_not_marked",
      [
        "reason": reason,
        "message":
          "tls.dir cannot be written: a store whose seal is removed as a whole is believed at a start",
      ])
  }
}
