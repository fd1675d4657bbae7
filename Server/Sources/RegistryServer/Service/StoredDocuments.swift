import SslPinningRules
import TLSTools

/// What a store has of documents, for whoever stands beside the server. Makes nothing and changes nothing.
package enum StoredDocuments {
  /// The key sets that a document carries in the store; none where it has none, or was never published.
  ///
  /// - Throws: ``StoreError``, where the store cannot be asked.
  package static func keySets(
    of file: String, in storage: StorageConfiguration
  ) async throws(StoreError) -> [SignedKeySet] {
    let state = try await states(of: [file], in: storage)[file]
    return StatementSigner.published(in: state?.document ?? [])
  }

  /// The states of these documents, as far as there are any.
  static func states(
    of files: [String], in storage: StorageConfiguration
  ) async throws(StoreError) -> [String: DocumentState] {
    guard try storage.tryOut() else { return [:] }
    let store = try storage.open()
    var states: [String: DocumentState] = [:]
    do throws(StoreError) {
      for file in files {
        guard let record = try await store.record(named: file) else { continue }
        states[file] = try DocumentState(decoding: record.bytes, file: file)
      }
    } catch {
      await store.close()
      throw error
    }
    await store.close()
    return states
  }
}
