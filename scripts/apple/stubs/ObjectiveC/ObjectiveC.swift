// A stub of Apple's module ObjectiveC: the used part, declared by hand from Apple's public
// documentation. Only ever type-checked, never run, linked or shipped.

public struct Selector: ExpressibleByStringLiteral, Hashable, Sendable {
  public init(_ string: String) {}
  public init(stringLiteral value: String) {}
}

@objc public protocol NSObjectProtocol: AnyObject {
  var hash: Int { get }
  func responds(to aSelector: Selector!) -> Bool
}

@objc open class NSObject: NSObjectProtocol {
  @objc public init() {}
  @objc open var hash: Int { fatalError() }
  @objc open func responds(to aSelector: Selector!) -> Bool { fatalError() }
  open func forwardingTarget(for aSelector: Selector!) -> Any? { fatalError() }
  open func copy() -> Any { fatalError() }
}

extension NSObject: Hashable {
  public static func == (left: NSObject, right: NSObject) -> Bool { fatalError() }
  public func hash(into hasher: inout Hasher) {}
}

// What the compiler looks up by name where a method is seen from Objective-C.
public struct ObjCBool: ExpressibleByBooleanLiteral, Sendable {
  public init(_ value: Bool) {}
  public init(booleanLiteral value: Bool) {}
  public var boolValue: Bool { fatalError() }
}
public func _convertBoolToObjCBool(_ value: Bool) -> ObjCBool { fatalError() }
public func _convertObjCBoolToBool(_ value: ObjCBool) -> Bool { fatalError() }
public func class_getImageName(_ cls: AnyClass?) -> UnsafePointer<CChar>? { fatalError() }
