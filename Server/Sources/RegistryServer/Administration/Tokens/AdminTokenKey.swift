import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Makes and checks tokens: 32 bytes that come from `server.key` or, where that is not set, from the
/// signing key.
///
/// - Each source has a domain of its own, so the key is no other key's value, and nothing else that is
///   signed or hashed with the source can be made to be it.
/// - Another source is another key: changing `server.key` ends every token there is.
/// - The signing key never leaves OpenSSL: the source is its signature over a fixed text. PKCS#1 v1.5
///   is deterministic (RFC 8017 §8.2.1), so that every server with the key agrees.
///
/// Hazard: whoever has a token can try out a short `server.key` at leisure: see
/// ``ServerConfiguration/shortKeyRefusal``.
struct AdminTokenKey: Sendable {
  private let bytes: [UInt8]

  /// With fewer bytes of `server.key` nobody is let in.
  static let leastSecret = 16
  /// How far another machine's clock may be ahead, in seconds.
  static let leeway: Int64 = 60

  /// A token that was checked. Only this file makes one.
  struct CheckedToken {
    let token: AdminToken

    fileprivate init(_ token: AdminToken) { self.token = token }
  }

  /// A key from `server.key`.
  init(secret: Secret) {
    bytes = Digest.sha256(
      [UInt8]("ssl-pinning admin token v1\0server.key\0".utf8) + [UInt8](secret.revealed.utf8))
  }

  /// A key from the signing key.
  ///
  /// - Throws: ``SigningKeyError`` where the key does not add up.
  init(signingKey: SigningKey) throws(SigningKeyError) {
    let domain = [UInt8]("ssl-pinning admin token v1\0prv.pem\0".utf8)
    bytes = Digest.sha256(domain + (try signingKey.sign(domain)))
  }

  /// The token's text.
  ///
  /// - Throws: ``AdminTokenError/key(_:)``.
  func text(of token: AdminToken) throws(AdminTokenError) -> String {
    let signed = AdminToken.header + "." + Base64URL.encode(token.claims)
    do throws(CertificateError) {
      let tag = try MessageAuthentication.tag(over: [UInt8](signed.utf8), key: bytes)
      return signed + "." + Base64URL.encode(tag)
    } catch { throw .key("\(error)") }
  }

  /// Whose token a text is, at `now` in Unix seconds.
  ///
  /// Nothing of the claims is read before the tag is found good.
  /// - Throws: ``AdminTokenError``.
  func administrator(of text: String, at now: Int64) throws(AdminTokenError) -> Administrator {
    guard text.utf8.count <= AdminToken.maximumBytes else { throw .malformed }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let claims = Base64URL.decode(parts[1]),
      let tag = Base64URL.decode(parts[2])
    else { throw .malformed }
    guard parts[0].elementsEqual(AdminToken.header.utf8) else {
      throw Base64URL.decode(parts[0]) == nil ? .malformed : .algorithm
    }
    let signed = [UInt8](text.utf8.dropLast(parts[2].count + 1))
    let isGood: Bool
    do throws(CertificateError) {
      isGood = try MessageAuthentication.isTag(tag, over: signed, key: bytes)
    } catch { throw .key("\(error)") }
    guard isGood else { throw .signature }
    let token = try AdminToken(claims: claims)
    guard token.issued <= now + Self.leeway else { throw .notYetValid }
    guard now < token.expires else { throw .expired }
    return Administrator(CheckedToken(token))
  }
}
