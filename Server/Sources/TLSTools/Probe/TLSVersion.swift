import CSslPinningOpenSSL

/// A version of TLS, ordered by age.
public enum TLSVersion: Int32, Sendable, Hashable, Comparable, CustomStringConvertible {
  /// RFC 2246; for servers of the past in tests.
  case tls10 = 0x0301
  /// RFC 4346; for servers of the past in tests.
  case tls11 = 0x0302
  /// RFC 5246.
  case tls12 = 0x0303
  /// RFC 8446.
  case tls13 = 0x0304

  public static func < (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue < b.rawValue }

  public var description: String {
    switch self {
    case .tls10: "TLSv1.0"
    case .tls11: "TLSv1.1"
    case .tls12: "TLSv1.2"
    case .tls13: "TLSv1.3"
    }
  }

  /// The version a session agreed on.
  package init?(of session: OpaquePointer) { self.init(rawValue: SSL_version(session)) }
}
