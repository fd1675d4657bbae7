/// Why this platform cannot pin. Not a refusal: nothing was judged.
public enum PlatformError: Error, Hashable, Sendable {
  /// A library is missing, too old, or another one than pinning works with.
  case cannotPin(reason: String)
}

extension PlatformError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .cannotPin(let reason): "this platform cannot pin: \(reason)"
    }
  }
}
