/// How events are written.
public enum LogFormat: String, Sendable, CaseIterable {
  /// A JSON object each.
  case json
  /// A line of `name=value` for people.
  case text
}
