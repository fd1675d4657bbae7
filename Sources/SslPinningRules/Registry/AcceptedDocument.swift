import CanonicalJSON

/// A document that was believed, with the bytes as they came: whoever doubts it later, after a
/// restart or a change of keys, can check it again.
struct AcceptedDocument: Sendable {
  /// As received.
  let bytes: [UInt8]
  /// SHA-256 over the canonical payload, in lower-case hex.
  let payloadDigest: String
  /// What it says by itself.
  let registry: Registry
  /// The statement that vouches for the payload; `nil` where the format-1 signature does.
  let statement: Statement?
  /// What may vanish by it: as its own statement says, retired or not, or the retired one before it.
  var removed: Set<HostPattern> = []
  /// The document of the retired statement whose settings are in ``registry``, where that is another one.
  var retiredBytes: [UInt8]?
  /// The newest `date` of the payload's entries, in Unix seconds; most registries have none. Asked for where no
  /// statement has a time.
  var newestDate: Int64?

  /// What the document says of each of its patterns.
  var byPattern: [HostPattern: Registry] {
    let keys = Dictionary(grouping: registry.keys, by: \.pattern)
    let settings = Dictionary(grouping: registry.settings, by: \.pattern)
    let patterns = registry.patterns.map {
      ($0, Registry(keys: keys[$0] ?? [], settings: settings[$0] ?? []))
    }
    return Dictionary(uniqueKeysWithValues: patterns)
  }

  /// When a host was first missing, from a stored time that nobody signed: not after the clock, and not
  /// before the signed times of the document that still listed the host, unless the clock itself is.
  func since(_ stored: Int64, at clock: Int64) -> Int64 {
    let signed = statement?.issued ?? newestDate ?? .min
    return min(signed <= clock ? max(stored, signed) : stored, clock)
  }

  static func newestDate(of payload: JSONObject) -> Int64? {
    let entries = payload["keys"]?.arrayValue ?? []
    return entries.compactMap { $0.objectValue?["date"]?.stringValue.flatMap(RFC3339.unixSeconds) }
      .max()
  }

  /// Whether the pin was one to be used when its statement was issued. It then lives as long as a
  /// statement does.
  func isActive(_ key: RegistryKey) -> Bool {
    guard let statement else { return false }
    return key.expires.map { $0 >= statement.issued } ?? true
  }
}

extension TrustedRegistry.Standing {
  /// Whether the online keys of the believed statement's epoch signed the document's statement too. Documents
  /// without one, and those of a retired one, are vouched for by nobody: a thief could have made them.
  func vouches(for document: AcceptedDocument) -> Bool {
    guard let other = document.statement,
      let keys = statement.flatMap({ chain?.set($0.number.epoch) }),
      // It was within the app's limit when it was believed, which may be another than the usual one.
      let envelope = try? RegistryEnvelope(
        parsing: document.bytes, limits: RegistryLimits(maximumBytes: document.bytes.count)),
      let signatures = try? DocumentSignature.list(
        envelope.document["statementSignatures"], "statementSignatures")
    else { return false }
    return keys.online.isMet(by: signatures, over: other.signedBytes)
  }
}
