import Foundation

/// In which order `--resume` runs commands, and when it leaves the rest to the next call.
///
/// - A call ends once its commands took a minute. So all lists are looked at again before the next one, and a key that settles
///   loses no time to it, nor does one that another's command looks for.
/// - Those that failed come last, and take turns: one that hangs each time keeps no other one waiting. Those that fail within
///   a minute have their turn in each call, for they may be waiting for what they began themselves. Some time is left for
///   the others: one of them may have failed slowly once, and be ready by now.
struct AnnouncementOrder {
  private var (soon, slow): (ArraySlice<Int>, ArraySlice<Int>)
  private var hasSlowRun = false
  /// In seconds.
  static let longest = 60.0
  private static let ofSoon = 40.0

  /// - Parameters:
  ///   - failed: when the command of each failed last, and whether that took it long.
  ///   - now: a time after that is one of a clock that was ahead.
  init(failed: [(at: Int64, isSlow: Bool)?], at now: Int64) {
    let turns = failed.map { ($0.map { $0.isSlow ? 2 : 1 } ?? 0, min($0?.at ?? .min, now)) }
    let sorted = turns.indices.sorted {
      (turns[$0].0, turns[$0].1, $0) < (turns[$1].0, turns[$1].1, $1)
    }
    let first = sorted.firstIndex { turns[$0].0 == 2 } ?? sorted.endIndex
    (soon, slow) = (sorted[..<first], sorted[first...])
  }

  /// How many have not had their turn.
  var left: Int { soon.count + slow.count }

  /// - Parameter seconds: how long those before took, in all.
  mutating func next(after seconds: Double) -> Int? {
    let isTheirs = seconds < (slow.isEmpty ? Self.longest : Self.ofSoon)
    if isTheirs, let next = soon.popFirst() { return next }
    // However long the last of those took.
    guard seconds < (hasSlowRun ? Self.longest : Self.longest + Self.ofSoon) else { return nil }
    hasSlowRun = true
    return slow.popFirst()
  }
}

/// Who did not answer in time. In one call of `--resume` nobody waits for a place again, and for another one on its server
/// but a moment: the others would lose the time to settle. A call that is about one announcement alone asks again and again.
///
/// One server's places need not share their fate: a proxy in front of several registries hangs on the paths of one. So a
/// place that was not asked yet has a moment after the others took their minute, too, and one that answered is asked each time.
/// Once slow servers have taken ten minutes of the call, their places are not asked any more. If a call takes longer than a quarter
/// of an hour, no list counts as looked at (``AnnouncementProgress``), those of other servers included.
final class SilentPlaces {
  private var (silent, answered): (Set<String>, Set<String>) = ([], [])
  /// For how many seconds servers were waited for in vain.
  private var waited: [String: Double] = [:]
  /// For how many seconds slow servers were waited for, whatever came of it.
  private var slow: [String: Double] = [:]
  private let remembers: Bool
  /// In seconds: how long a place has, which is how long apps wait (`SslPinningConfig.fetchTimeout`): none of
  /// them gets what comes later. Who fails before `long` costs little.
  static let usual = 10.0
  private static let (long, moment) = (9.0, 3.0)
  /// In seconds: what one server may cost until a moment is left to each place, and until those are asked alone that answered.
  private static let (much, most) = (60.0, 120.0)
  /// In seconds: what all slow servers may cost.
  private static let mostOfSlow = 600.0
  /// Seconds of a clock that is never set.
  private let now: () -> Double

  init(
    remembers: Bool = true,
    now: @escaping () -> Double = { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }
  ) { (self.remembers, self.now) = (remembers, now) }

  /// Asks a place, unless it did not answer before.
  ///
  /// - Parameter body: what came of it within so many seconds, and whether that is no answer.
  /// - Returns: `nil` if it is not asked.
  func ask<Answer>(
    _ place: String, _ body: (_ seconds: Double) async -> (answer: Answer, isSilent: Bool)
  ) async -> Answer? {
    let url = URL(string: place)
    let server = "\(url?.host ?? place):\(url?.port ?? 0)"
    let vain = waited[server]
    guard !silent.contains(place), vain ?? 0 < Self.most || answered.contains(place) else {
      return nil
    }
    guard slow[server] == nil || slow.values.reduce(0, +) < Self.mostOfSlow else { return nil }
    let isPatient = vain ?? 0 < Self.much || answered.contains(place)
    let seconds = isPatient ? Self.usual : Self.moment
    let start = now()
    let (answer, isSilent) = await body(seconds)
    if !isSilent { answered.insert(place) }
    if remembers, now() - start > Self.moment { slow[server, default: 0] += now() - start }
    if remembers, isSilent, vain != nil || now() - start > Self.long {
      silent.insert(place)
      waited[server, default: 0] += now() - start
    }
    return answer
  }
}

/// What lists served a moment ago. Where many announcements have one list, a call of `--resume` fetches it for all of them: if it
/// answers slowly, none of them would settle otherwise, for a look at all would take longer than the time that counts as looked at.
final class RecentLists<Key: Hashable, Content> {
  /// In seconds: no longer than until the timer's next call. Who looked so long ago has looked now.
  private static var longest: Double { 60 }
  private var contents: [Key: (at: Double, content: Content)] = [:]
  /// Seconds of a clock that is never set.
  private let now: () -> Double

  init(now: @escaping () -> Double = { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }) {
    self.now = now
  }

  /// What was served, by `fetch` if it is not known; what that throws is not remembered.
  func content(of key: Key, _ fetch: () async throws -> Content) async rethrows -> Content {
    if let known = contents[key], now() - known.at < Self.longest { return known.content }
    // From before it was asked for.
    let at = now()
    let content = try await fetch()
    contents[key] = (at, content)
    return content
  }
}
