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

  /// - Parameter proof: the token that was checked; nobody else can make one.
  init(_ proof: AdminTokenKey.CheckedToken) {
    name = proof.token.name
    issued = proof.token.issued
    expires = proof.token.expires
  }
}
