// A stub of Apple's Security framework: the used part, declared by hand from Apple's public
// documentation. Only ever type-checked, never run, linked or shipped.

@_exported import CoreFoundation
import Dispatch

// Not Sendable here: whether they are depends on the SDK's version, and nothing may lean on it.
public final class SecTrust {}
public final class SecCertificate {}
public final class SecKey {}
public final class SecPolicy {}

private func named() -> CFString { fatalError() }

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

public struct SecKeyAlgorithm: RawRepresentable, Hashable, @unchecked Sendable {
  public let rawValue: CFString
  public init(rawValue: CFString) { self.rawValue = rawValue }
  public static let rsaSignatureMessagePKCS1v15SHA512 = SecKeyAlgorithm(rawValue: named())
}
nonisolated(unsafe) public let kSecAttrKeyType: CFString = named()
nonisolated(unsafe) public let kSecAttrKeyTypeRSA: CFString = named()
nonisolated(unsafe) public let kSecAttrKeyClass: CFString = named()
nonisolated(unsafe) public let kSecAttrKeyClassPublic: CFString = named()
public func SecKeyCreateWithData(
  _ data: CFData, _ attributes: CFDictionary,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? { fatalError() }
public func SecKeyVerifySignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ signedData: CFData, _ signature: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> Bool { fatalError() }

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, *)
public enum tls_protocol_version_t: UInt16, Sendable {
  case TLSv10 = 0x0301
  case TLSv11 = 0x0302
  case TLSv12 = 0x0303
  case TLSv13 = 0x0304
  case DTLSv10 = 0xfeff
  case DTLSv12 = 0xfefd
}
