// A stub of Apple's module Dispatch: the used part, declared by hand from Apple's public
// documentation. Only ever type-checked, never run, linked or shipped.

@_exported import ObjectiveC

public struct DispatchTime: Comparable, Sendable {
  public static func now() -> DispatchTime { fatalError() }
  public static func < (left: DispatchTime, right: DispatchTime) -> Bool { fatalError() }
}
public func + (time: DispatchTime, seconds: Double) -> DispatchTime { fatalError() }

public struct DispatchQoS: Sendable {
  public enum QoSClass: Sendable { case background, utility, `default`, userInitiated, unspecified }
  public static let userInitiated = DispatchQoS()
  public static let utility = DispatchQoS()
  public static let unspecified = DispatchQoS()
}

public class DispatchQueue: NSObject, @unchecked Sendable {
  public struct Attributes: OptionSet, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public static let concurrent = Attributes(rawValue: 1)
  }
  public convenience init(
    label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = []
  ) { fatalError() }
  public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue { fatalError() }
  @preconcurrency public func async(execute work: @escaping @Sendable @convention(block) () -> Void) {}
  @preconcurrency public func asyncAfter(
    deadline: DispatchTime, execute work: @escaping @Sendable @convention(block) () -> Void
  ) {}
}
