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

  @Test("sets made, added to and united in any order hold what a dictionary would")
  func model() {
    var numbers = PolicyLookupTests.Numbers(state: 7)
    let ends: [Int64?] = [nil, 10, 20, 30]
    for _ in 0..<2000 {
      // They differ from each other in a byte or two of 32, anywhere.
      let known = (0..<6).map { _ in
        var bytes = [UInt8](repeating: 0x80, count: 32)
        bytes[Int.random(in: 0..<32, using: &numbers)] = .random(in: .min ... .max, using: &numbers)
        return SPKIPin(computed: bytes)
      }
      var model: [SPKIPin: Int64] = [:]
      func draw(upTo most: Int) -> [Pin] {
        (0..<Int.random(in: 0...most, using: &numbers)).map { _ in
          let pin = Pin(
            known[Int.random(in: 0..<6, using: &numbers)],
            expires: ends[Int.random(in: 0..<4, using: &numbers)])
          model[pin.spki] = max(model[pin.spki] ?? .min, pin.expires ?? .max)
          return pin
        }
      }
      var set = PinSet(draw(upTo: 5))
      for pin in draw(upTo: 3) { set.insert(pin) }
      set.formUnion(PinSet(draw(upTo: 3)))

      #expect(set.pins.count == model.count)
      for pin in set.pins { #expect(model[pin.spki] == pin.expires ?? .max) }
      let now = 16 + PinSet.expiryTolerance
      for pin in known { #expect(set.contains(pin, at: now) == (model[pin] ?? .min > 16)) }
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
