/// Base64 (RFC 4648 §4) in which every byte string has exactly one spelling.
///
/// - Only the standard alphabet; padding is required; no white space.
/// - The unused bits of the last character are zero. A decoder that ignores them accepts several
///   spellings of one pin, so two lists that look different would mean the same.
public enum StrictBase64 {
  /// The bytes that `text` spells, or `nil` if it is not the canonical spelling of any bytes.
  public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    text.withContiguousStorageIfAvailable(decode(contiguous:))
      ?? Array(text).withUnsafeBufferPointer(decode(contiguous:))
  }

  private static func decode(contiguous text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    // At most two: a third `=` is read as a digit below, and refused.
    let padding = text.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
    var out = [UInt8](repeating: 0, count: text.count / 4 * 3 - padding)
    var place = 0
    // Its low 24 bits are the four characters read last.
    var quantum: UInt32 = 0
    let values = values
    for index in 0..<text.count - padding {
      let value = values[Int(text[index])]
      guard value < 64 else { return nil }
      quantum = quantum << 6 | UInt32(value)
      guard index % 4 == 3 else { continue }
      out[place] = UInt8(truncatingIfNeeded: quantum >> 16)
      out[place + 1] = UInt8(truncatingIfNeeded: quantum >> 8)
      out[place + 2] = UInt8(truncatingIfNeeded: quantum)
      place += 3
    }
    switch padding {
    case 0: return out
    case 1 where quantum & 0b11 == 0:
      out[place] = UInt8(truncatingIfNeeded: quantum >> 10)
      out[place + 1] = UInt8(truncatingIfNeeded: quantum >> 2)
    case 2 where quantum & 0b1111 == 0: out[place] = UInt8(truncatingIfNeeded: quantum >> 4)
    default: return nil
    }
    return out
  }

  /// The bytes that `text` spells, or `nil` if it is not the canonical spelling of any bytes.
  public static func decode(_ text: String) -> [UInt8]? { decode(text.utf8) }

  /// The one spelling of `bytes`.
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    var out: [UInt8] = []
    out.reserveCapacity((bytes.count + 2) / 3 * 4)
    var quantum: UInt32 = 0
    var held = 0
    func emit(_ characters: Int) {
      for place in 0..<4 {
        let index = Int(quantum >> (18 - 6 * UInt32(place))) & 63
        out.append(place < characters ? alphabet[index] : UInt8(ascii: "="))
      }
    }
    for byte in bytes {
      quantum = quantum << 8 | UInt32(byte)
      held += 1
      if held == 3 {
        emit(4)
        quantum = 0
        held = 0
      }
    }
    if held > 0 {
      quantum <<= 8 * UInt32(3 - held)
      emit(held + 1)
    }
    return String(decoding: out, as: UTF8.self)
  }

  private static let alphabet = [UInt8](
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// What each byte spells; 255 for none. Digits are random: to branch on them costs more than to look them up.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, byte) in alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
    return values
  }()
}

/// Bytes as lower-case hexadecimal digits.
package func hex(_ bytes: some Sequence<UInt8>) -> String {
  let digits: [Character] = Array("0123456789abcdef")
  return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
}
