// A stub of Apple's Security framework and of what it takes from CoreFoundation: the used part,
// declared by hand from Apple's public documentation. Only ever type-checked, never run, linked or
// shipped. CoreFoundation's types stand here as the classes they are bridged with.

@_exported import Foundation

public typealias CFTypeRef = AnyObject
public typealias CFString = NSString
public typealias CFData = NSData
public typealias CFDate = NSDate
public typealias CFArray = NSArray
public typealias CFDictionary = NSDictionary
public typealias CFIndex = Int
@objc public final class CFAllocator: NSObject {}
@objc public final class CFError: NSObject, Error, @unchecked Sendable {}
public func CFErrorGetCode(_ error: CFError!) -> CFIndex { fatalError() }
public func CFErrorCopyDescription(_ error: CFError!) -> CFString! { fatalError() }

// Not Sendable here: whether they are depends on the SDK's version, and nothing may lean on it.
@objc public final class SecTrust: NSObject {}
@objc public final class SecCertificate: NSObject {}
@objc public final class SecKey: NSObject {}
@objc public final class SecPolicy: NSObject {}

public typealias OSStatus = Int32
public var errSecSuccess: OSStatus { fatalError() }
public var errSecHostNameMismatch: OSStatus { fatalError() }
public var errSecCertificateExpired: OSStatus { fatalError() }
public var errSecCertificateNotValidYet: OSStatus { fatalError() }

public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy { fatalError() }

public func SecTrustCreateWithCertificates(
  _ certificates: CFTypeRef, _ policies: CFTypeRef?, _ trust: UnsafeMutablePointer<SecTrust?>
) -> OSStatus { fatalError() }
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus {
  fatalError()
}
public func SecTrustCopyPolicies(
  _ trust: SecTrust, _ policies: UnsafeMutablePointer<CFArray?>
) -> OSStatus { fatalError() }
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchors: CFArray?) -> OSStatus {
  fatalError()
}
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ only: Bool) -> OSStatus {
  fatalError()
}
public func SecTrustSetNetworkFetchAllowed(_ trust: SecTrust, _ allow: Bool) -> OSStatus {
  fatalError()
}
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ date: CFDate) -> OSStatus { fatalError() }
@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, *)
public func SecTrustEvaluateWithError(
  _ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?
) -> Bool { fatalError() }
public typealias SecTrustWithErrorCallback = (SecTrust, Bool, CFError?) -> Void
@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, *)
public func SecTrustEvaluateAsyncWithError(
  _ trust: SecTrust, _ queue: DispatchQueue, _ result: @escaping SecTrustWithErrorCallback
) -> OSStatus { fatalError() }
@available(macOS 12.0, iOS 15.0, tvOS 15.0, watchOS 8.0, *)
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? { fatalError() }

public func SecCertificateCreateWithData(
  _ allocator: CFAllocator?, _ data: CFData
) -> SecCertificate? { fatalError() }
public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { fatalError() }

public struct SecKeyAlgorithm: RawRepresentable, Hashable, Sendable {
  public let rawValue: CFString
  public init(rawValue: CFString) { self.rawValue = rawValue }
  public static var rsaSignatureMessagePKCS1v15SHA512: SecKeyAlgorithm { fatalError() }
}
nonisolated(unsafe) public let kSecAttrKeyType: CFString = NSString()
nonisolated(unsafe) public let kSecAttrKeyTypeRSA: CFString = NSString()
nonisolated(unsafe) public let kSecAttrKeyClass: CFString = NSString()
nonisolated(unsafe) public let kSecAttrKeyClassPublic: CFString = NSString()
public func SecKeyCreateWithData(
  _ data: CFData, _ attributes: CFDictionary,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? { fatalError() }
public func SecKeyVerifySignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ signedData: CFData, _ signature: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> Bool { fatalError() }

extension URLProtectionSpace {
  public var serverTrust: SecTrust? { fatalError() }
}
extension URLCredential {
  public convenience init(trust: SecTrust) { fatalError() }
}
