import SslPinningRules

/// Reads `NSPinnedDomains` from an Info.plist, from the dictionary `NSAppTransportSecurity`, or alone.
enum NSPinnedDomainsReader {
  static func domains(in root: [String: PropertyListValue]) -> [String: PropertyListValue]? {
    if case .dictionary(let security)? = root["NSAppTransportSecurity"] {
      return domains(in: security)
    }
    guard case .dictionary(let domains)? = root["NSPinnedDomains"] else { return nil }
    return domains
  }

  /// What is told of a list that stands where Apple's systems do not look.
  static let misplaced = PolicyRemark(
    .unpinned, "",
    "NSPinnedDomains stands where Apple's systems do not look, and pins nothing; hint: NSAppTransportSecurity has it"
  )

  /// What is told of a list without a pinned host.
  private static let empty = PolicyRemark(.unpinned, "", "NSPinnedDomains pins no host")

  /// Whether the list of an Info.plist stands in another place than `NSAppTransportSecurity`.
  ///
  /// - Parameter isInfoPlist: whether the file is known to be one; else a list alone is a part of one.
  static func isMisplaced(
    in root: [String: PropertyListValue], isInfoPlist: Bool = false
  ) -> Bool {
    let name = "NSPinnedDomains"
    let security = root["NSAppTransportSecurity"]
    if case .dictionary(let members)? = security, members[name] != nil { return false }
    guard root[name] != nil, security == nil else {
      return PropertyListValue.dictionary(root).hasMember(name)
    }
    return isInfoPlist
      || root.keys.contains {
        $0 != name && $0 != "NSExceptionDomains" && !$0.hasPrefix("NSAllows")
      }
  }

  static func policy(
    of root: [String: PropertyListValue]
  ) throws(PolicyFormatError) -> PinPolicy {
    guard let domains = domains(in: root) else {
      throw .noPins(.nsPinnedDomains, wanted: "NSAppTransportSecurity.NSPinnedDomains")
    }
    let read = NSPinnedDomains(domains: domains)
    let ofAll: [PolicyRemark?] = [
      isMisplaced(in: root) ? misplaced : nil, read.entries.isEmpty ? empty : nil,
    ]
    return PinPolicy(
      format: .nsPinnedDomains, rules: read.entries.map { HostRule($0) }, overlap: .united,
      remarks: ofAll.compactMap { $0 }
        + read.problems.map { PolicyRemark($0.fault.kind, "", "\($0)") }
        + domains.repeatedPins.map { PolicyRemark(.duplicate, $0, "has the same pin twice") })
  }
}

extension [String: PropertyListValue] {
  /// Domains that list one pin twice in a list, which looks like a backup and is none.
  fileprivate var repeatedPins: [String] {
    inOrder.compactMap { domain, value in
      guard case .dictionary(let members) = value else { return nil }
      let isRepeated = ["NSPinnedLeafIdentities", "NSPinnedCAIdentities"].contains { key in
        guard case .array(let identities)? = members[key] else { return false }
        return Set(identities).count < identities.count
      }
      return isRepeated ? domain : nil
    }
  }

  /// By the bytes of the keys: a dictionary has no order, and what is told must not change from run to run.
  var inOrder: [(key: String, value: PropertyListValue)] {
    sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }
}

extension PropertyListValue {
  /// Whether a dictionary has a member of this name, however deep. The reader bounds the depth.
  fileprivate func hasMember(_ name: String) -> Bool {
    switch self {
    case .dictionary(let members):
      members[name] != nil || members.values.contains { $0.hasMember(name) }
    case .array(let values): values.contains { $0.hasMember(name) }
    default: false
    }
  }
}

extension NSPinnedDomainsProblem.Fault {
  fileprivate var kind: PolicyRemark.Kind {
    switch self {
    case .unreadableDomain, .noList, .trailingDot, .notABoolean: .unpinned
    default: .unclear
    }
  }
}

/// Writes `NSPinnedDomains`.
///
/// - A domain covers itself, and with `NSIncludesSubdomains` exactly one more label.
/// - Apple unites the entry of a host with its parent's. What deeper wildcards add is written into each entry.
/// - Apple does not document what an empty list does. So no host is written with nothing else, and if a leaf or a CA pin is
///   enough and no CA pin is left, the leaf pins are written.
enum NSPinnedDomainsWriter {
  static func domains(
    _ policy: PinPolicy
  ) -> (value: [String: PropertyListValue], losses: [PolicyRemark]) {
    var losses = policy.commonLosses
    var domains: [String: PropertyListValue] = [:]
    for group in policy.groups {
      guard case .name(let base) = group.base else {
        losses.append(.init("\(group.base)", "is an address, and domains are names: left out"))
        continue
      }
      guard !group.isExempt else { continue }
      guard var (entry, isBelow) = group.merged(deeper: false, &losses) else { continue }
      let name = group.base.description
      if entry.enforcement == .reportOnly {
        losses.append(.init(name, "only reports, and Apple's systems refuse: left out"))
        continue
      }
      if isBelow, let spared = policy.spared(by: .oneMoreLabel(base)) {
        losses.append(.sparing(spared, "*.\(name)"))
        guard let own = group.own else { continue }
        (entry, isBelow) = (own, false)
      }
      if group.deep != nil {
        losses.append(.init(name, "hosts more than one label below are not pinned"))
      }
      guard !entry.hasUnknownRoles else {
        losses.append(
          .init(
            name,
            "whether its pins are of leaf or CA keys is not said: left out; hint: --roles leaf, or ca"
          ))
        continue
      }
      guard !entry.pins.isEmpty else {
        losses.append(
          .init(
            name,
            "has no pin that counts and is refused here; Apple's systems may not pin it: left out"))
        continue
      }
      if entry.isEither, entry.ca.isEmpty { entry.required = [.leaf] }
      if entry.isEither {
        losses.append(
          .init(
            name,
            "leaf or CA is enough, and Apple's systems demand both: the CA pins alone are written"))
      }
      domains[name] = .dictionary(members(entry, subdomains: isBelow))
    }
    return (domains, losses)
  }

  private static func members(
    _ entry: PolicyEntry, subdomains: Bool
  ) -> [String: PropertyListValue] {
    var members: [String: PropertyListValue] = [:]
    if subdomains { members["NSIncludesSubdomains"] = .boolean(true) }
    if entry.demands(.leaf), !entry.isEither {
      members["NSPinnedLeafIdentities"] = identities(entry.leaf)
    }
    if entry.demands(.ca) { members["NSPinnedCAIdentities"] = identities(entry.ca) }
    return members
  }

  private static func identities(_ pins: PinSet) -> PropertyListValue {
    .array(pins.pins.map { .dictionary(["SPKI-SHA256-BASE64": .string($0.spki.base64)]) })
  }
}
