/// What a store does not give back as it was written: that is a matter of this record, and keeps nobody from the others.
extension StoreError {
  /// What keeps this record alone from being read; `nil` if it is another error, or the whole store's.
  func damage(of name: String) -> String? {
    switch self {
    case .damaged(let path, let reason), .withheld(let path, let reason): "\(path), \(reason)"
    // Of the store's own record it says that the store is a newer program's.
    case .newerSchema(let path, let found, let known) where name != RecordName.store:
      "\(path), it has schema \(found), and \(known) is the newest known here"
    default: nil
    }
  }
}

extension RegistryStore {
  /// The record of this name, for whoever puts another one in its place; `nil` also if there is one that cannot be read.
  package func replaceable(_ name: String) async throws(StoreError) -> StoredRecord? {
    do throws(StoreError) { return try await record(named: name) } catch {
      guard error.damage(of: name) != nil else { throw error }
      return nil
    }
  }

  /// Whether there is a record of this name that cannot be read, and whose place another one may take.
  package func isDamaged(_ name: String) async throws(StoreError) -> Bool {
    do throws(StoreError) { _ = try await record(named: name) } catch {
      if case .damaged = error { return true }
      guard error.damage(of: name) != nil else { throw error }
    }
    return false
  }

  /// Whether there is a record of this name, one that cannot be read included.
  package func has(_ name: String) async throws(StoreError) -> Bool {
    do throws(StoreError) { return try await record(named: name) != nil } catch {
      guard error.damage(of: name) != nil else { throw error }
      return true
    }
  }

  /// Whether there is a record of this name that cannot be read.
  package func isUnreadable(_ name: String) async throws(StoreError) -> Bool {
    do throws(StoreError) { _ = try await record(named: name) } catch {
      guard error.damage(of: name) != nil else { throw error }
      return true
    }
    return false
  }

  /// Puts a record in the place of whatever is there, also of one that cannot be read.
  ///
  /// - Parameter bytes: what is stored, by the version under which it is.
  /// - Returns: that version.
  @discardableResult
  package func overwrite(
    _ name: String, history: [[UInt8]] = [],
    with bytes: (Int64) throws(StoreError) -> [UInt8]
  ) async throws(StoreError) -> Int64 {
    var version = try await replaceable(name)?.version ?? 0
    for _ in 0..<8 {
      let next = try bytes(try StoredRecord.number(after: version, of: name))
      switch try await replace(name, version: version, with: next, history: history) {
      case .replaced(let version): return version
      // Of a record that cannot be read, the store may know the version all the same.
      case .conflict(let current): version = current
      }
    }
    throw .busy
  }
}

extension SealedStore {
  /// A record as it is stored, nothing of it verified.
  ///
  /// - Throws: ``StoreError``; if this record alone cannot be read, ``StoreError/seal(_:)``: then it is as good as one with a
  ///   broken seal.
  package func stored(_ name: String) async throws(StoreError) -> StoredRecord? {
    do throws(StoreError) { return try await base.record(named: name) } catch {
      guard let reason = error.damage(of: name) else { throw error }
      let cause: SealFault.Reason =
        switch error {
        case .withheld: .withheld(reason: reason)
        case .newerSchema: .newer(reason: reason)
        default: .damaged(reason: reason)
        }
      throw .seal(.broken(record: name, cause))
    }
  }

  /// The public key that the store says is in force, as SubjectPublicKeyInfo in DER: of another server's key it
  /// is all that is known. Hazard: nobody verified it.
  package func claimedPublicKey() async -> [UInt8]? {
    guard let record = try? await base.record(named: StoreIdentity.recordName),
      let sealed = SealedRecord(parsing: record.bytes)
    else { return nil }
    return UnverifiedRecord.bytes("key", of: sealed.content)
  }

  /// What a record has for content, whether or not its seal is good; `nil` if there is no record. Hazard: it may
  /// decide nothing.
  package func unverified(_ name: String) async -> [UInt8]? {
    guard let record = try? await base.record(named: name) else { return nil }
    return SealedRecord(parsing: record.bytes)?.content ?? record.bytes
  }
}
