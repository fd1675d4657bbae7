import SslPinningRules

/// What clients of two lists do differently with the servers of a host.
///
/// - A pin that a format without roles has is what the other list has it for. If that has it for nothing, it is a
///   server's key, or a CA's.
/// - Of a list that demands leaf and CA, a format without roles can say the leaf pins alone. That is no drift; with
///   the CA pins beside them it would let in any server of those CAs.
extension PolicyEntry {
  /// - Parameter name: what the other list is called.
  /// - Returns: `nil` if clients do the same. Pins that do not count are not in either entry.
  func drift(from other: PolicyEntry, named name: String, at host: HostName) -> String? {
    let (sayable, otherSayable) = (said(beside: other), other.said(beside: self))
    guard let here = Side(self, host), let there = Side(other, host),
      let strictHere = Side(sayable, host), let strictThere = Side(otherSayable, host)
    else { return nil }
    let known = [self, other].filter { !$0.hasUnknownRoles }
    let leaves = Set(known.flatMap { $0.leaf.pins.map(\.spki) })
    let authorities = Set(known.flatMap { $0.ca.pins.map(\.spki) })
    let loose = here.pins.union(there.pins).subtracting(leaves).subtracting(authorities)
    let chains = Chain.all(
      leaves: leaves.union(loose), authorities: authorities.union(loose), here, there)
    let letIn = chains.filter { here.accepts($0) && !strictThere.accepts($0) }
    let refused = chains.filter { there.accepts($0) && !strictHere.accepts($0) }

    let isMixed = known.count < 2
    let lacks = otherSayable.pins(besides: self, isMixed)
    let extra = sayable.pins(besides: other, isMixed)
    let different = Set((lacks + extra).map(\.pin))
    /// Names the servers whose treatment does not follow from a pin that one list lacks.
    func clause(_ what: String, _ chains: [Chain]) -> String? {
      guard !chains.isEmpty else { return nil }
      let alike = chains.filter { chain in
        !different.contains(chain.leaf) && !(chain.ca.map(different.contains) ?? false)
      }
      let isNamed = different.isEmpty || alike.contains { $0.leaf == .stranger }
      return isNamed ? "\(what): \(Chain.text(alike))" : what
    }
    let clauses: [String?] =
      switch (enforcement, other.enforcement) {
      case (.reportOnly, .enforce): ["lets in servers that \(name) refuses: it only reports"]
      case (.enforce, .reportOnly): ["refuses servers that \(name) only reports"]
      case (.enforce, .enforce):
        [
          clause("lets in servers that \(name) refuses", letIn),
          clause("refuses servers that \(name) lets in", refused),
        ]
      case (.reportOnly, .reportOnly):
        [
          clause("passes servers that \(name) reports", letIn),
          clause("reports servers that \(name) passes", refused),
        ]
      }
    let told = clauses.compactMap { $0 }
    guard !told.isEmpty else { return nil }
    let pins = [("lacks", lacks), ("alone has", extra)].compactMap { verb, pins in
      pins.isEmpty
        ? nil : "\(verb) \(pins.map { "\($0.role)\($0.pin.base64)" }.joined(separator: ", "))"
    }
    return told.joined(separator: ", and ")
      + (pins.isEmpty ? "" : "; it \(pins.joined(separator: ", and "))")
  }

  /// The most that a format of the other's kind can say of this: see ``pinsOfAnyRole(_:_:)``.
  private func said(beside other: PolicyEntry) -> PolicyEntry {
    guard other.hasUnknownRoles, match == .all, !leaf.isEmpty, !ca.isEmpty else { return self }
    return PolicyEntry(pattern, leaf: leaf, enforcement: enforcement)
  }

  /// The pins that another entry does not have in the same role, or in none if one of both has no roles.
  private func pins(
    besides other: PolicyEntry, _ isMixed: Bool
  ) -> [(role: String, pin: SPKIPin)] {
    func missing(_ role: String, _ own: [Pin], _ others: [Pin]) -> [(role: String, pin: SPKIPin)] {
      Set(own.map(\.spki)).subtracting(others.map(\.spki)).sorted().map { (role, $0) }
    }
    return isMixed
      ? missing("", pins, other.pins)
      : missing("leaf ", leaf.pins, other.leaf.pins) + missing("CA ", ca.pins, other.ca.pins)
  }
}
