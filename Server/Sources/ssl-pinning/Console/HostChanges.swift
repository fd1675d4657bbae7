import SslPinningRules

/// What servers that were let in meet under the next list, whatever its format: their leaf pins are replaced by
/// others, they need one more, or their host is gone.
///
/// - ``Loosening`` says what clients would no longer demand, ``ForgottenLeaves`` who would lose pins to a wider
///   pattern.
struct HostChanges {
  /// The entries of the documents before, and what stood beside them.
  let before: [RegistryKey]
  let settingsBefore: [HostSettings]
  /// What takes their place.
  let list: Registry
  let denied: Set<SPKIPin>
  /// Unix time in seconds at which a pin must not be over.
  let time: Int64
  /// What let servers in before; `nil` where that was any pin.
  var living: LivingPins?

  /// The patterns none of whose leaf pins before is among those of now: every server that shows one is refused at
  /// once, until it shows another. A rotation has both for a while. What is denied is meant to be refused.
  var replaced: [HostPattern] {
    let open = list.settings.open(beside: list.patterns, denied: denied)
    let now = LivingPins(list.keys, open: [], denied: denied, at: time)
    // Without any that counts it is told as that.
    let listed = Set(list.keys.filter(now.serves).map(\.pattern)).subtracting(open)
    return Dictionary(grouping: before.filter(counted), by: \.pattern).filter { pattern, keys in
      listed.contains(pattern) && !keys.contains(where: now.serves)
    }.keys.sorted { $0.description < $1.description }
  }

  /// The patterns whose servers need a leaf pin and a CA pin now, and needed one of the two before.
  var grown: [HostPattern] {
    let old = needs(before.filter(counted), settingsBefore)
    return needs(list.keys, list.settings).filter { pattern, roles in
      roles == 2 && old[pattern] == 1
    }.keys.sorted { $0.description < $1.description }
  }

  /// The patterns that are listed no more, and whose hosts no other one matches.
  var gone: [HostPattern] {
    let listed = list.patterns
    return Set(before.filter(counted).map(\.pattern)).subtracting(listed).filter { pattern in
      !listed.contains { $0.touches(pattern) }
    }.sorted { $0.description < $1.description }
  }

  /// Refuses to replace leaf pins, unless that is meant.
  func refuseReplaced(unless isMeant: Bool) throws(CommandFailure) {
    let names = replaced.map(\.description).joined(separator: ", ")
    guard names.isEmpty || isMeant else {
      throw .no(
        "the payload replaces all leaf pins of \(names): servers that show one of them would be refused at once;"
          + " hint: list both, switch the servers, then leave the old one out; or --allow-loosening"
      )
    }
  }

  /// Tells of those that need one more.
  func warnOfGrown() {
    let names = grown.map(\.description).joined(separator: ", ")
    guard !names.isEmpty else { return }
    Console.say(
      "warning: servers of \(names) need a leaf pin and a CA pin from now on, and needed one of the two before;"
        + " hint: match any in hosts, if either is to be enough")
  }

  /// Tells of those that a list of format 1 leaves out: nothing in it says that this is meant.
  func warnOfGone(_ removed: Set<HostPattern> = [], hint: String) {
    let names = gone.filter { !removed.contains($0) }.map(\.description).joined(separator: ", ")
    guard !names.isEmpty else { return }
    Console.say(
      "warning: the payload leaves out \(names): clients keep the last pins for 30 days, and new ones refuse every"
        + " connection there; hint: \(hint)")
  }

  private func counted(_ key: RegistryKey) -> Bool {
    key.readablePin.map { !denied.contains($0) } == true && key.expires.map { $0 >= time } ?? true
      && living?.serves(key) ?? true
  }

  /// How many roles each pattern demands by what stands under it.
  private func needs(_ keys: [RegistryKey], _ settings: [HostSettings]) -> [HostPattern: Int] {
    var roles = Dictionary(keys.map { ($0.pattern, 1) }) { first, _ in first }
    for own in settings where !own.ca.isEmpty {
      roles[own.pattern] = roles[own.pattern] == nil || own.match == .any ? 1 : 2
    }
    return roles
  }
}
