import RegistryCore
import SslPinningRules

/// What a token lets its bearer do. It is part of what is signed, so nobody can widen it.
///
/// - Each route names what it needs (``Need``); no route can be written without.
/// - Where changes are made, the scope is checked again (``refusal(of:at:)``), so a route that names too little changes
///   nothing.
public enum AdminScope: Sendable, Equatable {
  /// See everything, change nothing.
  case read
  /// Announce keys at the endpoints of these hosts, and nothing else: not even see what there is. Whoever does so
  /// proves to have the key, by a certificate request.
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

  /// How many keys that no probe has seen yet the bearer of a scope for announcing may leave at an endpoint: as many as
  /// may wait there unannounced. Without a limit, whoever stole one would make the document larger than clients take.
  static let mostAnnounced = EndpointKeys.maximumCandidates

  /// How many announced keys may wait at an endpoint when its bearer announces another.
  var announcedLimit: Int {
    if case .stage = self { Self.mostAnnounced } else { EndpointKeys.maximumStaged }
  }

  /// Why its bearer may not make a change; `nil` if it may.
  ///
  /// A key counts for all hosts of its endpoint, so all must be of this scope, or below one that is.
  /// - Parameter endpoint: the one that it is about; `nil` where there is none.
  func refusal(of command: AdministrationCommand, at endpoint: WatchedEndpoint?) -> APIError? {
    switch (self, command) {
    case (.decide, _): return nil
    case (.stage(let hosts), .stage):
      guard let endpoint, hosts.contains(endpoint.fqdn) else { return .outOfScope(self) }
      let others = endpoint.patterns.filter { pattern in
        !hosts.contains { $0 == pattern.base || $0.isAbove(pattern.base) }
      }
      guard !others.isEmpty else { return nil }
      let names = others.prefix(3).map(\.description).joined(separator: ", ")
      return APIError(
        403, "keys of this endpoint count for \(names), too, and this token is for \(self)",
        hint: "ssl-pinning token prints one for all of its hosts, with --host for each")
    default: return .outOfScope(self)
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

extension HostName {
  /// Whether a name is below this one, at any depth.
  fileprivate func isAbove(_ other: HostName) -> Bool {
    guard case .name(let name) = self else { return false }
    return HostPattern.anyDepth(name).matches(other)
  }
}

extension AdminScope: CustomStringConvertible {
  public var description: String { text ?? "decide" }
}
