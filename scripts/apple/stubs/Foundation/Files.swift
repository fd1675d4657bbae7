// A stub of Apple's Foundation: files and property lists. Only ever type-checked.

@objc open class FileHandle: NSObject, @unchecked Sendable {
  public convenience init(forReadingFrom url: URL) throws { fatalError() }
  @available(macOS 10.15.4, iOS 13.4, watchOS 6.2, tvOS 13.4, *)
  public func read(upToCount count: Int) throws -> Data? { fatalError() }
  @available(macOS 10.15, iOS 13.0, watchOS 6.0, tvOS 13.0, *)
  open func close() throws {}
}

@objc open class PropertyListSerialization: NSObject {
  public enum PropertyListFormat: UInt, Sendable {
    case openStep = 1
    case xml = 100
    case binary = 200
  }
  public struct MutabilityOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
  }
  public typealias ReadOptions = MutabilityOptions
  open class func propertyList(
    from data: Data, options opt: ReadOptions = [],
    format: UnsafeMutablePointer<PropertyListFormat>?
  ) throws -> Any { fatalError() }
}

@objc open class Bundle: NSObject, @unchecked Sendable {
  open class var main: Bundle { fatalError() }
  open var bundleURL: URL { fatalError() }
  open var bundlePath: String { fatalError() }
  open var resourceURL: URL? { fatalError() }
  open var infoDictionary: [String: Any]? { fatalError() }
  open var bundleIdentifier: String? { fatalError() }
}

@objc open class FileManager: NSObject, @unchecked Sendable {
  open class var `default`: FileManager { fatalError() }
  open func contentsOfDirectory(atPath path: String) throws -> [String] { fatalError() }
  public enum SearchPathDirectory: UInt, Sendable {
    case cachesDirectory = 13
    case applicationSupportDirectory = 14
  }
  public struct SearchPathDomainMask: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var userDomainMask: SearchPathDomainMask { fatalError() }
  }
  open func urls(
    for directory: SearchPathDirectory, in domainMask: SearchPathDomainMask
  ) -> [URL] { fatalError() }
  open func setAttributes(_ attributes: [FileAttributeKey: Any], ofItemAtPath path: String) throws {}
}

public struct FileAttributeKey: Hashable, RawRepresentable, Sendable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
  public static let protectionKey = FileAttributeKey(rawValue: "")
}

public struct FileProtectionType: Hashable, RawRepresentable, Sendable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
  public static let completeUntilFirstUserAuthentication = FileProtectionType(rawValue: "")
}

public struct URLResourceValues {
  public init() {}
  public var isExcludedFromBackup: Bool?
}
extension URL {
  public mutating func setResourceValues(_ values: URLResourceValues) throws {}
}
