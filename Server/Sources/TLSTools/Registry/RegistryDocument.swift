import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// A registry document to publish: a payload, the terms of its statement, and the key sets.
/// ``signed(format1Key:onlineKeys:)`` assembles it.
///
/// - Every client reads the payload, so its entries have only the five members of format 1; everything
///   newer stands beside it (`docs/registry-format.md`, section 3).
/// - Nothing is checked here, so that tests can make documents that clients refuse. The value that
///   ``signed(format1Key:onlineKeys:)`` returns can be changed before it becomes bytes, and
///   ``TrustSigningKey/signature(_:over:)`` signs a changed part again.
public struct RegistryDocument: Sendable {
  /// What a statement contains besides the payload's digest.
  public struct Terms: Sendable {
    /// The epoch of the key set whose online keys sign, and the version within.
    public var number: RegistryStamp.Version
    /// Unix time in seconds.
    public var issued: Int64
    /// Unix time in seconds; above ``issued``, or clients refuse the statement.
    public var expires: Int64
    /// CA pins and settings.
    public var hosts: [HostSettings]
    /// Keys that clients refuse anywhere in a chain.
    public var denied: [SPKIPin]
    /// Hosts that may vanish from the registry.
    public var removed: [HostPattern]
    /// Whether the registry goes back to format 1.
    public var isRetired: Bool
    /// The statement before, if there was one.
    public var previous: StatementID?
    /// Where else the document is served.
    public var mirrors: [RegistryMirror]

    /// Terms of a statement.
    public init(
      number: RegistryStamp.Version, issued: Int64, expires: Int64, hosts: [HostSettings] = [],
      denied: [SPKIPin] = [], removed: [HostPattern] = [], isRetired: Bool = false,
      previous: StatementID? = nil, mirrors: [RegistryMirror] = []
    ) {
      (self.number, self.issued, self.expires) = (number, issued, expires)
      (self.hosts, self.denied, self.removed) = (hosts, denied, removed)
      self.isRetired = isRetired
      self.previous = previous
      self.mirrors = mirrors
    }
  }

  /// The name in the statement. Clients expect, by default, the last component of the URL's path.
  public var registry: String
  /// What format-1 clients read: `{"keys": [ … ]}`.
  public var payload: JSONObject
  /// `nil` for a document of format 1.
  public var terms: Terms?
  /// The whole chain from set 1, each with its signatures (``SslPinningRules/KeySet/entry(signedBy:)``).
  public var keySets: [JSONValue]

  /// A document with this payload.
  public init(
    registry: String, payload: JSONObject, terms: Terms? = nil, keySets: [JSONValue] = []
  ) {
    (self.registry, self.payload, self.terms, self.keySets) = (registry, payload, terms, keySets)
  }

  /// A document with these entries.
  public init(
    registry: String, keys: [RegistryKey], terms: Terms? = nil, keySets: [JSONValue] = []
  ) {
    let payload: JSONObject = ["keys": .array(keys.map { .object($0.format1Entry) })]
    self.init(registry: registry, payload: payload, terms: terms, keySets: keySets)
  }

  /// The statement about the current payload; `nil` without ``terms``.
  public var statement: Statement? { statement(about: JSONValue.object(payload).canonicalBytes) }

  private func statement(about payload: [UInt8]) -> Statement? {
    terms.map { terms in
      Statement(
        registry: registry, number: terms.number, issued: terms.issued, expires: terms.expires,
        payloadDigest: Digest.sha256(payload), hosts: terms.hosts, denied: terms.denied,
        removed: terms.removed, isRetired: terms.isRetired, previous: terms.previous,
        mirrors: terms.mirrors)
    }
  }

  /// The document, signed.
  ///
  /// - Parameters:
  ///   - format1Key: signs the payload; without it there is no `signature`, and format-1 clients
  ///     refuse the document.
  ///   - onlineKeys: sign the statement: enough of the online role of the newest key set, or of its root
  ///     role if the statement retires the registry.
  /// - Throws: ``SigningKeyError/malformed(_:)`` if a key is inconsistent.
  public func signed(
    format1Key: SigningKey?, onlineKeys: [TrustSigningKey] = []
  ) throws(SigningKeyError) -> JSONObject {
    var document: JSONObject = ["payload": .object(payload)]
    let payload = JSONValue.object(payload).canonicalBytes
    if let format1Key {
      let signature = try format1Key.sign(payload)
      document["signature"] = .string(StrictBase64.encode(signature))
    }
    if let statement = statement(about: payload)?.json {
      var signatures: [JSONValue] = []
      for key in onlineKeys {
        signatures.append(try key.signature(.statement, over: statement).json)
      }
      document["statement"] = .object(statement)
      document["statementSignatures"] = .array(signatures)
    }
    if !keySets.isEmpty { document["keySets"] = .array(keySets) }
    return document
  }

  /// The bytes to publish: ``signed(format1Key:onlineKeys:)`` in canonical form, so that the signed bytes
  /// are those in the document.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` if a key is inconsistent.
  public func bytes(
    format1Key: SigningKey?, onlineKeys: [TrustSigningKey] = []
  ) throws(SigningKeyError) -> [UInt8] {
    JSONValue.object(try signed(format1Key: format1Key, onlineKeys: onlineKeys)).canonicalBytes
  }
}

extension RegistryKey {
  /// The entry in a format-1 payload. An unreadable pin is left out, but its host stays listed.
  public var format1Entry: JSONObject {
    var entry: JSONObject = ["domainName": .string(pattern.description)]
    entry["key"] = (try? pin.get()).map { .string($0.base64) }
    entry["fqdn"] = fqdn.map(JSONValue.string)
    entry["expire"] = expires.flatMap(JSONNumber.init(exactly:)).map(JSONValue.number)
    return entry
  }
}
