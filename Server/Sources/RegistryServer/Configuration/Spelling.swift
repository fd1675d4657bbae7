/// How alike two names are spelled.
enum Spelling {
  /// The candidate within two edits of a mistyped name, letter case aside.
  static func nearest(to name: String, among candidates: [String]) -> String? {
    let scored = candidates.map { ($0, distance(name.lowercased(), $0.lowercased())) }
    return scored.filter { $0.1 <= 2 && $0.1 < $0.0.utf8.count }.min { $0.1 < $1.1 }?.0
  }

  /// Whether two names differ in the case of ASCII letters alone: the field's server reads keys so.
  static func isSame(_ left: String, _ right: String) -> Bool {
    left.utf8.elementsEqual(right.utf8) { lowercased($0) == lowercased($1) }
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }

  /// Levenshtein's edit distance; names longer than 64 bytes resemble nothing.
  private static func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    guard left.count <= 64 else { return .max }
    var row = Array(0...right.count)
    for (i, a) in left.enumerated() {
      var diagonal = i
      row[0] = i + 1
      for (j, b) in right.enumerated() {
        let substituted = diagonal + (a == b ? 0 : 1)
        diagonal = row[j + 1]
        row[j + 1] = min(substituted, row[j] + 1, row[j + 1] + 1)
      }
    }
    return row.last ?? .max
  }
}
