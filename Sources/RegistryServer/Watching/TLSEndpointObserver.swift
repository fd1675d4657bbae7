import Pinning
import TLSTools

public struct TLSEndpointObserver: EndpointObserver {
  init(_ tls: TLSConfiguration) throws(AnchorsError) {}
  public func look(at endpoint: WatchedEndpoint) async -> Look { .unreachable(reason: "later") }
}
/// Why the anchors cannot be used.
public enum AnchorsError: Error, Equatable, Sendable, CustomStringConvertible {
  case unreadable(path: String, reason: String)
  public var description: String { "" }
}
