import Testing

@testable import SslPinningPlatform

@Suite("The places of a client's loops")
struct FastPlaceTests {
  /// Has a loop take all that it may have.
  private func fill(_ places: ClientPlaces, from first: Int = 0, streams: Bool = false) -> Int {
    var active = first
    while active < 10_000, places.hasRoom(beside: active), !streams || places.hasRoomForStream {
      places.take(beside: active, forStream: streams)
      active += 1
    }
    return active
  }

  @Test("are for one loop what the others leave", arguments: [1, 2, 4])
  func one(loops: Int) {
    let places = ClientPlaces(total: 512, loops: loops)
    // Seven hosts that hang, with 64 each, leave some.
    #expect((449...512).contains(fill(places)))
  }

  @Test("are no more than all", arguments: [1, 2, 4], [16, 24, 512])
  func all(loops: Int, total: Int) {
    let places = ClientPlaces(total: total, loops: loops)
    var counts = (0..<loops).map { _ in fill(places) }
    #expect(counts.reduce(0, +) <= total)
    #expect(counts.allSatisfy { $0 > 0 })
    // What one gives back another one may have.
    while counts[0] > 1 {
      counts[0] -= 1
      places.giveBack(beside: counts[0], fromStream: false)
    }
    let last = loops - 1
    counts[last] = fill(places, from: counts[last])
    #expect(counts.reduce(0, +) <= total)
    #expect(counts[last] > total / 2)
  }

  @Test("are taken by open streams up to seven eighths, on whatever loops")
  func streams() {
    let places = ClientPlaces(total: 512, loops: 2)
    let first = fill(places, streams: true)
    #expect(first == 448)
    #expect(fill(places, streams: true) == 0)
    #expect(fill(places, from: first) > first)
    #expect(fill(places) > 0)
    places.giveBack(beside: first, fromStream: true)
    #expect(places.hasRoomForStream)
  }
}
