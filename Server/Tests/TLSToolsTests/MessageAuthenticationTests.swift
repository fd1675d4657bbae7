import TLSTools
import Testing

@Suite("HMAC")
struct MessageAuthenticationTests {
  @Test("SHA-256 gives the tags of RFC 4231")
  func vectors() throws {
    let cases: [(key: [UInt8], data: [UInt8], tag: String)] = [
      (
        [UInt8](repeating: 0x0b, count: 20), [UInt8]("Hi There".utf8),
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        [UInt8]("Jefe".utf8), [UInt8]("what do ya want for nothing?".utf8),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        [UInt8](repeating: 0xaa, count: 131),
        [UInt8]("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
    ]
    for (key, data, expected) in cases {
      let tag = try MessageAuthentication.tag(over: data, key: key)
      let digits = [UInt8]("0123456789abcdef".utf8)
      let text = tag.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
      #expect(String(decoding: text, as: UTF8.self) == expected)
      #expect(try MessageAuthentication.isTag(tag, over: data, key: key))
      #expect(try !MessageAuthentication.isTag(tag, over: data + [0], key: key))
      #expect(try !MessageAuthentication.isTag(Array(tag.dropLast()), over: data, key: key))
      #expect(try !MessageAuthentication.isTag(tag + [0], over: data, key: key))
    }
  }
}
