import SslPinningRules
import TLSTools
import Testing

@testable import RegistryServer

@Suite("Of a fleet's addresses points are asked for those") struct FleetTests {
  private static func place(_ number: Int) -> Endpoint {
    Endpoint(address: "192.0.2.\(number)", port: 443)
  }

  private static func fleet(_ keys: [Int: Set<UInt8>], after before: Fleet? = nil) -> Fleet? {
    Fleet(
      Dictionary(uniqueKeysWithValues: keys.map { (place($0), Set($1.map { pin($0) })) }),
      after: before)
  }

  /// What eight probes ask for.
  private static func asked(_ keys: [Int: Set<UInt8>], _ fleet: inout Fleet?, _ probes: Int = 8)
    -> [Set<Endpoint>]
  {
    (0..<probes).map { _ in
      fleet = Self.fleet(keys, after: fleet)
      return Set(fleet?.ask() ?? [])
    }
  }

  @Test("that have different keys, two at once")
  func isOne() {
    #expect(Self.fleet([1: [1], 2: [1], 3: [1]]) == nil)
    var fleet = Self.fleet([1: [1], 2: [2]])
    #expect(Set(fleet?.ask() ?? []) == [Self.place(1), Self.place(2)])
  }

  @Test("each in its turn if all are new: sixteen in eight probes")
  func allNew() {
    let keys = Dictionary(uniqueKeysWithValues: (1...16).map { ($0, Set([UInt8($0)])) })
    var fleet: Fleet?
    let asked = Self.asked(keys, &fleet)
    #expect(asked.allSatisfy { $0.count == 2 })
    #expect(asked.reduce(into: Set()) { $0.formUnion($1) }.count == 16)
  }

  @Test(
    "each within sixteen probes, whatever is new: a server that is not asked for is no word against its key"
  )
  func inTurn() {
    var keys = Dictionary(uniqueKeysWithValues: (1...16).map { ($0, Set([UInt8($0)])) })
    var fleet: Fleet?
    _ = Self.asked(keys, &fleet, 200)
    func coverage(_ probes: Int, _ key: (Int) -> UInt8?) -> Int {
      var seen: Set<Endpoint> = []
      for probe in 0..<probes {
        if let key = key(probe) { keys[1] = [key] }
        for asked in Self.asked(keys, &fleet, 1) { seen.formUnion(asked) }
      }
      return seen.count
    }
    #expect(coverage(8) { _ in nil } == 16)
    keys[3] = [103]
    keys[4] = [104]
    #expect(coverage(16) { _ in nil } == 16)
    // A balancer before servers with keys of their own: they are known after a while.
    _ = coverage(40) { UInt8(110 + $0 % 4) }
    #expect(coverage(8) { UInt8(110 + $0 % 4) } == 16)
    // And one that shows a new key each time takes one question of the two.
    #expect(coverage(16) { UInt8(150 + $0) } == 16)
  }

  private static func told(_ number: Int, by route: Int, _ key: UInt8) -> Fleet.Told {
    Fleet.Told(place: place(number), route: route, keys: [pin(key)])
  }

  @Test("and for one more that points alone reach, at each probe, as long as they tell of it")
  func told() {
    let shown = [Self.place(1): Set([pin(1)]), Self.place(2): Set([pin(2)])]
    var fleet = Fleet(shown, told: [Self.told(3, by: 1, 3)], after: nil)
    for _ in 0..<99 {
      #expect(fleet?.ask().contains(Self.place(3)) == true)
      #expect(fleet?.ask().count == 3)
      fleet = Fleet(shown, after: fleet)
    }
    fleet = Fleet(shown, after: fleet)
    #expect(fleet?.ask().count == 2)
    // Also if nothing is seen from here.
    var hidden = Fleet(nil, told: [Self.told(3, by: 1, 3), Self.told(4, by: 2, 4)], after: nil)
    #expect(Set((0..<2).flatMap { _ in hidden?.ask() ?? [] }) == [Self.place(3), Self.place(4)])
    #expect(Fleet(nil, told: [Self.told(3, by: 1, 3)], after: nil) == nil)
  }

  @Test("whose key is new, in its turn, however many points told of another")
  func secondHidden() {
    let shown = [Self.place(1): Set([pin(1)]), Self.place(2): Set([pin(2)])]
    var fleet: Fleet?
    func asked(_ keys: [UInt8], _ probes: Int) -> [Bool] {
      (0..<probes).map { _ in
        let told = (1...5).flatMap {
          [Self.told(16, by: $0, keys[0]), Self.told(17, by: $0, keys[1])]
        }
        fleet = Fleet(shown, told: told, after: fleet)
        return fleet?.ask().contains(Self.place(17)) == true
      }
    }
    _ = asked([16, 17], 20)
    // The one gets a key, and then the other, before each point has asked for the first.
    #expect(asked([116, 17], 6).count { $0 } >= 1)
    #expect(asked([116, 117], 3).count { $0 } == 3)
  }

  @Test("but for none that this server reaches by DNS64, or that shows what all show")
  func notTold() {
    let shown = [Self.place(1): Set([pin(1)]), Self.place(2): Set([pin(1)])]
    #expect(Fleet(shown, told: [Self.told(3, by: 1, 1)], after: nil) == nil)
    #expect(Fleet(shown, told: [Self.told(3, by: 1, 2)], after: nil) != nil)
    let same = Fleet.Told(
      place: Endpoint(address: "64:ff9b::192.0.2.1", port: 443), route: 1, keys: [pin(2)])
    #expect(Fleet(shown, told: [same], after: nil) == nil)
  }

  @Test(
    "of what a point told that lies, no more than in its turn: another's is asked for in every second probe"
  )
  func lies() {
    let shown = Dictionary(
      uniqueKeysWithValues: (1...8).map { (Self.place($0), Set([pin(UInt8($0))])) })
    var fleet = Fleet(shown, after: nil)
    var asked: [Set<Endpoint>] = []
    for probe in 0..<40 {
      // New addresses and keys each time, and the honest one as its own, with another key.
      let number = UInt8(60 + probe)
      var words = (0..<4).map { Self.told(100 + (probe * 4 + $0) % 100, by: 1, number) }
      words.append(Self.told(9, by: 1, number))
      words.append(Self.told(9, by: 2, 9))
      fleet = Fleet(shown, told: words, after: fleet)
      asked.append(Set(fleet?.ask() ?? []))
    }
    #expect(asked.allSatisfy { $0.count <= 3 && $0.intersection(shown.keys).count == 2 })
    #expect(asked.count { $0.contains(Self.place(9)) } >= 20)
    #expect(asked.suffix(4).reduce(Set()) { $0.union($1) }.isSuperset(of: shown.keys))
  }

  @Test("whose key is new, in three of the next four probes, whatever kind of key that is")
  func oneNew() {
    // An ECDSA key that all share, and RSA keys of their own or of all.
    for others in [
      [Set<UInt8>]((1...16).map { [100, $0] }), Array(repeating: [100, 1], count: 16),
    ] {
      var keys = Dictionary(uniqueKeysWithValues: zip(1...16, others))
      var fleet: Fleet?
      _ = Self.asked(keys, &fleet, 50)
      keys[7] = [100, 200]
      // If it is no fleet before that, all keys are new with the first.
      #expect(Self.asked(keys, &fleet, 4).count { $0.contains(Self.place(7)) } >= 3)
    }
  }
}
