import RegistryCore
import RegistryStores

extension DocumentState {
  /// Reads a record. A record of a newer format is an error: overwriting it would lose what an
  /// older program cannot read.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``.
  init(decoding bytes: [UInt8], file: String) throws(StoreError) {
    do throws(StateFault) { try self.init(reading: bytes) } catch {
      throw .failed(operation: "reading the state of \(file)", reason: error.reason)
    }
  }
}
