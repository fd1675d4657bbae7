import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// What a token lets its bearer do. It is part of what is signed, so nobody widens it.
///
/// - Each route names what it needs; there is none without.
/// - Each change is asked for again where changes are made (``permits(_:at:)``): a route that names too little
///   changes nothing.
public enum AdminScope: Sendable, Equatable {
  /// See everything, change nothing.
  case read
  /// Announce keys for these hosts, and nothing else: not even see what there is. Whoever does so proves to have the
  /// key, by a certificate request.
  case stage(hosts: [HostName])
  /// Everything.
  case decide

  /// What a route needs.
  enum Need: Sendable {
    /// Any token.
    case anything
    case reading
    case staging
    case deciding
  }

  func covers(_ need: Need) -> Bool {
    switch (self, need) {
    case (.decide, _), (_, .anything), (.read, .reading), (.stage, .staging): true
    default: false
    }
  }

  /// Whether its bearer may make a change.
  ///
  /// - Parameter host: the name of the endpoint that it is about; `nil` where there is no such endpoint.
  func permits(_ command: AdministrationCommand, at host: HostName?) -> Bool {
    switch (self, command) {
    case (.decide, _): true
    case (.stage(let hosts), .stage): host.map(hosts.contains) ?? false
    default: false
    }
  }

  /// The most bytes that its text has.
  static let maximumBytes = 512

  /// Its text in a token, as scopes are written (RFC 6749 §3.3): `read`, or `stage` and hosts. A token without is for
  /// everything.
  var text: String? {
    switch self {
    case .read: "read"
    case .stage(let hosts): (["stage"] + hosts.map(\.description)).joined(separator: " ")
    case .decide: nil
    }
  }

  /// Reads what ``text`` wrote; `nil` for anything else.
  init?(text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    let hosts = words.dropFirst().compactMap { try? HostName($0) }
    if text == "read" {
      self = .read
    } else if words.first == "stage", !hosts.isEmpty {
      self = .stage(hosts: hosts)
    } else {
      return nil
    }
    guard self.text == text, text.utf8.count <= Self.maximumBytes else { return nil }
  }
}

extension AdminScope: CustomStringConvertible {
  public var description: String { text ?? "decide" }
}

/// The tokens that were used here since the server started, the newest 1 000, and which count no more: the list from
/// which one is chosen that is to end. Nobody else knows which tokens there are: they are made without asking a server.
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

  func isRevoked(_ administrator: Administrator) -> Bool {
    revoked().contains(administrator.tokenID)
  }

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
