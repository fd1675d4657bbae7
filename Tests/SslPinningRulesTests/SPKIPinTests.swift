import SslPinningRules
import Testing

@Suite("Pins as people write them")
struct SPKIPinTests {
  static let text = "r/mIkG3eEpVdm+u/ko/cwxzOMo1bk4TyHIlByibiA5E="

  @Test(
    "reads every spelling of one pin as the same pin",
    arguments: [text, "sha256/\(text)", "sha256//\(text)", "pin-sha256=\"\(text)\""])
  func spellings(spelling: String) throws {
    let pin = try SPKIPin(parsing: spelling)
    #expect(pin == (try SPKIPin(base64: Self.text)))
    #expect(pin.base64 == Self.text)
    #expect(pin.description == Self.text)
    #expect(pin.bytes.count == 32)
    #expect(SPKIPin(digest: pin.bytes) == pin)
  }

  @Test(
    "is not misled by pins that begin with a slash, or with another hash's name",
    arguments: [
      "/+mi2LwMClfAdR9xoJoyw9nnbhB268M+OnPZd1ku2C0=",
      "//mi2LwMClfAdR9xoJoyw9nnbhB268M+OnPZd1ku2C0=",
      "sha1/LwMClfAdR9xoJoyw9nnbhB268M+OnPZd1ku2C0=",
      "sha256//fAdR9xoJoyw9nnbhB268M+OnPZd1ku2C0AA=",
    ])
  func slashes(text: String) throws {
    for spelling in [text, "sha256/\(text)", "sha256//\(text)", "pin-sha256=\"\(text)\""] {
      #expect(try SPKIPin(parsing: spelling).base64 == text, "\(spelling)")
    }
  }

  @Test(
    "refuses what is no pin, and says why",
    arguments: [
      ("", .wrongLength(0)), ("sha256/", .wrongLength(0)), ("sha256/a", .notBase64),
      ("AAAA", .wrongLength(3)), ("not base64", .notBase64),
      (text + "\n", .notBase64), (" " + text, .notBase64), (String(text.dropLast()), .notBase64),
      ("r/mIkG3eEpVdm+u/ko/cwxzOMo1bk4TyHIlByibiA5F=", .notBase64),
      ("r_mIkG3eEpVdm-u_ko_cwxzOMo1bk4TyHIlByibiA5E=", .notBase64),
      ("pin-sha256=\"\(text)", .unterminatedQuote), ("pin-sha256=\"", .unterminatedQuote),
      ("pin-sha256=\"\"", .wrongLength(0)),
      ("pin-sha256=\(text)", .notBase64),
      ("sha1/DmxUShsZuNiqPQsX2Oi9uv2sCnw=", .unsupportedHash("sha1")),
      ("md5/DmxUShsZuNiqPQsX2Oi9uv2sCnw=", .unsupportedHash("md5")),
      ("sha384/AAAA", .unsupportedHash("sha384")), ("sha512/AAAA", .unsupportedHash("sha512")),
      ("SHA256/\(text)", .notBase64), ("sha256/sha256/\(text)", .notBase64),
      ("sha256///\(text)", .notBase64),
    ] as [(String, PinSyntaxError)])
  func refused(text: String, error: PinSyntaxError) {
    #expect(throws: error) { try SPKIPin(parsing: text) }
    #expect(!error.description.isEmpty)
  }

  @Test("takes 32 bytes and no other number", arguments: [0, 1, 31, 32, 33, 64])
  func length(count: Int) {
    #expect((SPKIPin(digest: [UInt8](repeating: 7, count: count)) != nil) == (count == 32))
  }

  @Test("tells pins apart by every bit, and orders them by their bytes")
  func everyBit() throws {
    let pin = try SPKIPin(base64: Self.text)
    for index in 0..<256 {
      var bytes = pin.bytes
      bytes[index / 8] ^= 1 << UInt8(index % 8)
      let other = try #require(SPKIPin(digest: bytes))
      #expect(other != pin)
      #expect(other.bytes == bytes)
      #expect((other < pin) == bytes.lexicographicallyPrecedes(pin.bytes))
      #expect(Set([pin, other]).count == 2)
    }
  }
}
