import SslPinningRules

/// Reads TrustKit's configuration: a property list of its own, or `TSKConfiguration` in an Info.plist.
///
/// - Keys are taken as files spell them (`TSKIncludeSubdomains`) and as code does (`kTSKIncludeSubdomains`). One constant
///   has another text than its name: `kTSKExcludeSubdomainFromParentPolicy` is `kSKExcludeSubdomainFromParentPolicy` in a
///   file, and nothing else is read there.
/// - Names are compared as they stand: one with a capital letter is the name of no host.
/// - A pin matches any certificate of the validated path. Subdomains are of any depth. The closest domain decides.
/// - `TSKEnforcePinning` false only reports. From `TSKExpirationDate` on the hosts are no longer pinned.
/// - On macOS nothing is pinned for CAs that somebody added, unless the configuration has
///   `TSKIgnorePinningForUserDefinedTrustAnchors` false.
///
/// Sources: TrustKit's `TSKTrustKitConfig.m`, `parse_configuration.m`, `configuration_utils.m`.
enum TrustKitReader {
  static func configuration(
    in root: [String: PropertyListValue]
  ) -> [String: PropertyListValue]? {
    if case .dictionary(let configuration)? = root.trustKit("Configuration") {
      return configuration
    }
    return root.trustKit("PinnedDomains") == nil ? nil : root
  }

  /// What is told of a list that stands where TrustKit does not look.
  static let misplaced = PolicyRemark(
    .unpinned, "",
    "TSKPinnedDomains stands where TrustKit does not look in an Info.plist, and pins nothing; hint: TSKConfiguration has"
      + " it")

  /// What is told of a list that says so; of one that does not say it, macOS is not known to matter.
  static let bypassed = PolicyRemark(.unpinned, "", bypass)
  private static let bypass =
    "on macOS not pinned for CAs that somebody added there; hint: TSKIgnorePinningForUserDefinedTrustAnchors false"

  private static func bypass(_ configuration: [String: PropertyListValue]) -> PolicyRemark? {
    guard let value = configuration.trustKit("IgnorePinningForUserDefinedTrustAnchors") else {
      return PolicyRemark(.unpinnedOnMacOS, "", bypass)
    }
    return value.flag == false ? nil : bypassed
  }

  /// Whether the list stands at the root of an Info.plist: of one alone the app's code makes a configuration.
  ///
  /// - Parameter isInfoPlist: whether the file is known to be one.
  static func isMisplaced(
    in root: [String: PropertyListValue], isInfoPlist: Bool = false
  ) -> Bool {
    root.trustKit("Configuration") == nil && root.trustKit("PinnedDomains") != nil
      && (isInfoPlist || root.keys.contains { !$0.hasPrefix("TSK") && !$0.hasPrefix("k") })
  }

  /// - Parameter isCode: whether the keys are names of TrustKit's constants.
  static func policy(
    of root: [String: PropertyListValue], isCode: Bool = false
  ) throws(PolicyFormatError) -> PinPolicy {
    guard let configuration = configuration(in: root),
      case .dictionary(let domains)? = configuration.trustKit("PinnedDomains")
    else { throw .noPins(.trustKit, wanted: "TSKConfiguration.TSKPinnedDomains") }
    var rules: [HostRule] = []
    var remarks = isMisplaced(in: root) ? [misplaced] : [bypass(configuration)].compactMap { $0 }
    if domains.isEmpty {
      remarks.append(
        .init(.refused, "", "TSKPinnedDomains is empty: TrustKit stops the app at its start"))
    }
    for (domain, value) in domains.inOrder {
      guard case .dictionary(let members) = value else {
        remarks.append(
          .init(.unpinned, domain.shown, "\(value.kind) where a dictionary belongs: not pinned"))
        continue
      }
      do throws(HostNameError) {
        let host = try HostName(domain)
        guard "\(host)" == domain else {
          remarks.append(
            .init(
              .unpinned, domain.shown,
              "is not pinned: TrustKit compares names as they stand; hint: \(host)"))
          continue
        }
        rules.append(rule(host, members, isCode, domain.shown, &remarks))
      } catch { remarks.append(.init(.unpinned, domain.shown, "is not pinned: \(error)")) }
    }
    // Of code only the entries that are written out are known.
    for rule in rules where !isCode && rule.isExempt && !rules.contains(where: rule.isWithin) {
      remarks.append(
        .init(
          .refused, "\(rule.entry.pattern.base)",
          "is exempt from no wider entry with TSKIncludeSubdomains: TrustKit stops the app at its start"
        ))
    }
    return PinPolicy(format: .trustKit, rules: rules, overlap: .mostSpecific, remarks: remarks)
  }

