/// What kind of path a request was for. Few and fixed: a path itself is the requester's to choose, and
/// must not become a label.
enum PathClass: Int, CaseIterable, Sendable {
  /// A published document.
  case document
  /// `/livez`, `/readyz`, `/startupz`.
  case probe
  /// `/metrics`.
  case metrics
  /// A failure report of an app.
  case report
  /// The console's own pages and files.
  case console
  /// What the console and tools ask with a token.
  case admin
  /// A path that nothing is served at, and requests that were refused before their path was read.
  case other

  /// The value of the label `path_class`.
  var label: String { "\(self)" }
}
