import SslPinningRules
import TLSTools

/// What a store has of documents, for whoever stands beside the server. Makes nothing and changes nothing.
package enum StoredDocuments {
  /// The key sets that a document carries in the store; none where it has none, or was never published.
  ///
  /// - Throws: ``RegistryServiceError``, if the store cannot be asked, or is not believed under these keys.
  package static func keySets(
    of file: String, in configuration: ServerConfiguration
  ) async throws(RegistryServiceError) -> [SignedKeySet] {
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      signer = try DocumentSigner(directory: configuration.tls.directory, publishing: .init())
    } catch { throw .signer(error) }
    let state = try await states(of: [file], in: configuration, signer)[file]
    return StatementSigner.published(in: state?.document ?? [])
  }

  /// The states of these documents, as far as there are any.
  ///
  /// - Throws: ``RegistryServiceError``; a seal that is not good is ``StoreError/seal(_:)``.
  static func states(
    of files: [String], in configuration: ServerConfiguration, _ signer: DocumentSigner
  ) async throws(RegistryServiceError) -> [String: DocumentState] {
    let keys = try RegistryService.sealKeys(of: signer, configuration)
    do throws(StoreError) {
      guard try configuration.storage.tryOut() else { return [:] }
      let store = SealedStore(
        try configuration.storage.open(), keys: keys,
        mark: RegistryService.mark(configuration, isReadOnly: true))
      do throws(StoreError) {
        let states = try await read(files, of: store)
        await store.close()
        return states
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
