/// Who is asked next while a registry is refreshed, and when that is over: the app's own URL first, then
/// the mirrors of the statement in force, one after the other.
///
/// - The next place is asked once the last one has failed, or has said nothing for a second. Nobody is
///   waited for twice, and none that was asked is given up: the highest number wins.
/// - It is over when the app's own URL has answered (after a refusal: with something newer), or when all have
///   answered or failed. What a mirror has that is newer counts at once and ends nothing: one that hands out
///   old versions, one a round, would keep its client from all others.
/// - After a refusal that a newer list could turn, "nothing newer" from one is no reason not to ask the next:
///   a mirror, or a cache before the app's own URL, may hold back what is new.
///
/// A value: time and network are its user's (`docs/registry-format.md` section 8).
struct RegistryRound {
  /// What an answer comes to.
  enum Answer {
    case newer
    case nothingNewer
    case failed
  }

  /// Seconds after which the next place is asked as well.
  static let patience = 1.0

  private let places: Int
  private let isAnew: Bool
  /// How many were asked; the last one of them is the one that is waited for.
  private var asked = 1
  private var answered = 0
  private(set) var isOver = false

  /// A round that has asked the first place.
  ///
  /// - Parameters:
  ///   - places: how many there are, at least one; the first is the app's own URL.
  ///   - isAnew: whether a refusal is the reason.
  init(places: Int, isAnew: Bool) {
    self.places = places
    self.isAnew = isAnew
  }

  /// Whether there is somebody to ask after the last one.
  var hasNext: Bool { asked < places }

  /// A place has answered.
  ///
  /// - Returns: the place to ask now, if any.
  mutating func answer(_ answer: Answer, of place: Int) -> Int? {
    answered += 1
    let isEnough =
      switch answer {
      case .newer: place == 0
      case .nothingNewer: place == 0 && !isAnew
      case .failed: false
      }
    isOver = isOver || isEnough || answered == places
    // Whoever was waited for is not any more. An older one's answer changes nothing about that.
    return place == asked - 1 ? next() : nil
  }

  /// The place has been waited for long enough.
  ///
  /// - Returns: the place to ask now, if any.
  mutating func secondPassed(for place: Int) -> Int? { place == asked - 1 ? next() : nil }

  private mutating func next() -> Int? {
    guard !isOver, hasNext else { return nil }
    asked += 1
    return asked - 1
  }
}
