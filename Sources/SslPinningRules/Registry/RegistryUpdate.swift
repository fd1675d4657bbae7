/// What became of a document that came in.
public struct RegistryUpdate: Sendable {
  /// What is believed now. Where the document was refused: the same registry as before, though
  /// newer key sets of the document may be believed already, and are then worth storing.
  public let registry: TrustedRegistry
  /// Why the document is not believed; `nil` where it is.
  public let refusal: RegistryError?
}