  /// The keys of an entry, without what is put before them.
  private static let keys = [
    "PublicKeyHashes", "EnforcePinning", "IncludeSubdomains", "ExcludeSubdomainFromParentPolicy",
    "ReportUris", "DisableDefaultReportUri", "ExpirationDate", "PublicKeyAlgorithms",
    "AdditionalTrustAnchors",
  ]

  private static func rule(
    _ host: HostName, _ members: [String: PropertyListValue], _ isCode: Bool, _ name: String,
    _ remarks: inout [PolicyRemark]
  ) -> HostRule {
    for key in members.keys.sorted() where key.isTrustKit && !keys.contains(where: key.hasSuffix) {
      remarks.append(.init(.unclear, name, "\(key.shown) is no key of TrustKit's, and is not read"))
    }
    let exemption = "ExcludeSubdomainFromParentPolicy"
    for prefix in isCode ? ["TSK"] : ["TSK", "kTSK"] where members[prefix + exemption] != nil {
      remarks.append(
        .init(
          .unclear, name,
          "\(prefix)\(exemption) is not read; hint: kSK\(exemption), as TrustKit spells it"))
    }
    func flag(_ key: String, _ standard: Bool) -> Bool {
      guard let value = members.trustKit(key, isCode: isCode) else { return standard }
      if let flag = value.flag { return flag }
      remarks.append(.init(.unclear, name, "\(value.kind) where the boolean TSK\(key) belongs"))
      return standard
    }
    var pattern = HostPattern.exact(host)
    if flag("IncludeSubdomains", false), case .name(let base) = host { pattern = .anyDepth(base) }
    let isExempt = flag(exemption, false)
    if isExempt, members.count > 1 {
      remarks.append(
        .init(
          .refused, name,
          "other keys beside kSKExcludeSubdomainFromParentPolicy: TrustKit stops the app at its start"
        ))
    }
    let isEnforced = flag("EnforcePinning", true)
    let pins =
      isExempt
      ? [] : pins(members.trustKit("PublicKeyHashes"), least: isEnforced ? 2 : 1, name, &remarks)
    let entry = PolicyEntry(
      pattern, leaf: PinSet(pins), ca: PinSet(pins), required: [.leaf, .ca], match: .any,
      enforcement: isEnforced ? .enforce : .reportOnly)
    return HostRule(
      entry, unpinnedFrom: end(members.trustKit("ExpirationDate"), name, &remarks),
      isExempt: isExempt)
  }

  private static func pins(
    _ value: PropertyListValue?, least: Int, _ name: String, _ remarks: inout [PolicyRemark]
  ) -> [Pin] {
    guard case .array(let list)? = value else {
      remarks.append(
        .init(.refused, name, "no list TSKPublicKeyHashes: TrustKit stops the app at its start"))
      return []
    }
    var pins: [Pin] = []
    for element in list {
      guard case .string(let text) = element else {
        remarks.append(
          .init(
            .refused, name,
            "\(element.kind) where a pin belongs: TrustKit stops the app at its start"))
        continue
      }
      do throws(PinSyntaxError) { pins.append(Pin(try SPKIPin(base64: text))) } catch {
        remarks.append(
          .init(.refused, name, "TrustKit stops the app at its start for a pin: \(error)"))
      }
    }
    if Set(pins).count < pins.count {
      remarks.append(.init(.duplicate, name, "has the same pin twice"))
    }
    if Set(pins).count < least {
      remarks.append(
        .init(
          .refused, name,
          "fewer pins than \(least): TrustKit stops the app at its start"))
    }
    return pins
  }

