/// What a coordinator made of a probe, as far as the next probes depend on it.
struct EnteredProbe: Sendable, Equatable {
  /// Whether a key waits for more probes.
  var isWaiting = false
  /// Whether a key may be about to be withdrawn.
  var isDoubtful = false
  /// Whether the endpoint changed, so that others should be probed now: see ``MassChangeDetector``.
  var concernsOthers = false
}
