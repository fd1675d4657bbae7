/// What may stand in a request's head. A line break would begin a field, or a request, of somebody
/// else's making.
package enum HeaderRule {
  /// What cannot be sent as it stands of a request's head; `nil`: all of it can.
  static func fault(method: String, headers: [String: String]) -> String? {
    for (name, value) in headers where !isSendable(name: name, value: value) {
      return "the header field \"\(name)\" cannot be sent"
    }
    return isToken(method) ? nil : "the method cannot be sent"
  }

  /// A field that can be sent as it stands (RFC 9110 section 5).
  package static func isSendable(name: String, value: String) -> Bool {
    isToken(name) && !value.utf8.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7f }
  }

  /// A token (RFC 9110 section 5.6.2).
  package static func isToken(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(isTokenByte)
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}
