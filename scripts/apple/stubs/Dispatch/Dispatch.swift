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

public struct DispatchWorkItemFlags: OptionSet, Sendable {
  public let rawValue: UInt
  public init(rawValue: UInt) { self.rawValue = rawValue }
}

open class DispatchObject: NSObject {}
public class DispatchGroup: DispatchObject, @unchecked Sendable {}
public class DispatchQueue: DispatchObject, @unchecked Sendable {
  public struct Attributes: OptionSet, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public static let concurrent = Attributes(rawValue: 1)
  }
  public enum AutoreleaseFrequency: Sendable { case inherit, workItem, never }
  public convenience init(
    label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [],
    autoreleaseFrequency: AutoreleaseFrequency = .inherit, target: DispatchQueue? = nil
  ) { fatalError() }
  public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue { fatalError() }
  @preconcurrency public func async(
    group: DispatchGroup? = nil, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: @escaping @Sendable @convention(block) () -> Void
  ) {}
  @preconcurrency public func asyncAfter(
    deadline: DispatchTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: @escaping @Sendable @convention(block) () -> Void
  ) {}
}
