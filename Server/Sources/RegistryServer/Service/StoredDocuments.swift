import RegistryCore
import RegistryStores
import SslPinningRules
import TLSTools

/// What a store has of documents, for whoever stands beside the server. Makes nothing and changes nothing.
package enum StoredDocuments {
  /// What a store tells of the key sets of a document.
  package enum KeySets {
    /// It carries these; none if it has none, or was never published.
    case told([SignedKeySet])
    /// The store cannot tell.
    case unknown(reason: String)
  }

  /// The key sets that a document carries in the store.
  ///
  /// - Throws: ``RegistryServiceError``, if the store cannot be asked, or is not believed under these keys.
  package static func keySets(
    of file: String, in configuration: ServerConfiguration
  ) async throws(RegistryServiceError) -> KeySets {
    guard configuration.storage != .memory else {
      return .unknown(reason: "storage.type is memory, which keeps nothing")
    }
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      signer = try DocumentSigner(directory: configuration.tls.directory, publishing: .init())
    } catch { throw .signer(error) }
    let (state, id) =
      try await opened(configuration, signer) { (store) throws(StoreError) in
        (try await read([file], of: store)[file], store.id)
      } ?? (nil, nil)
    // A store that was emptied, or made anew, looks like one that never had the document.
    let seen = RegistryService.mark(configuration, isReadOnly: true).seen
    guard state != nil || seen == nil || seen?.id == id else {
      return .unknown(
        reason:
          "\(configuration.tls.directory)/sealed-store tells of a store that is not there any more")
    }
    return .told(StatementSigner.published(in: state?.document ?? []))
  }

  /// The states of these documents, as far as there are any.
  ///
  /// - Throws: ``RegistryServiceError``; a seal that is not good is ``StoreError/seal(_:)``.
  static func states(
    of files: [String], in configuration: ServerConfiguration, _ signer: DocumentSigner
  ) async throws(RegistryServiceError) -> [String: DocumentState] {
    try await opened(configuration, signer) { (store) throws(StoreError) in
      try await read(files, of: store)
    } ?? [:]
  }

  /// Asks the store; `nil` if there is none yet.
  private static func opened<Answer>(
    _ configuration: ServerConfiguration, _ signer: DocumentSigner,
    _ ask: (SealedStore) async throws(StoreError) -> Answer
  ) async throws(RegistryServiceError) -> Answer? {
    let keys = try RegistryService.sealKeys(of: signer, configuration)
    do throws(StoreError) {
      guard try configuration.storage.tryOut() else { return nil }
      let store = SealedStore(
        try configuration.storage.open(), keys: keys,
        mark: RegistryService.mark(configuration, isReadOnly: true))
      do throws(StoreError) {
        let answer = try await ask(store)
        await store.close()
        return answer
      } catch {
        await store.close()
        throw error
      }
    } catch { throw .store(error) }
  }

  private static func read(
    _ files: [String], of store: SealedStore
  ) async throws(StoreError) -> [String: DocumentState] {
    if let fault = try await store.fault(of: files) { throw .seal(fault) }
    var states: [String: DocumentState] = [:]
    for file in files {
      guard let record = try await store.standing(file) else { continue }
      states[file] = try DocumentState(decoding: record.bytes, file: file)
    }
    return states
  }
}
