/// A JSON number: a finite binary64 (RFC 7493 section 2.2), never NaN, never an infinity, never `-0`.
///
/// Every value of this type can be written as JSON. `-0` becomes `0` on the way in, because RFC 8785 writes
/// it as `0`, and two values with the same canonical bytes must be equal.
public struct JSONNumber: Sendable, Hashable {
  /// The number; finite, and never `-0`.
  public let value: Double

  /// The largest magnitude at which every integer is exact: 2^53 - 1 (RFC 7493 section 2.2).
  public static let greatestInteger: Int64 = 9_007_199_254_740_991

  /// Takes a finite number; `nil` for NaN and the infinities, which JSON cannot represent.
  public init?(_ value: Double) {
    guard value.isFinite else { return nil }
    self.value = value == 0 ? 0 : value
  }

  /// Takes an integer that every receiver reads back exactly; `nil` beyond ±(2^53 - 1).
  public init?(exactly integer: Int64) {
    guard integer.magnitude <= Self.greatestInteger.magnitude else { return nil }
    self.value = Double(integer)
  }

  /// The number as an integer, if it is one that a double holds exactly (magnitude up to 2^53 - 1).
  ///
  /// `nil` beyond that bound, because neighbouring integers read as the same double.
  public var integer: Int64? {
    guard value.magnitude <= Double(Self.greatestInteger) else { return nil }
    let integer = Int64(value)
    return Double(integer) == value ? integer : nil
  }
}

extension JSONNumber: ExpressibleByIntegerLiteral {
  /// Literals have 32 bits, so that each is exact.
  public init(integerLiteral value: Int32) {
    self.value = Double(value)
  }
}

extension JSONNumber {
  /// A double that the parser has proved to be finite and not `-0`.
  init(finite value: Double) {
    self.value = value
  }

  /// An integer of at most fifteen digits, checked by the parser.
  init(shortInteger digits: Bytes) {
    // Not `Int`, which has 32 bits on some watches.
    var magnitude: Int64 = 0
    for index in 0..<digits.count where digits[index] != UInt8(ascii: "-") {
      magnitude = magnitude * 10 + Int64(digits[index] - UInt8(ascii: "0"))
    }
    let isNegative = !digits.isEmpty && digits[0] == UInt8(ascii: "-")
    self.value = Double(isNegative ? -magnitude : magnitude)
  }
}
