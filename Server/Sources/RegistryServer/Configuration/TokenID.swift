import SslPinningPlatform
import SslPinningRules

/// What names an administrator's token where it must not be shown: 9 bytes of its hash, in base64url.
enum TokenID {
  /// The id of a token.
  static func of(_ token: String) -> String {
    StrictBase64.encode(Digest.sha256([UInt8](token.utf8)).prefix(9))
      .replacing("+", with: "-").replacing("/", with: "_")
  }

  /// Whether a text can be one.
  static func isOne(_ text: String) -> Bool {
    text.utf8.count == 12
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
