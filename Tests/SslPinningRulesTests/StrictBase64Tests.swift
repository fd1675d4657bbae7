import Foundation
import SslPinningRules
import Testing

@Suite("Base64 in one spelling")
struct StrictBase64Tests {
  @Test("writes and reads what everybody writes", arguments: 0..<70)
  func roundTrip(count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 97 + count) }
    let text = Data(bytes).base64EncodedString()
    #expect(StrictBase64.encode(bytes) == text)
    #expect(StrictBase64.decode(text) == bytes)
  }

  @Test(
    "refuses every other spelling",
    arguments: [
      "Q", "QQ", "QQ=", "QUE", "=", "==", "===", "====", "Q===", "QQ===", "QUE==", "QQ==QQ==",
      "QUE=QUE=", "QQ=Q", "Q=Q=", "=QQQ", "QQ==\n", "\nQQ==", " QQ==", "QQ= =", "QU E=", "QUE=\r\n",
      "QQ==\u{0}", "-_-_", "QQ**", "QQ==QQ", "QUJD====", "ＱＱ==", "QÖ==", "%51%51%3D%3D",
    ])
  func refused(text: String) { #expect(StrictBase64.decode(text) == nil) }

  @Test("refuses all 15 and all 3 other settings of the unused bits")
  func trailingBits() {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    var accepted = 0
    for character in alphabet {
      if StrictBase64.decode("Q\(character)==") != nil { accepted += 1 }
    }
    #expect(accepted == 4)
    accepted = 0
    for character in alphabet {
      if StrictBase64.decode("QU\(character)=") != nil { accepted += 1 }
    }
    #expect(accepted == 16)
  }

  @Test("takes no byte outside the standard alphabet, wherever it stands")
  func alphabet() {
    for byte in UInt8.min...UInt8.max {
      let isInAlphabet =
        byte < 0x80
        && (Character(UnicodeScalar(byte)).isLetter || Character(UnicodeScalar(byte)).isNumber
          || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/"))
      for place in 0..<4 {
        var text = [UInt8]("AAAA".utf8)
        text[place] = byte
        let expected = isInAlphabet || (byte == UInt8(ascii: "=") && place == 3)
        #expect((StrictBase64.decode(text) != nil) == expected, "byte \(byte) at \(place)")
      }
    }
  }
}
