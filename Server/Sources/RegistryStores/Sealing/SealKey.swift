import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Makes and checks the tags of sealed records: 32 bytes that come from a format-1 signing key.
///
/// - It has a domain of its own, so it is no other key's value (compare ``AdminTokenKey``).
/// - The signing key never leaves OpenSSL: the source is its signature over a fixed text. PKCS#1 v1.5 is
///   deterministic (RFC 8017 §8.2.1), so that every server with the key agrees.
/// - Whoever cannot sign documents can make no tag, whatever else he may write to.
package struct SealKey: Sendable, Equatable {
  /// The id of the signing key: the SHA-256 of its SubjectPublicKeyInfo.
  package let id: SPKIPin
  /// The public half of the signing key, as SubjectPublicKeyInfo in DER.
  package let publicKeyDER: [UInt8]
  private let bytes: [UInt8]

  /// The key that comes from a signing key.
  ///
  /// - Throws: ``SigningKeyError`` if the key does not add up.
  init(_ signingKey: SigningKey) throws(SigningKeyError) {
    let domain = [UInt8]("ssl-pinning store seal v1\0prv.pem\0".utf8)
    bytes = Digest.sha256(domain + (try signingKey.sign(domain)))
    id = signingKey.trustKey.roleKey.id
    publicKeyDER = signingKey.publicKeyDER
  }

  /// The tag of a record.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``, which good input never earns.
  func tag(of record: SealedRecord.Fields) throws(StoreError) -> [UInt8] {
    do throws(CertificateError) {
      return try MessageAuthentication.tag(over: record.message, key: bytes)
    } catch { throw .failed(operation: "sealing \(record.name)", reason: "\(error)") }
  }

  /// Whether a tag is that of the record.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``, which good input never earns.
  func isTag(_ tag: [UInt8], of record: SealedRecord.Fields) throws(StoreError) -> Bool {
    do throws(CertificateError) {
      return try MessageAuthentication.isTag(tag, over: record.message, key: bytes)
    } catch { throw .failed(operation: "checking the seal of \(record.name)", reason: "\(error)") }
  }
}

/// The keys that a server reads and writes sealed records with.
package struct SealKeys: Sendable, Equatable {
  /// The key of `prv.pem`.
  package let own: SealKey
  /// The key of `prv.old.pem`, while `prv.pem` takes its place.
  let former: SealKey?

  /// Keys of signing keys.
  ///
  /// - Throws: ``SigningKeyError``.
  package init(_ signingKey: SigningKey, former: SigningKey? = nil) throws(SigningKeyError) {
    own = try SealKey(signingKey)
    self.former = try former.map { (key) throws(SigningKeyError) in try SealKey(key) }
  }

  /// All of them, that of `prv.pem` first.
  package var all: [SealKey] { [own] + (former.map { [$0] } ?? []) }
}
