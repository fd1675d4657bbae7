/// Finds what a user meant by a word that nothing is called.
enum Suggestion {
  /// The candidate nearest to `word`: at most two typing slips away, or one that begins with it.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    // Longer words are no typing slips of ours, and the distance takes time by the square.
    guard (2...32).contains(word.utf8.count) else { return nil }
    if let longer = candidates.first(where: { $0.hasPrefix(word) }) { return longer }
    let rated = candidates.map { (name: $0, slips: distance(Array(word.utf8), Array($0.utf8))) }
    guard let best = rated.min(by: { $0.slips < $1.slips }), best.slips <= 2,
      best.slips * 2 < word.utf8.count
    else { return nil }
    return best.name
  }

  /// Insertions, deletions, substitutions and swaps of neighbours between two words.
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for (row, byte) in left.enumerated() {
      var current = [row + 1]
      for (column, other) in right.enumerated() {
        var cost = min(last[column + 1] + 1, current[column] + 1)
        cost = min(cost, last[column] + (byte == other ? 0 : 1))
        if row > 0, column > 0, byte == right[column - 1], left[row - 1] == other {
          cost = min(cost, beforeLast[column - 1] + 1)
        }
        current.append(cost)
      }
      (beforeLast, last) = (last, current)
    }
    return last[right.count]
  }
}
