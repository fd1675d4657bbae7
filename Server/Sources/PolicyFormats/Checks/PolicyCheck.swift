import SslPinningRules

/// A list under check.
public struct CheckedPolicy: Hashable, Sendable {
  /// What findings call it.
  public let name: String
  /// Its entries.
  public let policy: PinPolicy
  /// Unix seconds at which clients refuse the whole list; `nil` if it has no end.
  public let ends: Int64?

  /// A list.
  public init(name: String, policy: PinPolicy, ends: Int64? = nil) {
    (self.name, self.policy, self.ends) = (name, policy, ends)
  }
}

/// What can be said of pin lists without asking a server.
public struct PolicyCheck {
  private let now: Int64
  /// Seconds ahead in which an end is told.
  private let within: Int64
  private let hintsAtAuthorities: Bool
  private let isPublicSuffix: (String) -> Bool

  /// - Parameters:
  ///   - now: Unix seconds.
  ///   - within: seconds; an end that is nearer is told.
  ///   - hintsAtAuthorities: whether other CAs than the system's could be named, and are not.
  ///   - isPublicSuffix: whether hosts right below this name are of different people (publicsuffix.org).
  public init(
    at now: Int64, within: Int64, hintsAtAuthorities: Bool = false,
    isPublicSuffix: @escaping (String) -> Bool
  ) {
    (self.now, self.within, self.isPublicSuffix) = (now, within, isPublicSuffix)
    self.hintsAtAuthorities = hintsAtAuthorities
  }

  /// The findings of each list, then those of lists that differ.
  public func findings(_ policies: [CheckedPolicy]) -> [Finding] {
    policies.flatMap(findings) + differences(policies)
  }

  private func findings(_ checked: CheckedPolicy) -> [Finding] {
    // A denied key is no way in, and what is left may be one alone.
    let policy = checked.policy.usable()
    var found = policy.remarks.compactMap { finding($0, checked.name) }
    if let end = checked.ends, end - now < within {
      found.append(
        Finding(
          .listExpires, policy: checked.name,
          "clients refuse the list \(ending(end)); hint: sign it anew",
          severity: end <= now ? .error : nil))
    }
    for (pattern, entry) in policy.demands {
      found += pins(of: entry, pattern, checked.name)
      if pattern != .exact(pattern.base), isPublicSuffix(pattern.base.description) {
        found.append(
          Finding(
            .publicSuffix, host: "\(pattern)", policy: checked.name,
            "\(pattern.base) is a public suffix: the pattern covers hosts of other people"))
      }
      if let wider = policy.widening(pattern) {
        found.append(
          Finding(
            .widened, host: "\(pattern)", policy: checked.name,
            "the keys of \(wider) are let in there as well; hint: list for \(pattern) only what it shows"
          ))
      }
    }
    found += policy.rules.filter { $0.entry.enforcement == .reportOnly && !$0.isExempt }.map {
      Finding(
        .reportOnly, host: "\($0.entry.pattern)", policy: checked.name,
        "a missing pin is only reported, and the server is let in; hint: TSKEnforcePinning true")
    }
    found += policy.otherAnchors.map { hosts, anchors, text in
      // A list may shut out the hosts that it does not name.
      let isOfEntries = hosts != [""]
      return Finding(
        .otherAnchors, host: hosts.joined(separator: ", "), policy: checked.name,
        text + (hintsAtAuthorities ? anchors.hint : ""),
        severity: isOfEntries ? anchors.severity : nil)
    }
    for rule in policy.rules {
      guard let end = rule.unpinnedFrom, end - now < within else { continue }
      found.append(
        Finding(
          .pinningEnds, host: "\(rule.entry.pattern)", policy: checked.name,
          "\(policy.format.title) pins it no longer \(ending(end)); hint: take the date out, or renew it",
          severity: end <= now ? .error : nil))
    }
    return found
  }

  private func finding(_ remark: PolicyRemark, _ policy: String) -> Finding? {
    if remark.kind == .unpinnedOnMacOS {
      return Finding(.notPinned, host: remark.host, policy: policy, remark.text, severity: .info)
    }
    let rule: CheckRule? =
      switch remark.kind {
      case .unclear, .refused: .unreadable
      case .unpinned: .notPinned
      case .duplicate: .duplicatePin
      case .unpinnedOnMacOS, .loss, .stricter: nil
      }
    return rule.map {
      Finding(
        $0, host: remark.host, policy: policy, remark.text,
        severity: remark.kind == .refused ? .error : nil)
    }
  }

