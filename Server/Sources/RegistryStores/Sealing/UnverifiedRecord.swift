import CanonicalJSON
import SslPinningRules

/// Reads single members of a record that nobody verified.
///
/// Whoever can write to the store may have put anything there. So the rest of it is not parsed: a record that is made of tiny
/// values takes many times its size once it is, and a server that is out of memory serves nobody.
package enum UnverifiedRecord {
  /// A member of the record's object, if that is a string; `nil` if it cannot be found.
  package static func string(_ name: String, of content: [UInt8]) -> String? {
    guard let place = place(of: [UInt8](#""\#(name)""#.utf8), in: content) else { return nil }
    return (try? JSONValue(parsing: Array(content[place])))?.stringValue
  }

  /// The bytes of a member in base64.
  static func bytes(_ name: String, of content: [UInt8]) -> [UInt8]? {
    string(name, of: content).flatMap { StrictBase64.decode($0.utf8) }
  }

  /// Where the string is, with its quotes, that the member of this quoted name has.
  private static func place(of name: [UInt8], in content: [UInt8]) -> Range<Int>? {
    var (index, depth, isNamed) = (0, 0, false)
    while index < content.count {
      switch content[index] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ",") where depth == 1: isNamed = false
      case UInt8(ascii: "\""):
        guard let end = end(ofStringAt: index, in: content) else { return nil }
        if depth == 1 {
          if isNamed { return index..<end }
          isNamed = content[index..<end].elementsEqual(name)
        }
        index = end
        continue
      default: break
      }
      index += 1
    }
    return nil
  }

  /// The place behind the closing quote.
  private static func end(ofStringAt start: Int, in content: [UInt8]) -> Int? {
    var index = start + 1
    while index < content.count {
      switch content[index] {
      case UInt8(ascii: "\""): return index + 1
      case UInt8(ascii: "\\"): index += 2
      default: index += 1
      }
    }
    return nil
  }
}
