/// ECMAScript's `Number::toString` (ECMA-262 section 6.1.6.1.20), which RFC 8785 section 3.2.2.3
/// prescribes.
///
/// Swift's own `description` finds the same digits, the shortest that read back as the number and of
/// those the closest; only where it puts the point and the exponent differs.
enum NumberLayout {
  /// Appends a finite number that is not `-0`.
  static func write(_ value: Double, to bytes: inout [UInt8]) {
    if value.magnitude < 0x1p53, value == Double(Int64(value)) {
      bytes.append(contentsOf: String(Int64(value)).utf8)
      return
    }
    if value < 0 { bytes.append(UInt8(ascii: "-")) }
    let (significand, scale) = decimal(value.magnitude)
    let digits = String(significand).utf8
    lay(digits, point: digits.count + scale, to: &bytes)
  }

  /// A positive number as `significand` times ten to the power of `scale`, without trailing zeros.
  /// A double never needs more than 17 digits, so the significand fits.
  private static func decimal(_ magnitude: Double) -> (significand: UInt64, scale: Int) {
    var significand: UInt64 = 0
    var (scale, exponent) = (0, 0)
    var (sawPoint, sawExponent, isNegativeExponent) = (false, false, false)
    for byte in magnitude.description.utf8 {
      switch byte {
      case UInt8(ascii: "."): sawPoint = true
      case UInt8(ascii: "e"): sawExponent = true
      case UInt8(ascii: "-"): isNegativeExponent = true
      case UInt8(ascii: "+"): break
      default:
        let digit = byte & 0x0F
        if sawExponent {
          exponent = exponent * 10 + Int(digit)
        } else {
          significand = significand &* 10 &+ UInt64(digit)
          if sawPoint { scale -= 1 }
        }
      }
    }
    scale += isNegativeExponent ? -exponent : exponent
    while significand > 0, significand.isMultiple(of: 10) {
      significand /= 10
      scale += 1
    }
    return (significand, scale)
  }

  /// The layouts of the specification; `point` is its n, the number of digits its k.
  private static func lay(_ digits: String.UTF8View, point: Int, to bytes: inout [UInt8]) {
    let zero = UInt8(ascii: "0")
    if digits.count <= point, point <= 21 {
      bytes.append(contentsOf: digits)
      bytes.append(contentsOf: repeatElement(zero, count: point - digits.count))
    } else if point > 0, point <= 21 {
      bytes.append(contentsOf: digits.prefix(point))
      bytes.append(UInt8(ascii: "."))
      bytes.append(contentsOf: digits.dropFirst(point))
    } else if point > -6, point <= 0 {
      bytes.append(zero)
      bytes.append(UInt8(ascii: "."))
      bytes.append(contentsOf: repeatElement(zero, count: -point))
      bytes.append(contentsOf: digits)
    } else {
      bytes.append(contentsOf: digits.prefix(1))
      if digits.count > 1 { bytes.append(UInt8(ascii: ".")) }
      bytes.append(contentsOf: digits.dropFirst())
      bytes.append(UInt8(ascii: "e"))
      bytes.append(UInt8(ascii: point > 0 ? "+" : "-"))
      bytes.append(contentsOf: String((point - 1).magnitude).utf8)
    }
  }
}
