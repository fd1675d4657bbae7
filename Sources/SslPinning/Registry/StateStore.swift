import Pinning
import PinningPlatform

/// The file that a client's registry is kept in between runs.
///
/// - One file per endpoint and root keys: two registries, or two generations of an app's keys, never
///   meet in one.
/// - Every process of the app reads and writes it under a lock, and what another process learned is
///   merged, never overwritten.
/// - Whatever is read is verified again, from the keys that the app ships on.
struct StateStore: Sendable {
  /// No state that this package writes is larger.
  private static let largest = 64 << 20

  private let file: AtomicFile

  /// - Parameters:
  ///   - directory: made if it is missing.
  ///   - identity: what the state belongs to: the endpoint's URL.
  init(directory: String, identity: String, trust: RegistryTrust) {
    let text = ([identity, trust.registry] + trust.shippedKeyIDs).joined(separator: "\n")
    let name = hex(Digest.sha256([UInt8](text.utf8)))
    file = AtomicFile(path: "\(directory)/registry-\(name).json")
  }

  /// What is stored; `nil` where nothing is.
  ///
  /// - Throws: ``StateStoreError``: the file cannot be read, or not be believed.
  func load(
    under trust: RegistryTrust, at clock: Int64
  ) throws(StateStoreError) -> TrustedRegistry? {
    let bytes: [UInt8]?
    do throws(FileError) { bytes = try file.read(limit: Self.largest) } catch {
      throw .file(error)
    }
    guard let bytes else { return nil }
    do throws(RegistryError) { return try Self.believe(bytes, under: trust, at: clock) } catch {
      throw .refused(error)
    }
  }

  /// Stores a registry together with what is stored already.
  ///
  /// - Returns: what both know; another process may have been further.
  /// - Throws: ``StateStoreError/file(_:)``.
  func save(
    _ trusted: TrustedRegistry, under trust: RegistryTrust, at clock: Int64
  ) throws(StateStoreError) -> TrustedRegistry {
    do throws(FileError) {
      return try file.withLock { (held) throws(FileError) -> TrustedRegistry in
        // What cannot be believed is written over.
        let bytes = try held.read(limit: Self.largest)
        let stored = bytes.flatMap { try? Self.believe($0, under: trust, at: clock) }
        let merged = stored.map { trusted.merged(with: $0, at: clock) } ?? trusted
        try held.write(merged.state.encoded)
        return merged
      }
    } catch { throw .file(error) }
  }

  private static func believe(
    _ bytes: [UInt8], under trust: RegistryTrust, at clock: Int64
  ) throws(RegistryError) -> TrustedRegistry {
    try TrustedRegistry(restoring: StoredState(decoding: bytes), under: trust, at: clock)
  }
}

/// Why a stored registry is not used, or not written.
enum StateStoreError: Error {
  /// The file cannot be read or written.
  case file(FileError)
  /// Its content is not believed.
  case refused(RegistryError)
}

extension StateStoreError: CustomStringConvertible {
  var description: String {
    switch self {
    case .file(let error): "\(error)"
    case .refused(let error): "\(error)"
    }
  }
}
