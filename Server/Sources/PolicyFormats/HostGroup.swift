import SslPinningRules

/// A name with what lies below it, as most formats put their entries together.
///
/// - What is demanded of a host is asked of the whole policy, wider patterns included: a format that goes by the
///   closest entry alone says the same then.
struct HostGroup {
  let base: HostName
  /// What the host itself must show, a host one label below it, and one further down; `nil` if it is not pinned.
  let own, child, deep: PolicyEntry?
  /// Those hosts, each with the pattern that it stands for.
  let samples: [(subject: String, host: HostName)]
  /// Whether an entry takes all of them out of a wider one.
  let isExempt: Bool

  /// One entry for all of them, and whether it is for hosts below, too. What they differ in is told: hosts that get
  /// pins of others, or are pinned only because the format cannot leave them out.
  ///
  /// - Parameter deeper: whether the format's subdomains are of any depth.
  func merged(
    deeper: Bool, _ losses: inout [PolicyRemark]
  ) -> (entry: PolicyEntry, isBelow: Bool)? {
    let parts = (deeper ? [own, child, deep] : [own, child]).compactMap { $0 }
    guard let first = parts.first else {
      losses.append(.init("**.\(base)", "is pinned below its first label alone: left out"))
      return nil
    }
    if parts.contains(where: { !$0.demandsRoles(of: first) }) {
      // One entry would demand of each what only the others have.
      losses.append(
        .init(
          "**.\(base)",
          "demands pins of other roles than other hosts of \(base), and the format has one entry for all: left out"
        ))
      return own.map { ($0, false) }
    }
    let isBelow = child != nil || (deeper && deep != nil)
    if own == nil, isBelow {
      losses.append(
        .init(
          "\(base)", "is not pinned itself, and will be: the format pins no subdomains without it"))
    }
    if deeper, isBelow, child == nil || deep == nil {
      losses.append(
        .init(
          "*.\(base)",
          "is for one more label, and will be for all: the format's subdomains are of any depth"))
    }
    let whole = parts.dropFirst().reduce(first) { $0.united(with: $1) }
    if parts.contains(where: { !$0.demandsSame(as: whole) }) {
      losses.append(
        .init(
          "\(base)", "and its subdomains have different pins: each gets those of the others as well"
        ))
    }
    return (whole, isBelow)
  }
}

extension PolicyEntry {
  /// Whether each pin may be of a leaf or of a CA, as formats say it that do not tell them apart.
  var hasUnknownRoles: Bool {
    match == .any && !leaf.isEmpty && leaf.pins.map(\.spki) == ca.pins.map(\.spki)
  }

  /// Whether a leaf pin or a CA pin is enough.
  var isEither: Bool { match == .any && demands(.leaf) && demands(.ca) }

  fileprivate func demandsRoles(of other: PolicyEntry) -> Bool {
    (demands(.leaf), demands(.ca), isEither)
      == (other.demands(.leaf), other.demands(.ca), other.isEither)
  }

  fileprivate func demandsSame(as other: PolicyEntry) -> Bool {
    (leaf, ca, match, enforcement) == (other.leaf, other.ca, other.match, other.enforcement)
  }

  /// Its pins for a format in which any certificate of the path may match any pin.
  ///
  /// With leaf and CA demanded, the leaf pins alone are written: with both lists in one, a CA pin would be enough.
  func pinsOfAnyRole(_ name: String, _ losses: inout [PolicyRemark]) -> [SPKIPin] {
    guard demands(.leaf) else { return ca.pins.map(\.spki) }
    guard demands(.ca) else { return leaf.pins.map(\.spki) }
    guard match == .any else {
      losses.append(
        .init(
          name, "demands a leaf and a CA pin, and the format takes either: CA pins are left out"))
      return leaf.pins.map(\.spki)
    }
    return Set(leaf.pins.map(\.spki)).union(ca.pins.map(\.spki)).sorted()
  }
}

extension PinPolicy {
  /// The names of its patterns, each with what lies below it, in the order of the names.
  var groups: [HostGroup] {
    let bases = bases
    return bases.sorted { $0.description < $1.description }.map { group(of: $0, besides: bases) }
  }

  /// The names of its patterns.
  var bases: Set<HostName> { Set(rules.map(\.entry.pattern.base)) }

