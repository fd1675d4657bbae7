/// Who led when, as the replicas themselves said it.
///
/// Pure: times are passed in.
struct LeaderTimeline {
  typealias Time = ContinuousClock.Instant

  /// What a replica said, or what became of it.
  enum Event {
    case began
    case ended
  }

  private var since: [Int: Time] = [:]
  /// How long two led at once, each time.
  private(set) var overlaps: [Duration] = []
  /// When each began to lead, newest last.
  private(set) var beginnings: [(replica: Int, time: Time)] = []
  /// When each led no more, newest last.
  private(set) var ends: [(replica: Int, time: Time)] = []

  /// Who leads now.
  var leaders: [Int] { since.keys.sorted() }

  /// The one that leads alone.
  var leader: Int? { since.count == 1 ? since.keys.first : nil }

  mutating func enter(_ event: Event, of replica: Int, at time: Time) {
    switch event {
    case .began:
      since[replica] = time
      beginnings.append((replica, time))
    case .ended:
      guard let own = since.removeValue(forKey: replica) else { return }
      ends.append((replica, time))
      for other in since.values { overlaps.append(time - max(own, other)) }
    }
  }

  /// When somebody began to lead after this moment.
  func beginning(after time: Time) -> (replica: Int, time: Time)? {
    beginnings.first { $0.time > time }
  }
}
