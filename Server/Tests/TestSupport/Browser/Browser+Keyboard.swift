import CanonicalJSON

/// Keys that are no characters (W3C WebDriver §17.4.2).
public enum BrowserKey: String, Sendable {
  case tab = "\u{E004}"
  case enter = "\u{E007}"
  case shift = "\u{E008}"
  case escape = "\u{E00C}"
  case space = "\u{E00D}"
  case end = "\u{E010}"
  case home = "\u{E011}"
  case left = "\u{E012}"
  case up = "\u{E013}"
  case right = "\u{E014}"
  case down = "\u{E015}"
}

extension Browser {
  /// Presses a key and lets it go, wherever the focus is; `shift` is held meanwhile.
  public func press(_ key: BrowserKey, shift: Bool = false) async throws {
    var actions: [JSONValue] = [Self.down(key), Self.up(key)]
    if shift { actions = [Self.down(.shift)] + actions + [Self.up(.shift)] }
    let keyboard: JSONObject = [
      "type": .string("key"), "id": .string("keyboard"), "actions": .array(actions),
    ]
    try await send("/actions", ["actions": .array([.object(keyboard)])])
  }

  private static func down(_ key: BrowserKey) -> JSONValue {
    .object(["type": .string("keyDown"), "value": .string(key.rawValue)])
  }

  private static func up(_ key: BrowserKey) -> JSONValue {
    .object(["type": .string("keyUp"), "value": .string(key.rawValue)])
  }
}
