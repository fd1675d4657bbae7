// A stub of Apple's Foundation: errors. Only ever type-checked.

@objc open class NSError: NSObject, Error, @unchecked Sendable {
  public init(domain: String, code: Int, userInfo: [String: Any]? = nil) { super.init() }
  open var domain: String { fatalError() }
  open var code: Int { fatalError() }
  open var userInfo: [String: Any] { fatalError() }
  open var localizedDescription: String { fatalError() }
}
extension Error {
  public var localizedDescription: String { fatalError() }
}

// What the compiler looks up by name where a method is seen from Objective-C.
public func _convertNSErrorToError(_ error: NSError?) -> any Error { fatalError() }
public func _convertErrorToNSError(_ error: any Error) -> NSError { fatalError() }

public let NSURLErrorDomain: String = ""
public let NSLocalizedDescriptionKey: String = ""
public let NSUnderlyingErrorKey: String = ""
public let NSURLErrorFailingURLErrorKey: String = ""
public var NSURLErrorUnknown: Int { fatalError() }
public var NSURLErrorUserCancelledAuthentication: Int { fatalError() }
public var NSURLErrorCancelled: Int { fatalError() }
public var NSURLErrorBadURL: Int { fatalError() }
public var NSURLErrorUnsupportedURL: Int { fatalError() }
public var NSURLErrorSecureConnectionFailed: Int { fatalError() }
public var NSURLErrorServerCertificateUntrusted: Int { fatalError() }

public struct URLError: Error, Sendable {
  public struct Code: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    public static var badURL: Code { fatalError() }
    public static var timedOut: Code { fatalError() }
    public static var httpTooManyRedirects: Code { fatalError() }
    public static var resourceUnavailable: Code { fatalError() }
    public static var requestBodyStreamExhausted: Code { fatalError() }
    public static var dataLengthExceedsMaximum: Code { fatalError() }
    public static var cancelled: Code { fatalError() }
    public static var unsupportedURL: Code { fatalError() }
    public static var secureConnectionFailed: Code { fatalError() }
    public static var badServerResponse: Code { fatalError() }
  }
  public init(_ code: Code, userInfo: [String: Any] = [:]) {}
  public var code: Code { fatalError() }
}

public protocol LocalizedError: Error {
  var errorDescription: String? { get }
  var failureReason: String? { get }
  var recoverySuggestion: String? { get }
  var helpAnchor: String? { get }
}

extension LocalizedError {
  public var errorDescription: String? { nil }
  public var failureReason: String? { nil }
  public var recoverySuggestion: String? { nil }
  public var helpAnchor: String? { nil }
}
