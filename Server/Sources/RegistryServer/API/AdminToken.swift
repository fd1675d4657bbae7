import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// What a token of an administrator says. Times are Unix seconds.
///
///     base64url({"alg":"HS256","typ":"JWT"}) . base64url(claims) . base64url(HMAC-SHA-256)
///     claims: {"aud":"ssl-pinning admin","exp":…,"iat":…,"nbf":…,"scope":"read","sub":"alice"}
///
/// - A JSON Web Token (RFC 7519) of one kind alone: the header is these bytes or the token is none, so
///   no token chooses how it is checked (`alg: none`, RFC 8725 §3.1).
/// - Base64url is unpadded and in its one spelling (RFC 7515 §2).
/// - All claims are there and no other; `nbf` is `iat`. Without `scope` it is for everything (``AdminScope``).
struct AdminToken: Sendable, Equatable {
  /// Who: 1 to 64 letters, digits, `.`, `_`, `@` and `-`.
  let name: String
  /// When it was issued.
  let issued: Int64
  /// The first second in which it no longer counts.
  let expires: Int64
  /// What it lets its bearer do.
  let scope: AdminScope

  static let audience = "ssl-pinning admin"
  static let header = Base64URL.encode([UInt8](#"{"alg":"HS256","typ":"JWT"}"#.utf8))
  /// More than the longest token has: 36 characters, 2 dots, 43 of tag, and of claims with the longest
  /// name, numbers and scope 925.
  static let maximumBytes = 1024
  /// How long a token may be valid, in seconds: as long as `ui.token_ttl` may be.
  static let longest: Int64 = 3660 * 86_400

  init(
    name: String, issued: Int64, expires: Int64, scope: AdminScope = .decide
  ) throws(AdminTokenError) {
    guard Self.isName(name) else { throw .name }
    guard scope.text.map({ AdminScope(text: $0) == scope }) ?? true else { throw .scope }
    guard issued >= 0, issued < expires, expires - issued <= Self.longest else { throw .times }
    (self.name, self.issued, self.expires, self.scope) = (name, issued, expires, scope)
  }

  /// Reads claims whose tag was found good.
  init(claims bytes: [UInt8]) throws(AdminTokenError) {
    guard
      let claims =
        (try? JSONValue(
          parsing: bytes, limits: JSONLimits(maximumDepth: 1, maximumBytes: Self.maximumBytes)))?
        .objectValue
    else { throw .malformed }
    var scope = AdminScope.decide
    if let claim = claims["scope"] {
      guard let named = claim.stringValue.flatMap({ AdminScope(text: $0) }) else {
        throw .malformed
      }
      scope = named
    }
    guard claims.count == (scope == .decide ? 5 : 6), let name = claims["sub"]?.stringValue,
      let issued = claims["iat"]?.integerValue, let expires = claims["exp"]?.integerValue,
      let begins = claims["nbf"]?.integerValue, begins == issued,
      let audience = claims["aud"]?.stringValue
    else { throw .malformed }
    guard audience.utf8.elementsEqual(Self.audience.utf8) else { throw .audience }
    try self.init(name: name, issued: issued, expires: expires, scope: scope)
  }

  /// The claims as they are signed.
  var claims: [UInt8] {
    var claims: JSONObject = [
      "aud": .string(Self.audience), "exp": .integer(expires), "iat": .integer(issued),
      "nbf": .integer(issued), "sub": .string(name),
    ]
    claims["scope"] = scope.text.map { .string($0) }
    return JSONValue.object(claims).canonicalBytes
  }

  /// Names a token: a token has one spelling alone, so nobody has it under another name.
  static func id(of text: String) -> String { TokenID.of(text) }

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

/// Why a token is not made, or does not count.
public enum AdminTokenError: Error, Equatable, Sendable {
  /// It is not three parts of base64url, or does not say what a token says.
  case malformed
  /// Its header asks for another kind of check than the only one.
  case algorithm
  /// Somebody without the key made it, or the key was changed since.
  case signature
  /// It is for something else.
  case audience
  /// It is valid in the future.
  case notYetValid
  /// It was valid in the past.
  case expired
  /// The name is empty, too long, or has other characters than letters, digits and `._@-`.
  case name
  /// It ends before it begins, or lasts longer than 3660 days.
  case times
  /// An administrator ended it.
  case revoked
  /// The scope has no host, or more than a token holds.
  case scope
  /// No key can be made to sign it with.
  case key(String)
}

extension AdminTokenError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .malformed: "this is no token; hint: ssl-pinning token prints one"
    case .algorithm:
      "the token is of a kind that is not used here; hint: ssl-pinning token prints one"
    case .signature:
      "the token is not of this server; hint: ssl-pinning token prints one, given the same configuration"
    case .audience: "the token is for something else; hint: ssl-pinning token prints one"
    case .notYetValid: "the token is not valid yet; hint: compare the clocks"
    case .expired: "the token has expired; hint: ssl-pinning token prints another"
    case .name: "a name has 1 to 64 letters, digits, '.', '_', '@' and '-'"
    case .times: "a token is valid from 1 second to 3660 days"
    case .revoked: "the token was revoked; hint: ask whoever runs the server for another"
    case .scope:
      "a token is for hosts whose names have 500 characters together, and for one at least"
    case .key(let reason): "no token can be signed: \(reason)"
    }
  }
}

extension AdminTokenError: ExplainedError {}

/// Somebody whose token was found good.
///
/// Only ``AdminTokenKey/administrator(of:at:)`` makes one, so what asks for an `Administrator` cannot be
/// reached without a token.
struct Administrator: Sendable, Equatable {
  /// The name in the token.
  let name: String
  /// When the token was issued, in Unix seconds.
  let issued: Int64
  /// The first second in which the token no longer counts.
  let expires: Int64
  /// What the token lets its bearer do.
  let scope: AdminScope
  /// Names the token where it must not be shown: 12 characters of its hash.
  let tokenID: String
  /// Names the key that the token was checked with: another key ended all tokens of this one.
  let keyID: String

  /// - Parameter proof: the token that was checked; nobody else can make one.
  init(_ proof: AdminTokenKey.CheckedToken) {
    name = proof.token.name
    issued = proof.token.issued
    expires = proof.token.expires
    scope = proof.token.scope
    tokenID = proof.id
    keyID = proof.keyID
  }
}

/// Base64url without padding (RFC 4648 §5, RFC 7515 §2), in which every byte string has exactly one
/// spelling.
enum Base64URL {
  static func encode(_ bytes: some Collection<UInt8>) -> String {
    let text = StrictBase64.encode(bytes).utf8.filter { $0 != UInt8(ascii: "=") }
    return String(
      decoding: text.map { byte in
        switch byte {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        default: byte
        }
      }, as: UTF8.self)
  }

  /// The bytes that a text spells, or `nil` where it is not the one spelling of any bytes.
  static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var standard: [UInt8] = []
    standard.reserveCapacity(text.count + 3)
    for byte in text {
      switch byte {
      case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
      case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
      case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
      default: standard.append(byte)
      }
    }
    while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
    return StrictBase64.decode(standard)
  }
}
