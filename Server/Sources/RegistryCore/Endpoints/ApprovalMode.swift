/// Who decides about a new key that was confirmed.
public enum ApprovalMode: String, Sendable, Hashable, CaseIterable {
  /// The rules: a confirmed key is published, unless something about it asks for a person.
  case automatic = "auto"
  /// A person, for every key after the endpoint's first.
  case manual
}
