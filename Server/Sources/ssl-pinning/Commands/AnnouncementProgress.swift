/// Where an announcement stands, and what is next. A value: what was found out comes in, and the time with it.
///
///     stage ─ staged → look ─ listed → (settle → look) → run ─ ended with 0 → end
///
/// - The key is staged first: one that is on the lists by its past use may be about to leave them, and nobody decides
///   about one that was announced. Then the lists are looked at until all have it.
/// - Who goes on with a key that all lists had looks first: it was staged before that. Else each call would stage it.
/// - The command runs only straight after all lists had the key, and not before they had it for the time to settle. What
///   lies between may take the key back, so after every pause they are looked at again.
/// - What fails is tried again, later each time, but for what the server refuses.
/// - Time in which a list could not be looked at, or in which nobody looked, is none to settle in: apps may have been
///   without it, too. After more than a quarter of an hour they ask again later, and that is waited for as well; after less,
///   they do within minutes, and a list that fails now and then must not keep a key from ever settling. A clock that is
///   set back is such a time, and so is one that is set ahead by more than a quarter of an hour.
struct AnnouncementProgress {
  enum Step: Equatable {
    case look, stage, run
    /// Wait so many seconds.
    case pause(Double)
    case end(End)
  }

  enum End: Equatable {
    case done
    /// What was begun is forgotten if it never can go on.
    case refused(String, isForGood: Bool)
    /// The same was announced anew meanwhile.
    case superseded
  }

  /// That all lists have the key. It outlasts the process: a reboot begins no new time to settle.
  struct Listing: Equatable {
    /// In Unix seconds; later where nobody could see it meanwhile.
    var since: Int64
    /// When all were last seen to have it, in Unix seconds.
    var seen: Int64
    /// The longest that caches may keep what a list answered, in seconds (``outlast(_:)``).
    var kept: Int64 = 0
    /// Whether one of them could not be looked at since.
    var isBlind = false
    /// How many seconds did not count, and why the last of them.
    var lost: Int64 = 0
    var reason: String?
  }

  enum Finding {
    case listed
    case missing(at: String)
    /// A list that was verified denies it.
    case denied(at: String)
    /// A list cannot be looked at.
    case unseen(String)
    case staged
    /// The server refuses the key, by its own code. Nobody signed that.
    case refused(code: String?, String)
    case ran
    case failed(String)
    case paused
    case superseded
  }

  private(set) var next = Step.look
  /// `nil` while a list lacks the key.
  private(set) var listing: Listing?
  /// Why it is not over.
  private(set) var trouble = "nothing was tried yet"
  private var settle: Int64
  private var kept: Int64 = 0
  private var isStaged = false
  /// Why the server says that the key is denied.
  private var refusal: String?
  private var failures = 0

  /// The longest pause, in seconds.
  static let longest = 60.0

  /// - Parameters:
  ///   - settle: for how many seconds all lists must have had the key, or more (``outlast(_:)``).
  ///   - listing: what an earlier process found.
  ///   - isProposed: whether the key waits for a second person already.
  init(
    settle: Int64, listing: Listing? = nil, isProposed: Bool = false
  ) {
    (self.settle, self.listing, isStaged) = (settle, listing, isProposed)
    next = isProposed || listing != nil ? .look : .stage
    if let kept = listing?.kept, kept > 0 { outlast(kept) }
  }

  /// Has the key settle for longer than caches keep a list: one that many share has several nodes behind one URL, and each
  /// may hand out what it fetched before, whatever an app asks for. The longest counts, over a restart as well: nodes differ,
  /// and some count down what they say.
  ///
  /// - Parameter kept: for how many seconds, as the lists' answers say. Those of a registry server say a minute.
  mutating func outlast(_ kept: Int64) {
    self.kept = max(self.kept, 60, kept)
    settle = max(settle, self.kept + 5)
  }

  /// Takes in what came of the step.
  mutating func enter(_ finding: Finding, at now: Int64) {
    if let refusal {
      // Only what is signed ends an announcement for good: whoever answers for the server may be anybody on the way.
      switch finding {
      case .denied, .superseded: break
      default:
        next = .end(.refused(refusal, isForGood: false))
        return
      }
    }
    switch finding {
    case .listed:
      var seen = listing?.seen(at: now) ?? Listing(since: now, seen: now)
      seen.kept = kept
      listing = seen
      let left = seen.since + settle - now
      guard left > 0 else {
        next = .run
        return
      }
      trouble = "all lists have the key, and must for \(left) s more before it is used"
      if seen.lost > 0 { trouble += "; \(seen.lost) s did not count: \(seen.reason ?? "")" }
      next = .pause(min(Self.longest, Double(left)))
    case .unseen(let reason):
      listing?.isBlind = true
      listing?.reason = reason
      wait(reason)
    case .missing(let place):
      // What was there and is gone is staged anew.
      if listing != nil { isStaged = false }
      listing = nil
      guard isStaged else {
        next = .stage
        return
      }
      wait("\(place) does not have the key yet")
    case .denied(let place):
      listing = nil
      next = .end(.refused("the key is denied by \(place)", isForGood: true))
    case .staged: noteStaged()
    // By a call before, or it is in use. The lists tell.
    case .refused("key-exists", _) where !isStaged: noteStaged()
    case .refused("key-denied", let reason): (refusal, next) = (reason, .look)
    case .refused(_, let reason): next = .end(.refused(reason, isForGood: false))
    case .ran: next = .end(.done)
    case .failed(let reason):
      // However long the command took: it ran straight after a look.
      listing?.seen = now
      wait(reason)
    case .paused: next = .look
    case .superseded: next = .end(.superseded)
    }
  }

  private mutating func noteStaged() { (isStaged, failures, next) = (true, 0, .look) }

  private mutating func wait(_ reason: String) {
    trouble = reason
    next = .pause(min(Self.longest, Double(1 << min(failures, 6))))
    failures += 1
  }
}

extension AnnouncementProgress.Listing {
  /// Who looked again after so many seconds has looked all the time: the timer calls `--resume` a minute after the last
  /// call, which takes its time for all others, and for a command of ten minutes.
  private static let short: Int64 = 900

  /// The same now that all lists have the key again.
  fileprivate func seen(at now: Int64) -> Self {
    let gap = now - seen
    var next = Self(since: since, seen: now, lost: lost, reason: reason)
    // The clock was set back: how long ago that was, nobody knows.
    guard gap >= 0, since <= seen else { return Self(since: now, seen: now) }
    guard isBlind || gap > Self.short else { return next }
    if !isBlind { next.reason = "nobody looked at the lists" }
    // Apps that found nobody for long ask again after up to twice that time (`RefreshSchedule`).
    next.since = min(since + (gap > Self.short ? 3 : 1) * gap, now)
    next.lost += next.since - since
    return next
  }
}
