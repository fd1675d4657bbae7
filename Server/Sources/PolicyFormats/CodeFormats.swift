import SslPinningRules

/// Writes OkHttp's `CertificatePinner`, as Kotlin.
///
/// - Patterns mean the same as here, and all that match a host are united.
/// - A pin matches any certificate of the path: with leaf and CA pins demanded, only leaf pins are written.
/// - `**.` is known from OkHttp 4.3 on. Before, such a pattern matches nothing, without a word.
enum OkHttpWriter {
  /// The text, and what its clients go by.
  static func text(
    _ policy: PinPolicy
  ) -> (text: String, read: PinPolicy, losses: [PolicyRemark]) {
    var losses = policy.commonLosses
    var lines: [String] = []
    var rules: [HostRule] = []
    let patterns = policy.patterns
    for (listed, entry) in policy.demands {
      var pattern = listed
      if entry.enforcement == .enforce, let spared = policy.spared(by: listed) {
        losses.append(.sparing(spared, "\(listed)"))
        pattern = .exact(listed.base)
        guard listed.matches(listed.base), !patterns.contains(pattern) else { continue }
      }
      let name = pattern.description
      guard entry.enforcement == .enforce else {
        losses.append(.init(name, "only reports, and OkHttp refuses: left out"))
        continue
      }
      if case .anyDepth = pattern {
        losses.append(.init(name, "needs OkHttp 4.3 or newer: older ones pin nothing there"))
      }
      let pins = entry.pinsOfAnyRole(name, &losses)
      if pins.isEmpty {
        losses.append(
          .init(name, "has no readable pin and is refused here; OkHttp would not pin it: left out"))
      }
      let set = PinSet(pins.map { Pin($0) })
      if !pins.isEmpty {
        rules.append(HostRule(PolicyEntry(pattern, leaf: set, ca: set, match: .any)))
      }
      lines += pins.map { "    .add(\"\(name)\", \"sha256/\($0.base64)\")" }
    }
    let text =
      [
        "import okhttp3.CertificatePinner", "",
        "val certificatePinner = CertificatePinner.Builder()",
      ]
      + lines + ["    .build()", ""]
    return (
      text.joined(separator: "\n"),
      PinPolicy(format: .okHttp, rules: rules, overlap: .united), losses
    )
  }
}

/// Writes options of curl, which pins a run and not a host.
///
/// - `pinnedpubkey` is held against the leaf alone. There are no wildcards and no CA pins.
/// - A list of which nothing is left is written as an option that no key has: a file without one lets every server in, and a host
///   whose last key was denied is left out.
/// - The last one counts for every URL of the run, redirects included. Hosts with other pins than others are written as
///   comments, of which one is to be chosen: with several options in force, each host but the last would be let in with
///   another's key and refused with its own.
enum CurlWriter {
  static func text(_ policy: PinPolicy) -> (text: String, losses: [PolicyRemark]) {
    var losses = policy.commonLosses
    var pinned: [(host: String, option: String)] = []
    var isPinning = false
    for (pattern, entry) in policy.demands {
      let name = pattern.description
      isPinning = isPinning || entry.enforcement != .reportOnly
      guard case .exact = pattern else {
        losses.append(.init(name, "is a pattern, and curl pins one host at a time: left out"))
        continue
      }
      guard !entry.hasUnknownRoles else {
        losses.append(
          .init(
            name,
            "whether its pins are of leaf or CA keys is not said: left out; hint: --roles leaf, or ca"
          ))
        continue
      }
      guard !entry.leaf.isEmpty || !entry.ca.isEmpty else {
        losses.append(.init(name, "has no pin that counts: left out"))
        continue
      }
      guard entry.demands(.leaf), !entry.leaf.isEmpty, !entry.isEither else {
        losses.append(.init(name, "goes by CA pins, and curl pins the leaf alone: left out"))
        continue
      }
      if entry.demands(.ca) {
        losses.append(
          .init(name, "demands a CA pin as well, which curl cannot: left out of its line"))
      }
      if entry.enforcement == .reportOnly {
        losses.append(.init(name, "only reports, and curl refuses: left out"))
        continue
      }
      let pins = entry.leaf.pins.map { "sha256//\($0.spki.base64)" }.joined(separator: ";")
      pinned.append((name, "pinnedpubkey = \"\(pins)\"\n"))
    }
    let sets = Dictionary(grouping: pinned) { $0.option }
      .map { option, hosts in
        (hosts: hosts.map { $0.host }.joined(separator: ", "), option: option)
      }
      .sorted { $0.hosts < $1.hosts }
    guard !sets.isEmpty || !isPinning else { return (nothing + refusing, losses) }
    guard sets.count > 1 else {
      return (sets.map { "# \($0.hosts)\n\($0.option)" }.joined(separator: "\n"), losses)
    }
    losses += pinned.map {
      PolicyRemark(
        $0.host,
        "has other pins than other hosts, and curl holds one set against every server: a comment in the file;"
          + " hint: take the # from the option of one host")
    }
    let blocks = [choice + refusing] + sets.map { "# \($0.hosts)\n#\($0.option)" }
    return (blocks.joined(separator: "\n"), losses)
  }

  /// Stands before the comments.
  private static let choice = """
    # curl holds one set of pins against every server of a run, and these hosts have different ones.
    # Take the # from the option of one host. Until then every server is refused:

    """

  private static let nothing = """
    # No host of the list has pins that curl can hold. Every server is refused:

    """

  /// Without an option curl would take any certificate that is valid; this one no key has, and an option below it replaces it.
  private static let refusing = """
    pinnedpubkey = "sha256//no-host-is-chosen"

    """
}

extension PinPolicy {
  /// Its patterns, each once, in the order of their texts; without those that are exempt.
  public var patterns: [HostPattern] {
    Set(rules.filter { !$0.isExempt }.map(\.entry.pattern)).sorted {
      $0.description < $1.description
    }
  }

  /// Its patterns, each with what is demanded of its hosts.
  var demands: [(pattern: HostPattern, entry: PolicyEntry)] {
    let bases = bases
    return patterns.compactMap { pattern in
      entry(of: pattern, besides: bases).map { (pattern, $0) }
    }
  }

  /// What is demanded of the hosts of a pattern, wider ones included.
  ///
  /// - Parameter bases: the names of all patterns.
  func entry(of pattern: HostPattern, besides bases: Set<HostName>) -> PolicyEntry? {
    let group = group(of: pattern.base, besides: bases)
    return switch pattern {
    case .exact: group.own
    case .oneMoreLabel: group.child
    case .anyDepth: group.deep ?? group.child ?? group.own
    }
  }
}
