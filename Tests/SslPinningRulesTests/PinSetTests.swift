import SslPinningRules
import Testing

@Suite("Pins that expire")
struct PinSetTests {
  static let day: Int64 = 86400

  @Test(
    "a pin counts until 26 hours after its expiry",
    arguments: [
      (nil, Int64.max, true), (nil, .min, true), (1000, 1000, true), (1000, 1000 + 26 * 3600, true),
      (1000, 1001 + 26 * 3600, false), (1000, .max, false), (0, 0, true), (-1, 26 * 3600, false),
      (.max, .max, true), (.max - 1, .max, true), (.min, 0, false), (.min, .min, true),
    ] as [(Int64?, Int64, Bool)])
  func expiry(expires: Int64?, now: Int64, counts: Bool) {
    let set = PinSet([Pin(.test(1), expires: expires)])
    #expect(set.contains(.test(1), at: now) == counts)
    #expect(set.hasLivePin(at: now) == counts)
    #expect(!set.contains(.test(2), at: now))
    #expect(!set.isEmpty)
  }

  @Test("of a pin that stands twice the later expiry counts")
  func union() {
    let early = Pin(.test(1), expires: 10)
    let late = Pin(.test(1), expires: 20)
    let never = Pin(.test(1))
    for (pins, expected) in [
      ([early, late], late), ([late, early], late), ([early, never], never),
      ([never, early], never),
    ] {
      #expect(PinSet(pins).pins == [expected])
      var united = PinSet(pins.prefix(1))
      united.formUnion(PinSet(pins.dropFirst()))
      #expect(united == PinSet(pins))
    }
  }

  @Test("an empty set has no live pin")
  func empty() {
    #expect(PinSet().isEmpty)
    #expect(!PinSet().hasLivePin(at: 0))
    #expect(PinSet().pins.isEmpty)
  }
}

extension SPKIPin {
  /// A pin of 32 equal bytes.
  static func test(_ byte: UInt8) -> SPKIPin {
    SPKIPin(computed: [UInt8](repeating: byte, count: 32))
  }
}
