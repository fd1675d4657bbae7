import SslPinningPlatform
import SslPinningRules

/// A policy in the words of a format, with what the format cannot say.
public struct PolicyExport: Hashable, Sendable {
  /// The file.
  public let text: String
  /// What is lost or changed, by host. Each one is either a host that is pinned less or not at all there, or one
  /// that is refused where it is not refused here. What clients let in or refuse otherwise is asked of the file as
  /// they read it (``PinPolicy/differences(from:)``).
  public let losses: [PolicyRemark]
  /// Whether no host is left that the file pins. Its clients would let in every server with a valid chain, or TrustKit
  /// would end the app.
  public let pinsNothing: Bool
}

extension PinPolicy {
  /// Writes it in a format.
  ///
  /// - Wider patterns are written into narrower ones where a format goes by the closest entry alone.
  /// - Pins that end are written without their end, and nothing is written that ends the pinning.
  /// - Pins that are denied, or over, are not written: there they would let servers in.
  ///
  /// - Parameters:
  ///   - now: Unix seconds.
  ///   - isPublicSuffix: whether hosts right below this name are of different people (publicsuffix.org); `nil` if that
  ///     is not known.
  /// - Returns: `nil` for ``PolicyFormat/registry``, which `sign` makes of a payload.
  public func written(
    as format: PolicyFormat, at now: Int64, isPublicSuffix: ((String) -> Bool)? = nil
  ) -> PolicyExport? {
    let usable = usable(at: now)
    return usable.written(as: format, isPublicSuffix).map { written in
      PolicyExport(
        text: written.text, losses: leftOut(in: usable) + written.losses,
        pinsNothing: written.pinsNothing)
    }
  }

  private func written(
    as format: PolicyFormat, _ isPublicSuffix: ((String) -> Bool)?
  ) -> PolicyExport? {
    func export(_ text: String, _ losses: [PolicyRemark]) -> PolicyExport {
      // What is written as Swift is read as the property list that it says.
      let read = try? PinPolicy(
        reading: Array(text.utf8), as: format == .trustKitSwift ? .trustKit : format)
      return PolicyExport(
        text: text, losses: losses + (read.map(differences) ?? []),
        pinsNothing: read?.patterns.isEmpty ?? true)
    }
    switch format {
    case .nsPinnedDomains:
      let (domains, losses) = NSPinnedDomainsWriter.domains(self)
      return export(
        PropertyListText.document([
          "NSAppTransportSecurity": .dictionary(["NSPinnedDomains": .dictionary(domains)])
        ]), losses)
    case .trustKit, .trustKitSwift:
      let (configuration, losses) = TrustKitWriter.configuration(
        self, isPublicSuffix: isPublicSuffix)
      let written = export(PropertyListText.document(configuration), losses)
      guard format == .trustKitSwift else { return written }
      return PolicyExport(
        text: TrustKitWriter.swift(configuration), losses: written.losses,
        pinsNothing: written.pinsNothing)
    case .android:
      let (text, losses) = AndroidWriter.text(self)
      return export(text, losses)
    case .okHttp:
      let (text, read, losses) = OkHttpWriter.text(self)
      return PolicyExport(
        text: text, losses: losses + differences(from: read), pinsNothing: read.patterns.isEmpty)
    case .curl:
      let (text, losses) = CurlWriter.text(self)
      return PolicyExport(text: text, losses: losses, pinsNothing: text.isEmpty)
    case .registry: return nil
    }
  }

  /// Writes it into an Info.plist, in place of the pins that stand there: `NSPinnedDomains`, or
  /// `TSKConfiguration`'s domains. What else the file says of a domain is kept, and every other byte stays as it is.
  ///
  /// - Of TrustKit's settings for the whole, those that are missing are added.
  ///
  /// - Parameters:
  ///   - now: Unix seconds.
  ///   - isPublicSuffix: as in ``written(as:at:isPublicSuffix:)``.
  /// - Returns: `nil` for formats that have no place there.
  /// - Throws: ``PolicyFormatError`` if the file is no XML property list.
  public func merged(
    into infoPlist: [UInt8], as format: PolicyFormat, at now: Int64,
    isPublicSuffix: ((String) -> Bool)? = nil
  ) throws(PolicyFormatError) -> PolicyExport? {
    let (place, members): (String, [String: PropertyListValue])
    switch format {
    case .nsPinnedDomains:
      let written = NSPinnedDomainsWriter.domains(usable(at: now))
      (place, members) = (
        "NSAppTransportSecurity", ["NSPinnedDomains": .dictionary(written.value)]
      )
    case .trustKit:
      let written = TrustKitWriter.configuration(usable(at: now), isPublicSuffix: isPublicSuffix)
      let root = try? PropertyListReader.value(of: infoPlist)
      (place, members) = (
        "TSKConfiguration", TrustKitWriter.merged(written.value, into: root?.members ?? [:])
      )
    default: return nil
    }
    var bytes = infoPlist
    for (key, value) in members.inOrder {
      bytes = try PropertyListMerge.merge(value, at: [place, key], into: bytes)
    }
    // Of a key that stands there twice, readers take the last one.
    let expected = PropertyListText.document([place: .dictionary(members)])
    guard Self.rules(bytes, format) == Self.rules(Array(expected.utf8), format) else {
      throw .malformed(
        format, reason: "a key of \(place) stands there twice, or in another spelling")
    }
    let alone = written(as: format, at: now, isPublicSuffix: isPublicSuffix)
    return PolicyExport(
      text: String(decoding: bytes, as: UTF8.self),
      losses: (alone?.losses ?? []) + changes(from: infoPlist, to: bytes, format),
      pinsNothing: alone?.pinsNothing ?? false)
  }

