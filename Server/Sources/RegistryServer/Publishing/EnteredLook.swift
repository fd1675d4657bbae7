/// What a keeper made of a look, as far as the next looks depend on it.
struct EnteredLook: Sendable, Equatable {
  /// Whether a key waits for more looks.
  var isWaiting = false
  /// Whether a key may be about to be withdrawn.
  var isDoubtful = false
  /// Whether the endpoint changed, so that others should be looked at now: see ``ChangeGauge``.
  var concernsOthers = false
}
