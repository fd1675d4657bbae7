import CanonicalJSON
import SslPinningRules

/// What a token of an administrator says. Times are Unix seconds.
///
///     base64url({"alg":"HS256","typ":"JWT"}) . base64url(claims) . base64url(HMAC-SHA-256)
///     claims: {"aud":"ssl-pinning admin","exp":…,"iat":…,"nbf":…,"sub":"alice"}
///
/// - A JSON Web Token (RFC 7519) of one kind alone: the header is these bytes or the token is none, so
///   no token chooses how it is checked (`alg: none`, RFC 8725 §3.1).
/// - Base64url is unpadded and in its one spelling (RFC 7515 §2).
/// - All five claims are there and no other; `nbf` is `iat`.
struct AdminToken: Sendable, Equatable {
  /// Who: 1 to 64 letters, digits, `.`, `_`, `@` and `-`.
  let name: String
  /// When it was issued.
  let issued: Int64
  /// The first second in which it no longer counts.
  let expires: Int64

  static let audience = "ssl-pinning admin"
  static let header = Base64URL.encode([UInt8](#"{"alg":"HS256","typ":"JWT"}"#.utf8))
  /// More than the longest token has: 36 characters, 2 dots, 43 of tag, and of claims with the longest
  /// name and numbers 225.
  static let maximumBytes = 512
  /// How long a token may be valid, in seconds: as long as `ui.token_ttl` may be.
  static let longest: Int64 = 3660 * 86_400

  init(name: String, issued: Int64, expires: Int64) throws(AdminTokenError) {
    guard Self.isName(name) else { throw .name }
    guard issued >= 0, issued < expires, expires - issued <= Self.longest else { throw .times }
    (self.name, self.issued, self.expires) = (name, issued, expires)
  }

  /// Reads claims whose tag was found good.
  init(claims bytes: [UInt8]) throws(AdminTokenError) {
    guard
      let claims =
        (try? JSONValue(
          parsing: bytes, limits: JSONLimits(maximumDepth: 1, maximumBytes: Self.maximumBytes)))?
        .objectValue
    else { throw .malformed }
    guard claims.count == 5, let name = claims["sub"]?.stringValue,
      let issued = claims["iat"]?.integerValue, let expires = claims["exp"]?.integerValue,
      let begins = claims["nbf"]?.integerValue, begins == issued,
      let audience = claims["aud"]?.stringValue
    else { throw .malformed }
    guard audience.utf8.elementsEqual(Self.audience.utf8) else { throw .audience }
    try self.init(name: name, issued: issued, expires: expires)
  }

  /// The claims as they are signed.
  var claims: [UInt8] {
    JSONValue.object([
      "aud": .string(Self.audience), "exp": .integer(expires), "iat": .integer(issued),
      "nbf": .integer(issued), "sub": .string(name),
    ]).canonicalBytes
  }

  static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
          UInt8(ascii: "@"), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }
}
