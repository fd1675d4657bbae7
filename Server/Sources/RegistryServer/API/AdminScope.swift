import SslPinningRules

/// What a token lets its bearer do. It is part of what is signed, so nobody can widen it.
///
/// - Each route names what it needs (``Need``); no route can be written without.
/// - Where changes are made, the scope is checked again (``permits(_:at:)``), so a route that names too little changes
///   nothing.
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
