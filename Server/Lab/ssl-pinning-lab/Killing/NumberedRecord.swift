import RegistryServer
import RegistryStores

/// The record that is written while processes are killed. What each version holds follows from its
/// number, so that whoever reads it knows what it has to be, to the last byte.
enum NumberedRecord {
  static let name = "numbered.json"
  /// How many history entries each version brings.
  static let entries: Int64 = 2

  /// What this version has: usually a few KiB, now and then as much as fills many pages.
  static func bytes(of version: Int64) -> [UInt8] {
    var noise = Noise(state: UInt64(bitPattern: version))
    let size = version % 16 == 0 ? 150_000 : 200 + Int(noise.next() % 4000)
    return words(count: size / 8, &noise)
  }

  /// The entries that come with this version.
  static func history(of version: Int64) -> [[UInt8]] {
    (1...entries).map { place in
      var noise = Noise(state: UInt64(bitPattern: version * entries + place))
      return words(count: 20 + Int(noise.next() % 200), &noise)
    }
  }

  /// Whether a record is one that was written as a whole.
  static func isWhole(_ record: StoredRecord) -> Bool { record.bytes == bytes(of: record.version) }

  /// Whether these are the newest entries of a record of this version: all of them, newest first,
  /// or as many as were asked for.
  static func isWhole(_ history: [StoredEntry], of version: Int64, limit: Int) -> Bool {
    guard history.count == min(limit, Int(version * entries)) else { return false }
    return history.enumerated().allSatisfy { index, entry in
      let number = version * entries - Int64(index)
      let (origin, place) = ((number - 1) / entries + 1, Int((number - 1) % entries))
      return entry.number == number && entry.bytes == self.history(of: origin)[place]
    }
  }

  private static func words(count: Int, _ noise: inout Noise) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(count * 8)
    for _ in 0..<count { withUnsafeBytes(of: noise.next()) { out.append(contentsOf: $0) } }
    return out
  }

  /// SplitMix64: numbers without a pattern that would survive a mix-up.
  private struct Noise: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
      return z ^ (z >> 31)
    }
  }
}
