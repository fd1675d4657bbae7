/// The web console and the administration behind it.
public struct AdministrationConfiguration: Sendable, Equatable {
  /// How long a token of an administrator is valid, in milliseconds: 24 h.
  public var tokenTTL: Int64
  /// Whether there is a console at all.
  public var isEnabled: Bool
  /// Whether other machines may send tokens in clear text.
  public var isInsecure: Bool

  /// Settings; the defaults are those of the configuration file.
  public init(tokenTTL: Int64 = 86_400_000, isEnabled: Bool = true, isInsecure: Bool = false) {
    self.tokenTTL = tokenTTL
    self.isEnabled = isEnabled
    self.isInsecure = isInsecure
  }
}
