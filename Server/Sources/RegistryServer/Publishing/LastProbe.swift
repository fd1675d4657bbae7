import RegistryCore
import SslPinningRules

/// What the last probe an endpoint showed, for people. Not kept across restarts.
public struct LastProbe: Sendable, Hashable {
  /// When, in Unix seconds.
  public var at: Int64
  /// What each vantage point saw at each address.
  public var probe: ProbeResult
  /// How many probes in a row came to nothing, this one included.
  public var failures: Int

  /// A probe.
  public init(at: Int64, probe: ProbeResult, failures: Int) {
    (self.at, self.probe, self.failures) = (at, probe, failures)
  }
}
