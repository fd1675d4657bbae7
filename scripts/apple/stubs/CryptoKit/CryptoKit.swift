// A stub of Apple's CryptoKit: the used part, declared by hand from Apple's public documentation.
// Only ever type-checked, never run, linked or shipped.

import Foundation

public protocol Digest: Hashable, Sequence, Sendable where Element == UInt8 {}

@available(macOS 10.15, iOS 13.0, watchOS 6.0, tvOS 13.0, *)
public struct SHA256: Sendable {
  public static func hash<D: DataProtocol>(data: D) -> SHA256Digest { fatalError() }
}
public struct SHA256Digest: Digest {
  public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
}

@available(macOS 10.15, iOS 13.0, watchOS 6.0, tvOS 13.0, *)
public struct SHA512: Sendable {
  public static func hash<D: DataProtocol>(data: D) -> SHA512Digest { fatalError() }
}
public struct SHA512Digest: Digest {
  public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
}

@available(macOS 10.15, iOS 13.0, watchOS 6.0, tvOS 13.0, *)
public enum P256: Sendable {
  public enum Signing: Sendable {
    public struct ECDSASignature: Sendable {
      public init<D: DataProtocol>(derRepresentation: D) throws { fatalError() }
    }
    public struct PublicKey: Sendable {
      public init<Bytes: ContiguousBytes>(x963Representation: Bytes) throws { fatalError() }
      public func isValidSignature<D: DataProtocol>(_ signature: ECDSASignature, for data: D) -> Bool {
        fatalError()
      }
    }
  }
}
@available(macOS 10.15, iOS 13.0, watchOS 6.0, tvOS 13.0, *)
public enum Curve25519: Sendable {
  public enum Signing: Sendable {
    public struct PublicKey: Sendable {
      public init<D: ContiguousBytes>(rawRepresentation: D) throws { fatalError() }
      public func isValidSignature<S: DataProtocol, D: DataProtocol>(_ signature: S, for data: D) -> Bool {
        fatalError()
      }
    }
  }
}
