import Foundation
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
  static let leastSecret = Secret.leastBytes
  /// How far another machine's clock may be ahead, in seconds.
  static let leeway: Int64 = 60

  /// A token that was checked. Only this file makes one.
  struct CheckedToken {
    let token: AdminToken
    let id: String
    let keyID: String

    fileprivate init(_ token: AdminToken, text: String, keyID: String) {
      (self.token, id, self.keyID) = (token, AdminToken.id(of: text), keyID)
    }
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

  /// Names the key. Nobody can make the key of it.
  var id: String {
    Base64URL.encode(Digest.sha256([UInt8]("ssl-pinning admin token key id v1\0".utf8) + bytes))
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
    return Administrator(CheckedToken(token, text: text, keyID: id))
  }
}

/// Issues tokens that the server with this configuration takes.
public struct AdminTokenIssuer: Sendable {
  private let key: AdminTokenKey

  /// Finds the key: `server.key` or, where it is not set, `prv.pem`.
  ///
  /// - Throws: ``DocumentSignerError/signingKey(path:_:)``.
  public init(_ configuration: ServerConfiguration) throws(DocumentSignerError) {
    if let secret = configuration.server.key {
      key = AdminTokenKey(secret: secret)
      return
    }
    let file = URL(filePath: configuration.tls.directory, directoryHint: .isDirectory)
      .appending(path: "prv.pem")
    do throws(SigningKeyError) {
      key = try AdminTokenKey(signingKey: try SigningKey(file: file))
    } catch { throw .signingKey(path: file.path(percentEncoded: false), error) }
  }

  /// A token.
  ///
  /// Hazard: it is all that its bearer needs. Print it for who asked, and write it to no log.
  ///
  /// - Parameters:
  ///   - name: who will have done what is done with it.
  ///   - now: Unix time in seconds.
  ///   - ttl: for how many seconds it is valid, from 1 second to 3660 days.
  ///   - scope: what it lets its bearer do.
  /// - Throws: ``AdminTokenError``.
  public func token(
    for name: String, at now: Int64, ttl: Int64, scope: AdminScope = .decide
  ) throws(AdminTokenError) -> String {
    guard (1...AdminToken.longest).contains(ttl) else { throw .times }
    return try key.text(
      of: AdminToken(name: name, issued: now, expires: now + ttl, scope: scope))
  }

  /// What names a token where it must not be shown, as in `ui.revoked_tokens`.
  public static func id(of token: String) -> String { AdminToken.id(of: token) }
}

extension ServerConfiguration {
  /// Why nobody may administer here; `nil` where those with a token may.
  ///
  /// Tokens are not taken in clear text from other machines: who sees one pass can do all that its owner may.
  var administrationRefusal: APIError? {
    guard administration.isEnabled else {
      return APIError(
        403, "the administration is switched off here", hint: "set ui.enabled to true")
    }
    guard isAdministrationExposed else { return nil }
    return APIError(
      403, "the administration is not served in clear text to other machines",
      hint: Self.exposureHint)
  }

  /// Whether tokens would cross the network in clear text.
  var isAdministrationExposed: Bool {
    administration.isEnabled && !administration.isInsecure && server.certificate == nil
      && !(administration.listen ?? listen).isLoopback
  }

  /// The secret that administrators' tokens come from, as an operator knows it; `nil` if nobody administers here.
  package var tokenSource: String? {
    guard administration.isEnabled else { return nil }
    if server.key != nil { return "server.key" }
    return publishing.signing.command.isEmpty ? "prv.pem" : nil
  }

  /// Why nobody may administer with the `server.key` there is; `nil` if it is long enough, or none is set. Whoever
  /// has one token can try out a short one at leisure, and then make tokens.
  var shortKeyRefusal: APIError? {
    guard let key = server.key, key.revealed.utf8.count < AdminTokenKey.leastSecret else {
      return nil
    }
    return APIError(
      403,
      "server.key has less than \(AdminTokenKey.leastSecret) bytes and can be guessed from a token",
      hint: Self.keyHint)
  }

  static let keyHint = "openssl rand -base64 32 prints a better one"

  static let exposureHint =
    "set server.certificate and server.private_key, or server.listen (or ui.listen) to loopback behind a proxy that speaks"
    + " TLS, or ui.insecure to true"
}
