/// Why a row did not show what it has to show. Such a row fails, whatever its sockets did.
struct Inconclusive: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// An attacker got what he wanted before he was even dialled: his document was believed.
struct Breach: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Ends a row that does not show what it claims.
func show(_ holds: Bool, _ reason: @autoclosure () -> String) throws(Inconclusive) {
  guard holds else { throw Inconclusive(reason()) }
}
