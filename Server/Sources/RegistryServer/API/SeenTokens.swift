import CanonicalJSON
import SslPinningPlatform

/// The tokens that were used here since the server started, the 1 000 used last, and which of all tokens count no more.
///
/// From this list people choose which token to end. There is no other list: tokens are made without asking a server.
final class SeenTokens: Sendable {
  struct Use: Sendable, Equatable {
    let administrator: Administrator
    /// When it was last used, in Unix seconds, and from where.
    var at: Int64
    var peer: String
  }

  static let capacity = 1000

  private let uses = Locked<[String: Use]>([:])
  private let revoked: @Sendable () -> Set<String>

  /// - Parameter revoked: the ids of tokens that count no more.
  init(revoked: @escaping @Sendable () -> Set<String> = { [] }) { self.revoked = revoked }

  func isRevoked(_ administrator: Administrator) -> Bool { isRevoked(administrator.tokenID) }

  /// Whether the token of this id counts no more.
  func isRevoked(_ id: String) -> Bool { revoked().contains(id) }

  func note(_ administrator: Administrator, from peer: String, at now: Int64) {
    uses.withLock { uses in
      uses[administrator.tokenID] = Use(administrator: administrator, at: now, peer: peer)
      guard uses.count > Self.capacity else { return }
      uses = uses.filter { now < $0.value.administrator.expires }
      if uses.count > Self.capacity, let oldest = uses.min(by: { $0.value.at < $1.value.at }) {
        uses[oldest.key] = nil
      }
    }
  }

  /// Those that still count, by id.
  var current: [String: Use] {
    let revoked = revoked()
    return uses.withLock { $0 }.filter { !revoked.contains($0.key) }
  }

  /// As administrators see them, the last used first.
  func list() -> JSONObject {
    let revoked = revoked()
    let sorted = uses.withLock { Array($0) }.sorted {
      ($1.value.at, $0.key) < ($0.value.at, $1.key)
    }
    return [
      "tokens": .array(
        sorted.map { id, use in
          .object([
            "id": .string(id), "name": .string(use.administrator.name),
            "scope": .string("\(use.administrator.scope)"),
            "issued": .integer(use.administrator.issued),
            "expires": .integer(use.administrator.expires), "lastUsed": .integer(use.at),
            "peer": .string(use.peer), "revoked": .bool(revoked.contains(id)),
          ])
        })
    ]
  }
}
