// A stub of Apple's Foundation: the used part, declared by hand from Apple's public documentation.
// Only ever type-checked, never run, linked or shipped.

@_exported import CoreFoundation
@_exported import Darwin
@_exported import Dispatch
@_exported import ObjectiveC
@_exported import Security

public typealias NSString = CFString
public typealias NSData = CFData
public typealias NSDate = CFDate
public typealias NSArray = CFArray
public typealias NSDictionary = CFDictionary
@objc open class NSNumber: NSObject, @unchecked Sendable {
  open var objCType: UnsafePointer<CChar> { fatalError() }
  open var boolValue: Bool { fatalError() }
  open var uint64Value: UInt64 { fatalError() }
  open var int64Value: Int64 { fatalError() }
  open var doubleValue: Double { fatalError() }
}
@objc open class NSURL: NSObject, @unchecked Sendable {}
public func NSSelectorFromString(_ aSelectorName: String) -> Selector { fatalError() }
@objc open class Stream: NSObject {
  // In the SDK a structure of C, which no protocol of a stub can name.
  @objc public enum Event: UInt, Sendable {
    case openCompleted = 1
    case hasBytesAvailable = 2
    case hasSpaceAvailable = 4
    case errorOccurred = 8
    case endEncountered = 16
  }
  open unowned(unsafe) var delegate: (any StreamDelegate)? {
    get { fatalError() }
    set {}
  }
  open func open() {}
  open func close() {}
  open class func getBoundStreams(
    withBufferSize bufferSize: Int,
    inputStream: AutoreleasingUnsafeMutablePointer<InputStream?>?,
    outputStream: AutoreleasingUnsafeMutablePointer<OutputStream?>?
  ) {}
}
@objc open class InputStream: Stream {}
@objc public protocol StreamDelegate: NSObjectProtocol {
  @objc optional func stream(_ aStream: Stream, handle eventCode: Stream.Event)
}
public typealias CFWriteStream = OutputStream
public func CFWriteStreamSetDispatchQueue(_ stream: CFWriteStream!, _ q: DispatchQueue!) {}
@objc open class OutputStream: Stream {
  open var hasSpaceAvailable: Bool { fatalError() }
  open func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int { fatalError() }
}

@objc open class NSLock: NSObject, @unchecked Sendable {
  public override init() { super.init() }
  open func lock() {}
  open func unlock() {}
}
@objc open class OperationQueue: NSObject, @unchecked Sendable {
  public override init() { super.init() }
  open var maxConcurrentOperationCount: Int {
    get { fatalError() }
    set {}
  }
}
@objc open class ProcessInfo: NSObject, @unchecked Sendable {
  open class var processInfo: ProcessInfo { fatalError() }
  open var systemUptime: TimeInterval { fatalError() }
  open var operatingSystemVersion: OperatingSystemVersion { fatalError() }
  open var activeProcessorCount: Int { fatalError() }
  open var environment: [String: String] { fatalError() }
  open var processName: String {
    get { fatalError() }
    set {}
  }
}

public struct OperatingSystemVersion: Hashable, Sendable {
  public var majorVersion: Int
  public var minorVersion: Int
  public var patchVersion: Int
}

public typealias TimeInterval = Double

public protocol ContiguousBytes {}
extension Array: ContiguousBytes where Element == UInt8 {}
extension Data: ContiguousBytes {}

public protocol DataProtocol: RandomAccessCollection where Element == UInt8 {}
extension Array: DataProtocol where Element == UInt8 {}
extension UnsafeBufferPointer: DataProtocol where Element == UInt8 {}
extension UnsafeRawBufferPointer: DataProtocol {}

public struct Data: DataProtocol, RangeReplaceableCollection, MutableCollection, Hashable, Sendable
{
  public typealias Index = Int
  public init() {}
  public init<S: Sequence>(_ elements: S) where S.Element == UInt8 {}
  public var startIndex: Int { fatalError() }
  public var endIndex: Int { fatalError() }
  public subscript(index: Int) -> UInt8 {
    get { fatalError() }
    set {}
  }
  public func index(after index: Int) -> Int { fatalError() }
  public func withUnsafeBytes<ResultType>(
    _ body: (UnsafeRawBufferPointer) throws -> ResultType
  ) rethrows -> ResultType { fatalError() }
  public mutating func append(_ other: Data) {}
  public mutating func replaceSubrange<C: Collection>(_ range: Range<Int>, with bytes: C)
  where C.Element == UInt8 {}
}

public struct Date: Hashable, Comparable, Sendable {
  public init() {}
  public init(timeIntervalSince1970: TimeInterval) {}
  public var timeIntervalSince1970: TimeInterval { fatalError() }
  @available(macOS 12.0, iOS 15.0, watchOS 8.0, tvOS 15.0, *)
  public func formatted() -> String { fatalError() }
  public static func < (left: Date, right: Date) -> Bool { fatalError() }
}

public struct URL: Hashable, Sendable {
  public init?(string: String) {}
  public init(fileURLWithPath path: String) {}
  public init?(string: String, relativeTo url: URL?) {}
  public var absoluteURL: URL { fatalError() }
  public var fragment: String? { fatalError() }
  public var scheme: String? { fatalError() }
  public var host: String? { fatalError() }
  public var port: Int? { fatalError() }
  public var user: String? { fatalError() }
  public var password: String? { fatalError() }
  public var isFileURL: Bool { fatalError() }
  public var path: String { fatalError() }
  public var pathExtension: String { fatalError() }
  public func appendingPathComponent(_ component: String) -> URL { fatalError() }
  public var lastPathComponent: String { fatalError() }
  public var absoluteString: String { fatalError() }
}

public struct URLComponents: Hashable, Sendable {
  public init?(url: URL, resolvingAgainstBaseURL resolve: Bool) {}
  public var fragment: String?
  public var password: String?
  public var user: String?
  public var url: URL? { fatalError() }
}

extension NSString {
  public struct CompareOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
  }
}
extension String { public typealias CompareOptions = NSString.CompareOptions }
public struct Locale: Hashable, Sendable {}
public struct CharacterSet: Sendable {
  public static var whitespacesAndNewlines: CharacterSet { fatalError() }
}
extension StringProtocol {
  public func range<T: StringProtocol>(
    of aString: T, options: String.CompareOptions = [], range: Range<Index>? = nil,
    locale: Locale? = nil
  ) -> Range<Index>? { fatalError() }
  public func components<T: StringProtocol>(separatedBy separator: T) -> [String] { fatalError() }
  public func trimmingCharacters(in set: CharacterSet) -> String { fatalError() }
}
