// A stub of Apple's Foundation: which values bridge to which classes. Only ever type-checked.

extension String: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSString { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSString, result: inout String?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSString, result: inout String?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSString?) -> String {
    fatalError()
  }
}

extension Data: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSData { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSData, result: inout Data?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSData, result: inout Data?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSData?) -> Data {
    fatalError()
  }
}

extension Date: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSDate { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSDate, result: inout Date?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSDate, result: inout Date?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSDate?) -> Date {
    fatalError()
  }
}

extension Bool: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSNumber, result: inout Bool?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSNumber, result: inout Bool?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSNumber?) -> Bool {
    fatalError()
  }
}

extension Int: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSNumber, result: inout Int?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSNumber, result: inout Int?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSNumber?) -> Int {
    fatalError()
  }
}

extension Array: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSArray { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSArray, result: inout [Element]?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSArray, result: inout [Element]?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSArray?) -> [Element] {
    fatalError()
  }
}

extension Dictionary: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSDictionary { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSDictionary, result: inout [Key: Value]?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSDictionary, result: inout [Key: Value]?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSDictionary?) -> [Key: Value] {
    fatalError()
  }
}

extension URL: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSURL { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSURL, result: inout URL?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSURL, result: inout URL?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSURL?) -> URL {
    fatalError()
  }
}

extension URLRequest: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSURLRequest { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ from: NSURLRequest, result: inout URLRequest?) {}
  public static func _conditionallyBridgeFromObjectiveC(
    _ from: NSURLRequest, result: inout URLRequest?
  ) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ from: NSURLRequest?) -> URLRequest {
    fatalError()
  }
}