  private static func end(
    _ value: PropertyListValue?, _ name: String, _ remarks: inout [PolicyRemark]
  ) -> Int64? {
    switch value {
    case nil: return nil
    case .date(let seconds)?: return Int64(exactly: seconds.rounded(.down))
    case .string(let text)?:
      // What follows the day makes it none: TrustKit pins for ever then.
      if let (end, rest) = text.leadingDay, rest.allSatisfy(\.isWhitespace) { return end }
      fallthrough
    default:
      remarks.append(.init(.unclear, name, "TSKExpirationDate is no date of the form 2030-01-31"))
      return nil
    }
  }
}

extension HostRule {
  /// Whether another one is for the subdomains of a name above this one's.
  fileprivate func isWithin(_ other: HostRule) -> Bool {
    let (host, wider) = (entry.pattern.base, other.entry.pattern)
    return wider != .exact(wider.base) && wider.base != host && wider.matches(host)
  }
}

extension String {
  fileprivate var isTrustKit: Bool { ["TSK", "kTSK", "kSK"].contains(where: hasPrefix) }
}

extension PropertyListValue {
  /// As TrustKit takes it, as far as people write it; `nil` if it has none.
  fileprivate var flag: Bool? {
    switch self {
    case .boolean(let flag): flag
    case .string(let text): ["yes", "true", "1"].contains(text.lowercased())
    case .integer(let number): number != 0
    default: nil
    }
  }
}

extension [String: PropertyListValue] {
  fileprivate func trustKit(_ key: String, isCode: Bool = false) -> PropertyListValue? {
    // The text of this constant is not its name without `k`.
    if key == "ExcludeSubdomainFromParentPolicy" {
      return self["kSK\(key)"] ?? (isCode ? self["kTSK\(key)"] : nil)
    }
    return self["TSK\(key)"] ?? self["kTSK\(key)"]
  }
}

/// Writes TrustKit's configuration.
///
/// - TrustKit ends the app for an entry with fewer than two pins (one, if it only reports), a name under no public
///   suffix, the subdomains of a public suffix, an exemption that no wider entry covers, and a list without hosts.
/// - A host that is not refused here is exempt if it has no entry and a wider one would refuse it. An exemption is for
///   one name.
///
/// Source: TrustKit's `parse_configuration.m`.
enum TrustKitWriter {
  /// - Parameter isPublicSuffix: as in ``PinPolicy/written(as:at:isPublicSuffix:)``.
  static func configuration(
    _ policy: PinPolicy, isPublicSuffix: ((String) -> Bool)? = nil
  ) -> (value: [String: PropertyListValue], losses: [PolicyRemark]) {
    var losses = policy.commonLosses
    var domains: [String: PropertyListValue] = [:]
    var exempt: [HostName] = []
    for group in policy.groups {
      let name = group.base.description
      guard case .name(let base) = group.base else {
        losses.append(.init(name, "is an address, which TrustKit does not pin: left out"))
        continue
      }
      guard !group.isExempt else {
        exempt.append(group.base)
        continue
      }
      guard var (entry, isBelow) = group.merged(deeper: true, &losses) else { continue }
      if let isPublicSuffix {
        guard sequence(first: base, next: \.parent).contains(where: { isPublicSuffix("\($0)") })
        else {
          losses.append(
            .init(name, "is under no public suffix, and TrustKit ends the app: left out"))
          continue
        }
        if isBelow, isPublicSuffix(name) {
          losses.append(
            .init("**.\(name)", "is a public suffix, and TrustKit ends the app: left out"))
          guard policy.patterns.contains(.exact(group.base)), let own = group.own else { continue }
          (entry, isBelow) = (own, false)
        }
      }
      if isBelow, let spared = policy.exemptSubtree(of: .anyDepth(base)) {
        losses.append(.sparing(spared, "**.\(name)"))
        guard let own = group.own else { continue }
        (entry, isBelow) = (own, false)
      }
      let pins = entry.pinsOfAnyRole(name, &losses)
      guard pins.count >= (entry.enforcement == .enforce ? 2 : 1) else {
        losses.append(
          .init(name, "has \(pins.count) pin, and TrustKit starts with two or more only: left out"))
        if entry.enforcement == .reportOnly { exempt.append(group.base) }
        continue
      }
      domains[name] = .dictionary([
        "TSKIncludeSubdomains": .boolean(isBelow),
        "TSKEnforcePinning": .boolean(entry.enforcement == .enforce),
        "TSKPublicKeyHashes": .array(pins.map { .string($0.base64) }),
        // Without it reports go to the makers of TrustKit.
        "TSKDisableDefaultReportUri": .boolean(true),
      ])
    }
    for host in exempt where covers(domains, host) { domains["\(host)"] = exemption }
    return (
      [
        "TSKSwizzleNetworkDelegates": .boolean(false), "TSKPinnedDomains": .dictionary(domains),
        "TSKIgnorePinningForUserDefinedTrustAnchors": .boolean(false),
      ], losses
    )
  }

