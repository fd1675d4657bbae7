import CanonicalJSON

/// Which statement: `{"epoch": 1, "version": 7, "digest": "<base64>"}`, as the next one calls it in
/// `previous`.
public struct StatementID: Hashable, Sendable {
  /// Its number.
  public let number: RegistryStamp.Version
  /// SHA-256 of its RFC 8785 form.
  public let digest: [UInt8]

  /// What a statement is called.
  package init(of statement: Statement, crypto: some RegistryCrypto) {
    number = statement.number
    digest = crypto.sha256(JSONValue.object(statement.json).canonicalBytes)
  }

  init(_ json: JSONValue) throws(DocumentFault) {
    guard let json = json.objectValue else { throw .member("previous") }
    number = RegistryStamp.Version(
      epoch: try json.requireInteger("epoch"), version: try json.requireInteger("version"))
    digest = try json.requireDigest("digest")
  }

  var json: JSONValue {
    func integer(_ value: Int64) -> JSONValue {
      JSONNumber(exactly: value).map(JSONValue.number) ?? .null
    }
    return .object([
      "epoch": integer(number.epoch), "version": integer(number.version),
      "digest": .string(StrictBase64.encode(digest)),
    ])
  }
}

/// A history that branches: there is a signed statement that knows nothing of the one that this client
/// believed. An online key signed for a single audience, or two servers sign one registry, or one lost its
/// store.
public struct RegistryFork: Hashable, Sendable {
  /// What was believed here.
  public let believed: StatementID
  /// What the other statement says that it follows; itself, if it has the number of what was believed.
  public let named: StatementID

  /// - Returns: `nil` where `other` is or follows what was believed, or something later that this client never
  ///   saw, or does not say.
  ///
  /// A publisher signs upwards. So what follows a statement of the same number or a lower one than that in
  /// force here knows nothing of it. And no number is signed twice.
  init?(_ other: StatementID, following previous: StatementID?, from believed: StatementID) {
    let named = other.number == believed.number ? other : previous
    guard let named, other.number >= believed.number, named.number <= believed.number,
      named != believed
    else { return nil }
    (self.believed, self.named) = (believed, named)
  }
}

extension StatementID: CustomStringConvertible {
  /// Its number and its digest in lower-case hex.
  public var description: String { "\(number) \(hex(digest))" }
}

extension RegistryFork: CustomStringConvertible {
  /// What happened, in one line.
  public var description: String {
    "version \(believed.number) (\(hex(believed.digest).prefix(16))…) was believed here, and what came next"
      + " follows or is version \(named.number) (\(hex(named.digest).prefix(16))…);"
      + " hint: is the online key used elsewhere?"
  }
}
