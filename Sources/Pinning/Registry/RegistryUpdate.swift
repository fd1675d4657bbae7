/// What became of a document that came in.
public struct RegistryUpdate: Sendable {
  /// What is believed now. Where the document was refused: the same registry as before, though
  /// newer key sets of the document may be believed already, and are then worth storing.
  public let registry: TrustedRegistry
  /// Why the document is not believed; `nil` where it is.
  public let refusal: RegistryError?
  /// Where it does not go on from the statement that was believed. It is believed all the same: refusing it
  /// would lock out whoever met the false one.
  public let fork: RegistryFork?
}
