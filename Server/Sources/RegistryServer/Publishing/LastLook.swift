import RegistryCore
import SslPinningRules

/// What the last look at an endpoint showed, for people. Not kept across restarts.
public struct LastLook: Sendable, Hashable {
  /// When, in Unix seconds.
  public var at: Int64
  /// What each vantage point saw at each address.
  public var look: Look
  /// How many looks in a row came to nothing, this one included.
  public var failures: Int

  /// A look.
  public init(at: Int64, look: Look, failures: Int) {
    (self.at, self.look, self.failures) = (at, look, failures)
  }
}
