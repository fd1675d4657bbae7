/// The pins of one role (leaf or CA) for one host, united over every entry that speaks of it.
public struct PinSet: Hashable, Sendable {
  /// How long after its expiry a pin still counts, in seconds: 26 hours, so that neither a time
  /// zone nor a clock that is a day off locks anyone out.
  public static let expiryTolerance: Int64 = 26 * 3600

  private var latestExpiry: [SPKIPin: Int64]

  /// The union of these pins. Of a pin that stands twice, the later expiry counts.
  public init(_ pins: some Sequence<Pin> = []) {
    latestExpiry = [:]
    for pin in pins { insert(pin) }
  }

  /// Adds a pin.
  public mutating func insert(_ pin: Pin) {
    latestExpiry[pin.spki] = max(latestExpiry[pin.spki] ?? .min, pin.expires ?? .max)
  }

  /// Adds every pin of another set.
  public mutating func formUnion(_ other: PinSet) {
    latestExpiry.merge(other.latestExpiry) { max($0, $1) }
  }

  /// Whether there are no pins at all, expired ones included.
  public var isEmpty: Bool { latestExpiry.isEmpty }

  /// The pins in the order of their bytes, with their expiry.
  public var pins: [Pin] {
    latestExpiry.sorted { $0.key < $1.key }
      .map { Pin($0.key, expires: $0.value == .max ? nil : $0.value) }
  }

  /// Whether this pin is in the set and counts at `now` (Unix seconds).
  public func contains(_ spki: SPKIPin, at now: Int64) -> Bool {
    latestExpiry[spki].map { Self.counts(expiry: $0, at: now) } ?? false
  }

  /// Whether any pin counts at `now` (Unix seconds).
  public func hasLivePin(at now: Int64) -> Bool {
    latestExpiry.values.contains { Self.counts(expiry: $0, at: now) }
  }

  /// The same, without the denied ones.
  func hasLivePin(at now: Int64, besides denied: Set<SPKIPin>) -> Bool {
    latestExpiry.contains { !denied.contains($0.key) && Self.counts(expiry: $0.value, at: now) }
  }

  /// The last Unix second at which every pin that counts at `now` still does; `nil` where none of
  /// them ever expires.
  func unchangedUntil(from now: Int64) -> Int64? {
    latestExpiry.values.compactMap { expiry in
      let (end, overflow) = expiry.addingReportingOverflow(Self.expiryTolerance)
      return overflow || end < now ? nil : end
    }.min()
  }

  private static func counts(expiry: Int64, at now: Int64) -> Bool {
    let (end, overflow) = expiry.addingReportingOverflow(expiryTolerance)
    return overflow || now <= end
  }
}