  /// One of the groups.
  ///
  /// - Parameter bases: the names of all patterns.
  func group(of base: HostName, besides bases: Set<HostName>) -> HostGroup {
    let below = rules.contains {
      $0.entry.pattern.base == base && $0.entry.pattern != .exact(base)
    }
    let child = below ? Self.child(of: base, besides: bases) : nil
    let deep = child.flatMap { Self.child(of: $0, besides: bases) }
    let samples = [("\(base)", base), ("*.\(base)", child), ("**.\(base)", deep)]
    let hosts: [(subject: String, host: HostName)] = samples.compactMap { subject, host in
      host.map { (subject, $0) }
    }
    return HostGroup(
      base: base, own: entry(for: base), child: child.flatMap { entry(for: $0) },
      deep: deep.flatMap { entry(for: $0) },
      samples: hosts,
      isExempt: rules.contains { $0.entry.pattern.base == base && $0.isExempt }
        && hosts.allSatisfy { entry(for: $0.host) == nil })
  }

  /// An entry within a pattern whose host is not refused, though others of the pattern are. A format that takes no host
  /// out of a pattern cannot say that.
  func spared(by pattern: HostPattern) -> HostPattern? {
    rules.first { rule in
      let host = rule.entry.pattern.base
      return host != pattern.base && pattern.matches(host)
        && entry(for: host)?.enforcement != .enforce
    }?.entry.pattern
  }

  /// An entry within a pattern that takes a host and all below it out of the pattern.
  func exemptSubtree(of pattern: HostPattern) -> HostPattern? {
    guard overlap == .mostSpecific else { return nil }
    return rules.first { rule in
      let own = rule.entry.pattern
      return rule.isExempt && own != .exact(own.base) && own.base != pattern.base
        && pattern.matches(own.base)
    }?.entry.pattern
  }

  /// A host below that no entry names; `nil` if names cannot be longer.
  static func child(of host: HostName, besides known: Set<HostName>) -> HostName? {
    guard case .name(let name) = host else { return nil }
    for label in ["a", "host", "host-1", "host-2", "host-3"] {
      guard let child = try? HostName("\(label).\(name)") else { return nil }
      if !known.contains(child) { return child }
    }
    // Only names that all of these are listed below come here: one longer label is in no list.
    return try? HostName("\(String(repeating: "x", count: 32)).\(name)")
  }

  /// What no format but a registry can say, whatever the host.
  var commonLosses: [PolicyRemark] {
    var losses: [PolicyRemark] = []
    if !denied.isEmpty {
      losses.append(.init("", "\(denied.count) denied keys: the format cannot refuse a key"))
    }
    losses += anchorLosses
    for rule in rules {
      let name = rule.entry.pattern.description
      if rule.entry.pins.contains(where: { $0.expires != nil }) {
        losses.append(.init(name, "has pins that end: without their date they count for ever"))
      }
      if rule.unpinnedFrom != nil {
        losses.append(
          .init(name, "is pinned until a date: the date is left out, and it stays pinned"))
      }
    }
    return losses
  }

  /// The CAs that clients trust, where those are not the system's alone: neither a format nor a registry says so.
  var anchorLosses: [PolicyRemark] {
    otherAnchors.flatMap { hosts, anchors, text in
      // The system's alone are fewer than with those that users add.
      let kind = anchors.includesSystem && !anchors.hasOwn ? PolicyRemark.Kind.stricter : .loss
      return hosts.map { PolicyRemark(kind, $0, "\(text): left out") }
    }
  }

  /// Where clients trust other CAs than the system's alone: hosts, and what they trust. No host stands for all that are
  /// on no list.
  var otherAnchors: [(hosts: [String], anchors: AnchorSources, text: String)] {
    let all = rules.map { ($0.entry.pattern.description, $0.anchors) } + [("", anchors)]
    var told: Set<AnchorSources> = []
    return all.compactMap { _, anchors in
      guard let text = anchors.difference, told.insert(anchors).inserted else { return nil }
      let hosts = all.filter { $0.1 == anchors && !$0.0.isEmpty }.map(\.0)
      return hosts.isEmpty
        ? ([""], anchors, "of hosts that no entry names, \(text)") : (hosts, anchors, text)
    }
  }
}

extension PolicyRemark {
  /// Of a pattern that is left out because of a host within it.
  static func sparing(_ host: HostPattern, _ pattern: String) -> PolicyRemark {
    .init(pattern, "\(host) is not refused here, and the format cannot take it out: left out")
  }
}

extension PolicyEntry {
  /// All pins, of leaf and CA.
  var pins: [Pin] { leaf.pins + ca.pins }
}
