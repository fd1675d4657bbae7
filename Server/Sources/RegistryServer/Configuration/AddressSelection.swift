/// Which of the addresses that an endpoint's name leads to are looked at.
public enum AddressSelection: String, Sendable, CaseIterable {
  /// Every one: a server farm in the middle of a rotation shows two keys, and both are in use.
  case all
  /// The first that answers.
  case first
}