  /// What the pins of a host are good for by themselves.
  private func pins(of entry: PolicyEntry, _ pattern: HostPattern, _ policy: String) -> [Finding] {
    let host = "\(pattern)"
    var found: [Finding] = []
    for pin in entry.distinctPins {
      guard let end = pin.expires, end - now < within else { continue }
      let isOver = !PinSet([pin]).hasLivePin(at: now)
      found.append(
        Finding(
          .pinExpires, host: host, policy: policy, "\(pin.spki) ends \(ending(end))",
          severity: isOver ? .info : nil))
    }
    let live = (leaf: entry.leaf.live(at: now), ca: entry.ca.live(at: now))
    let demanded = (leaf: entry.demands(.leaf), ca: entry.demands(.ca))
    let ways: Int
    switch (entry.match, demanded.leaf, demanded.ca) {
    case (.any, _, _): ways = live.leaf.union(live.ca).count
    case (.all, true, true): ways = min(live.leaf.count, live.ca.count)
    case (.all, true, false): ways = live.leaf.count
    case (.all, false, _): ways = live.ca.count
    }
    if ways == 0 {
      found.append(
        Finding(
          .noUsablePin, host: host, policy: policy, "no pin counts: clients refuse every server"))
    } else if ways == 1 {
      found.append(
        Finding(
          .noBackup, host: host, policy: policy,
          "one pin is the only way in; hint: list the next key before it is used, and keep it elsewhere"
        ))
    }
    if entry.match == .all, let pin = live.leaf.intersection(live.ca).sorted().first {
      found.append(
        Finding(
          .leafAndCA, host: host, policy: policy,
          "\(pin) is demanded of leaf and CA, and no server's key is its CA's"))
    }
    return found
  }

  // MARK: - Lists beside each other

  private func differences(_ policies: [CheckedPolicy]) -> [Finding] {
    guard policies.count > 1 else { return [] }
    // Hosts that one list takes out of a wider entry are asked for, too: another may pin them.
    let rules = policies.flatMap { $0.policy.rules }
    let usable = policies.map { ($0.name, $0.policy.usable(at: now)) }
    return PinPolicy(format: .registry, rules: rules, overlap: .united).groups.flatMap { group in
      var found: [Finding] = []
      for (subject, host) in group.samples {
        // What holds at the name and below it is told once.
        let told = found
        found += differences(subject, host, usable).filter { below in
          !told.contains {
            ($0.rule, $0.policy, $0.message) == (below.rule, below.policy, below.message)
          }
        }
      }
      return found
    }
  }

  private func differences(
    _ subject: String, _ host: HostName, _ policies: [(name: String, policy: PinPolicy)]
  ) -> [Finding] {
    let entries = policies.map { ($0.name, $0.policy.entry(for: host, at: now)) }
    guard entries.contains(where: { $0.1 != nil }) else { return [] }
    var found: [Finding] = []
    for (index, (name, entry)) in entries.enumerated() where entry == nil {
      guard let other = entries.firstIndex(where: { $0.1 != nil }) else { continue }
      // Nobody can mend that: Apple's lists can only say one label below, the others here only any depth.
      let isBeyond =
        subject.hasPrefix("**.")
        && (policies[index].policy.format == .nsPinnedDomains
          || [.android, .trustKit].contains(policies[other].policy.format))
      found.append(
        Finding(
          .missingHost, host: subject, policy: name,
          "not pinned here, and pinned by \(entries[other].0)", severity: isBeyond ? .info : nil))
    }
    let pinned = entries.compactMap { name, entry in entry.map { (name, $0) } }
    for (index, other) in pinned.enumerated().dropFirst() {
      // Lists with roles may differ, and neither be drift from one without.
      let earlier = pinned[..<index]
      let text = [earlier.first, earlier.first { !$0.1.hasUnknownRoles }].lazy.compactMap { first in
        first.flatMap { other.1.drift(from: $0.1, named: $0.0, at: host) }
      }.first
      guard let text else { continue }
      found.append(Finding(.drift, host: subject, policy: other.0, text))
    }
    return found
  }

  /// When, in words behind a verb.
  private func ending(_ end: Int64) -> String {
    let days = (end - now) / 86_400
    if end <= now { return "since \(-days) days" }
    return days == 0 ? "within a day" : "in \(days) day\(days == 1 ? "" : "s")"
  }
}

extension PinSet {
  /// The pins that count.
  func live(at now: Int64) -> Set<SPKIPin> {
    Set(pins.map(\.spki).filter { contains($0, at: now) })
  }
}

extension AnchorSources {
  /// How bad it is; `nil` if that is for the rule to say. With the CAs alone that users add, most devices refuse every
  /// server, and the others trust what their users were talked into.
  fileprivate var severity: Finding.Severity? {
    isEmpty ? .error : names.allSatisfy { $0 == "user" } ? .warning : nil
  }
}

extension PolicyEntry {
  /// Each pin once, whatever its role.
  fileprivate var distinctPins: [Pin] {
    var seen: Set<SPKIPin> = []
    return pins.filter { seen.insert($0.spki).inserted }
  }
}

extension PinPolicy {
  /// The pattern that lets further keys into the hosts of one with keys of its own.
  fileprivate func widening(_ pattern: HostPattern) -> HostPattern? {
    guard overlap == .united, let own = rules.first(where: { $0.entry.pattern == pattern })?.entry,
      !own.leaf.isEmpty
    else { return nil }
    let ownPins = Set(
      rules.filter { $0.entry.pattern == pattern }.flatMap { $0.entry.leaf.pins.map(\.spki) })
    return rules.first { rule in
      rule.entry.pattern != pattern && rule.entry.pattern.matches(pattern.base)
        && rule.entry.pattern != .exact(pattern.base)
        && rule.entry.leaf.pins.contains { !ownPins.contains($0.spki) }
    }?.entry.pattern
  }
}
