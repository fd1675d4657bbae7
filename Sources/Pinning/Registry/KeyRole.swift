import CanonicalJSON

/// So many of these keys must sign: `{"keys": […], "threshold": 2}`.
///
/// - Distinct keys count, never signatures. A key that stands twice, a threshold of zero and one
///   that all keys together cannot reach are refused.
public struct KeyRole: Sendable {
  /// The keys; no two have the same id.
  public let keys: [RoleKey]
  /// How many of them must sign; at least 1, at most all.
  public let threshold: Int

  /// A role.
  ///
  /// - Throws: ``DocumentFault/duplicateKey(_:)`` and ``DocumentFault/threshold(_:keys:)``.
  public init(keys: [RoleKey], threshold: Int) throws(DocumentFault) {
    var seen: Set<SPKIPin> = []
    for key in keys {
      guard seen.insert(key.id).inserted else { throw .duplicateKey(key.id) }
    }
    guard (1...max(1, keys.count)).contains(threshold), !keys.isEmpty else {
      throw .threshold(Int64(threshold), keys: keys.count)
    }
    self.keys = keys
    self.threshold = threshold
  }

  init(_ json: JSONValue?, _ name: String, crypto: some RegistryCrypto) throws(DocumentFault) {
    guard let role = json?.objectValue, let entries = role["keys"]?.arrayValue else {
      throw .member(name)
    }
    guard let threshold = role["threshold"]?.integerValue else { throw .member("threshold") }
    var keys: [RoleKey] = []
    for entry in entries { keys.append(try RoleKey(entry, crypto: crypto)) }
    guard let count = Int(exactly: threshold) else {
      throw .threshold(threshold, keys: keys.count)
    }
    try self.init(keys: keys, threshold: count)
  }

  var json: JSONValue {
    .object([
      "keys": .array(keys.map(\.json)),
      "threshold": JSONNumber(exactly: Int64(threshold)).map(JSONValue.number) ?? .null,
    ])
  }

  /// Whether enough of the keys signed `message`.
  package func isMet(by signatures: [DocumentSignature], over message: [UInt8]) -> Bool {
    count(of: signatures, over: message) >= threshold
  }

  /// What is wrong where ``isMet(by:over:)`` says no.
  func fault(
    of signatures: [DocumentSignature], over message: [UInt8], as signers: DocumentFault.Signers
  ) -> DocumentFault {
    let count = count(of: signatures, over: message)
    return count == 0
      ? .notSigned(by: signers)
      : .tooFewSignatures(of: signers, count: count, threshold: threshold)
  }

  /// How many of the keys signed, counted up to the threshold.
  private func count(of signatures: [DocumentSignature], over message: [UInt8]) -> Int {
    var valid = 0
    for key in keys where valid < threshold {
      // One signature per key id: the list was read so.
      guard let verifier = key.verifier,
        let own = signatures.first(where: { $0.keyID.utf8.elementsEqual(key.id.base64.utf8) }),
        let signature = own.signature, verifier.isValid(signature: signature, over: message)
      else { continue }
      valid += 1
    }
    return valid
  }

  /// Whether both ask for the same keys in the same number.
  func demandsTheSame(as other: KeyRole) -> Bool {
    threshold == other.threshold && Set(keys.map(\.id)) == Set(other.keys.map(\.id))
  }
}
