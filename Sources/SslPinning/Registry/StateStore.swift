import SslPinningPlatform
import SslPinningRules

/// The file that a client's registry is kept in between runs.
///
/// - One file per endpoint and root keys: two registries, or two generations of an app's keys, never
///   meet in one.
/// - Every process of the app reads and writes it under a lock, and what another process learned is
///   merged, never overwritten.
/// - Whatever is read is verified again, from the keys that the app ships on.
/// - The file stays within a size that is read again: a state beyond it would never be stored anew,
///   and the next start would know no version to hold a registry to. Its documents are read whatever the app's limit is now:
///   that one is for what is fetched.
struct StateStore: Sendable {
  private let largest: Int
  private let file: AtomicFile

  /// - Parameters:
  ///   - directory: made if it is missing.
  ///   - identity: what the state belongs to: the endpoint's URL.
  ///   - largest: the most bytes; by default room for the newest documents, however escaped, and for
  ///     older ones up to 64 MiB.
  ///   - patience: milliseconds for which the lock is waited for.
  init(
    directory: String, identity: String, trust: RegistryTrust, largest: Int? = nil,
    patience: Int = 2000
  ) {
    self.largest = largest ?? max(64 << 20, 5 * min(trust.limits.maximumBytes, 1 << 28))
    let text = ([identity, trust.registry] + trust.shippedKeyIDs).joined(separator: "\n")
    let name = hex(Digest.sha256([UInt8](text.utf8)))
    file = AtomicFile(
      path: "\(directory)/registry-\(name).json", patience: patience, isOfItsPlace: true)
  }

  /// What a file holds.
  struct Stored {
    var registry: TrustedRegistry?
    /// The tag of its document.
    var tag: DocumentTag?
    /// Without a registry, key sets of documents that were refused.
    var learned = LearnedKeySets.none
  }

  /// What is stored; no registry where nothing is, or only key sets of documents that were refused.
  ///
  /// - Throws: ``StateStoreError``: the file cannot be read, or not be believed.
  func load(
    under trust: RegistryTrust, at clock: Int64
  ) throws(StateStoreError) -> Stored {
    try stored(in: read(), under: trust, at: clock)
  }

  /// The file's bytes; `nil` where there is none.
  ///
  /// - Throws: ``StateStoreError/file(_:)``.
  func read() throws(StateStoreError) -> [UInt8]? {
    do throws(FileError) { return try file.read(limit: largest) } catch { throw .file(error) }
  }

  /// What such bytes hold.
  ///
  /// - Throws: ``StateStoreError/refused(_:learned:)``.
  func stored(
    in bytes: [UInt8]?, under trust: RegistryTrust, at clock: Int64
  ) throws(StateStoreError) -> Stored {
    guard let bytes else { return Stored() }
    do throws(RegistryError) { return try Self.believe(bytes, under: trust, at: clock) } catch {
      throw .refused(error, learned: Self.learned(bytes, under: trust))
    }
  }

  /// Stores key sets of a first document that was refused, unless more is stored already.
  func save(
    _ learned: LearnedKeySets, under trust: RegistryTrust, at clock: Int64
  ) throws(StateStoreError) {
    do throws(FileError) {
      try file.withLock { (held) throws(FileError) in
        let stored = try stored(by: held, under: trust, at: clock)
        let state: StoredState
        if let registry = stored?.registry {
          state = registry.knowing(learned).state
        } else {
          state = learned.merged(with: stored?.learned ?? .none).state
        }
        try held.write(state.encoded(within: largest))
      }
    } catch { throw .file(error) }
  }

  /// Stores a registry together with what is stored already.
  ///
  /// - Parameter tag: of the registry's document.
  /// - Returns: what both know; another process may have been further.
  /// - Throws: ``StateStoreError/file(_:)``.
  func save(
    _ trusted: TrustedRegistry, tag: DocumentTag? = nil, under trust: RegistryTrust, at clock: Int64
  ) throws(StateStoreError) -> TrustedRegistry {
    do throws(FileError) {
      return try file.withLock { (held) throws(FileError) -> TrustedRegistry in
        let stored = try stored(by: held, under: trust, at: clock, for: trusted.stamp.version)
        let known = trusted.knowing(stored?.learned ?? .none)
        let merged = stored?.registry.map { known.merged(withStored: $0, at: clock) } ?? known
        var state = merged.state
        if let tag, merged.isSameDocument(as: trusted) {
          state.tag = tag
        } else if let other = stored?.registry, merged.isSameDocument(as: other) {
          state.tag = stored?.tag
        }
        try held.write(state.encoded(within: largest))
        return merged
      }
    } catch { throw .file(error) }
  }

  /// What is in the file, for who is about to write it. One that cannot be believed, or is beyond
  /// `largest`, is written over; but the key sets that it proves are kept. What another version or setting of the app
  /// believes, and this one cannot, is not until something newer is to be written: with it what that one knows to be denied
  /// would go.
  ///
  /// - Parameter version: of what is about to be written; `nil` if it has none.
  private func stored(
    by held: borrowing AtomicFile.Held, under trust: RegistryTrust, at clock: Int64,
    for version: RegistryStamp.Version? = nil
  ) throws(FileError) -> Stored? {
    let bytes: [UInt8]?
    do throws(FileError) { bytes = try held.read(limit: largest) } catch {
      guard case .tooLarge = error else { throw error }
      return nil
    }
    guard let bytes else { return nil }
    do throws(RegistryError) { return try Self.believe(bytes, under: trust, at: clock) } catch {
      if StoredState.isAnothers(bytes, error, beside: version) {
        throw .anothers(path: file.path, reason: "\(error)")
      }
      return Stored(learned: Self.learned(bytes, under: trust))
    }
  }

  /// The key sets of a state whose registry is not believed, say since the app asks for more than before:
  /// what they withdrew stays withdrawn.
  private static func learned(_ bytes: [UInt8], under trust: RegistryTrust) -> LearnedKeySets {
    guard let state = try? StoredState(decoding: bytes) else { return .none }
    return LearnedKeySets(restoring: state, under: trust)
  }

  private static func believe(
    _ bytes: [UInt8], under trust: RegistryTrust, at clock: Int64
  ) throws(RegistryError) -> Stored {
    let state = try StoredState(decoding: bytes)
    guard state.holdsRegistry else {
      return Stored(learned: LearnedKeySets(restoring: state, under: trust))
    }
    return Stored(
      registry: try TrustedRegistry(restoring: state, under: trust, at: clock), tag: state.tag)
  }
}

/// Why a stored registry is not used, or not written.
enum StateStoreError: Error {
  /// The file cannot be read or written.
  case file(FileError)
  /// Its content is not believed, but for these key sets.
  case refused(RegistryError, learned: LearnedKeySets)
}

extension StateStoreError: CustomStringConvertible {
  var description: String {
    switch self {
    case .file(let error): "\(error)"
    case .refused(let error, _): "\(error)"
    }
  }
}
