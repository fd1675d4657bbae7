/// What became of a failure report that was sent here; the label `outcome`.
enum ReportOutcome: String, CaseIterable, Sendable {
  /// It is counted.
  case accepted
  /// The same report was counted before: its sender did not get our answer.
  case repeated
  /// It is counted apart, because no document lists its host.
  case unlisted
  /// It cannot be read.
  case refused
  /// Its address had sent too many.
  case limited
}