  /// What is lost if the text of an export takes the place of a list for Android: what that says besides pins, and what
  /// becomes of its hosts. Empty for files that are none.
  public func lost(byReplacing file: [UInt8], with text: String) -> [PolicyRemark] {
    AndroidReader.settings(of: file) + changes(from: file, to: Array(text.utf8), .android)
  }

  /// What readers of a file find; `nil` if they find no place for pins.
  private static func rules(_ file: [UInt8], _ format: PolicyFormat) -> Set<HostRule>? {
    (try? PinPolicy(reading: file, as: format)).map { Set($0.rules) }
  }

  /// What becomes of the hosts of a file whose pins are replaced by these: which are not pinned any more, which are
  /// refused and were not, and which stay unpinned because the file says so.
  private func changes(
    from before: [UInt8], to after: [UInt8], _ format: PolicyFormat
  ) -> [PolicyRemark] {
    guard let old = try? PinPolicy(reading: before, as: format) else { return [] }
    let new = try? PinPolicy(reading: after, as: format)
    let unpinned: [PolicyRemark] = old.groups.flatMap { group in
      group.samples.filter { _, host in
        old.entry(for: host) != nil && new?.entry(for: host) == nil
      }.map { .init($0.subject, "was pinned in the file, and is not pinned there any more") }
    }
    let spared: [PolicyRemark] = old.rules.compactMap { rule in
      let host = rule.entry.pattern.base
      guard let entry = new?.entry(for: host) else {
        return rule.isExempt && self.entry(for: host) != nil
          ? .init("\(host)", "is exempt in the file, and stays so: not pinned there") : nil
      }
      guard entry.enforcement == .enforce else {
        return rule.isExempt || rule.entry.enforcement == .reportOnly
          ? nil
          : .init(
            "\(rule.entry.pattern)",
            "was refused without a pin in the file, and will be reported only")
      }
      if rule.isExempt || rule.entry.enforcement == .reportOnly {
        return .init("\(rule.entry.pattern)", "was not refused in the file, and will be")
      }
      return rule.unpinnedFrom.map { _ in
        .init("\(host)", "was pinned until a date in the file: the date is taken out")
      }
    }
    return unpinned + spared + (new?.remarks ?? []).filter { $0 == TrustKitReader.bypassed }
  }

  /// The same with all pins taken as leaf pins, or as CA pins: for formats that do not tell them apart.
  public func taking(_ role: PinEvaluation.PinRole) -> PinPolicy {
    let known = rules.map { rule in
      guard rule.entry.hasUnknownRoles else { return rule }
      var entry = PolicyEntry(rule.entry.pattern, enforcement: rule.entry.enforcement)
      if role == .leaf { entry.leaf = rule.entry.leaf } else { entry.ca = rule.entry.ca }
      return rule.demanding(entry)
    }
    return PinPolicy(
      format: format, rules: known, overlap: overlap, denied: denied, anchors: anchors,
      remarks: remarks)
  }
}

extension PropertyListValue {
  fileprivate var members: [String: PropertyListValue]? {
    if case .dictionary(let members) = self { members } else { nil }
  }
}

extension String {
  /// As the text of an XML element, or within the quotes of an attribute.
  var xmlEscaped: String {
    unicodeScalars.map { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      case "\n", "\t": String(scalar)
      // Most control characters have no place in XML, not even as a reference.
      case _ where scalar.value < 0x20: "\u{FFFD}"
      default: String(scalar)
      }
    }.joined()
  }
}