  private static let exemption = PropertyListValue.dictionary([
    "kSKExcludeSubdomainFromParentPolicy": .boolean(true)
  ])

  /// Whether a wider one of these entries is for the host.
  private static func covers(_ domains: [String: PropertyListValue], _ host: HostName) -> Bool {
    domains.contains { name, value in
      guard case .dictionary(let members) = value, "\(host)".hasSuffix(".\(name)") else {
        return false
      }
      return members["TSKIncludeSubdomains"] == .boolean(true)
    }
  }

  /// A configuration for a file that has one.
  ///
  /// - What its owner set stays, for the whole and for each domain: report URIs, swizzling. What says which hosts are
  ///   pinned, and by what, is replaced.
  /// - A host that is exempt in the file stays so if only a wider entry would pin it.
  static func merged(
    _ configuration: [String: PropertyListValue], into root: [String: PropertyListValue]
  ) -> [String: PropertyListValue] {
    guard case .dictionary(let old)? = root["TSKConfiguration"] else { return configuration }
    var result = configuration.filter { key, _ in old[key] == nil }
    guard case .dictionary(var domains)? = configuration["TSKPinnedDomains"] else { return result }
    if case .dictionary(let before)? = old["TSKPinnedDomains"] {
      for (domain, value) in before.inOrder {
        guard case .dictionary(let members) = value, let host = try? HostName(domain) else {
          continue
        }
        if case .dictionary(let written)? = domains["\(host)"] {
          let own = members.filter { key, _ in !replaced.contains(where: key.hasSuffix) }
          guard written["TSKPublicKeyHashes"] != nil else { continue }
          domains["\(host)"] = .dictionary(written.merging(own) { _, own in own })
        } else if members.trustKit("ExcludeSubdomainFromParentPolicy")?.flag == true,
          covers(domains, host)
        {
          domains["\(host)"] = exemption
        }
      }
    }
    result["TSKPinnedDomains"] = .dictionary(domains)
    return result
  }

  private static let replaced = [
    "PublicKeyHashes", "IncludeSubdomains", "EnforcePinning", "ExcludeSubdomainFromParentPolicy",
    "ExpirationDate",
  ]

  /// The configuration as a dictionary of Swift for `TrustKit.initSharedInstance(withConfiguration:)`, by TrustKit's
  /// constants. Sendable, so that Swift 6 takes it as a global.
  static func swift(_ configuration: [String: PropertyListValue]) -> String {
    """
    import TrustKit

    let trustKitConfiguration: [String: any Sendable] = \(swift(.dictionary(configuration), indent: ""))

    """
  }

  /// Keys that are written as texts: Swift has this constant on macOS alone.
  private static let texts = ["TSKIgnorePinningForUserDefinedTrustAnchors"]

  private static func swift(_ value: PropertyListValue, indent: String) -> String {
    let inner = indent + "  "
    switch value {
    case .dictionary(let members):
      guard !members.isEmpty else { return "[:] as [String: any Sendable]" }
      let lines = members.inOrder.map { key, value in
        // Hosts are names of lower-case letters, digits, hyphens and dots.
        let name = key.hasPrefix("TSK") && !texts.contains(key) ? "k\(key)" : "\"\(key)\""
        return "\(inner)\(name): \(swift(value, indent: inner)),\n"
      }
      let type = indent.isEmpty ? "" : " as [String: any Sendable]"
      return "[\n\(lines.joined())\(indent)]\(type)"
    case .array(let values):
      return "[\n" + values.map { "\(inner)\(swift($0, indent: inner)),\n" }.joined() + "\(indent)]"
    case .boolean(let flag): return "\(flag)"
    case .string(let text): return "\"\(text)\""
    // Nothing else is in a configuration that is written here.
    case .integer, .real, .data, .date: return "\"\""
    }
  }
}
