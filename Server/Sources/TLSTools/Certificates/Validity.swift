import Foundation

/// The time a certificate is valid, in Unix seconds (UTC), both ends included
/// (RFC 5280 section 4.1.2.5). Any past or future span can be made, for tests of expiry.
public struct Validity: Sendable, Hashable {
  public var notBefore: Int64
  public var notAfter: Int64

  public init(notBefore: Int64, notAfter: Int64) {
    self.notBefore = notBefore
    self.notAfter = notAfter
  }

  /// From one hour before `now` (clocks differ) to `days` after it.
  public static func days(_ days: Int, from now: Int64) -> Validity {
    Validity(notBefore: now - 3600, notAfter: now + Int64(days) * 86_400)
  }

  /// `days(_:from:)` at this machine's clock.
  public static func daysFromNow(_ days: Int) -> Validity {
    .days(days, from: Int64(Date().timeIntervalSince1970))
  }
}
