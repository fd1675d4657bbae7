import SslPinningRules

/// A policy in the words of a format, with what the format cannot say.
public struct PolicyExport: Hashable, Sendable {
  /// The file.
  public let text: String
  /// What is lost or changed, by host. Each one is either a host that is pinned less or not at all there, or one
  /// that is refused where it is not refused here. What clients let in or refuse otherwise is asked of the file as
  /// they read it (``PinPolicy/differences(from:)``).
  public let losses: [PolicyRemark]
}

extension PinPolicy {
  /// Writes it in a format.
  ///
  /// - Wider patterns are written into narrower ones where a format goes by the closest entry alone.
  /// - Pins that end are written without their end, and nothing is written that ends the pinning.
  /// - Pins that are denied, or over, are not written: there they would let servers in.
  ///
  /// - Parameter now: Unix seconds.
  /// - Returns: `nil` for ``PolicyFormat/registry``, which `sign` makes of a payload.
  public func written(as format: PolicyFormat, at now: Int64) -> PolicyExport? {
    let usable = usable(at: now)
    return usable.written(as: format).map { written in
      PolicyExport(text: written.text, losses: leftOut(in: usable) + written.losses)
    }
  }

  private func written(as format: PolicyFormat) -> PolicyExport? {
    func export(_ text: String, _ losses: [PolicyRemark]) -> PolicyExport {
      let read = try? PinPolicy(reading: Array(text.utf8), as: format)
      return PolicyExport(text: text, losses: losses + (read.map(differences) ?? []))
    }
    switch format {
    case .nsPinnedDomains:
      let (domains, losses) = NSPinnedDomainsWriter.domains(self)
      return export(
        PropertyListText.document([
          "NSAppTransportSecurity": .dictionary(["NSPinnedDomains": .dictionary(domains)])
        ]), losses)
    case .trustKit:
      let (configuration, losses) = TrustKitWriter.configuration(self)
      return export(PropertyListText.document(configuration), losses)
    case .trustKitSwift:
      let (configuration, losses) = TrustKitWriter.configuration(self)
      return export(TrustKitWriter.swift(configuration), losses)
    case .android:
      let (text, losses) = AndroidWriter.text(self)
      return export(text, losses)
    case .okHttp:
      let (text, read, losses) = OkHttpWriter.text(self)
      return PolicyExport(text: text, losses: losses + differences(from: read))
    case .curl:
      let (text, losses) = CurlWriter.text(self)
      return PolicyExport(text: text, losses: losses)
    case .registry: return nil
    }
  }

  /// Writes it into an Info.plist, in place of the pins that stand there: `NSPinnedDomains`, or
  /// `TSKConfiguration`'s domains. Every other byte stays as it is.
  ///
  /// - Parameter now: Unix seconds.
  /// - Returns: `nil` for formats that have no place there.
  /// - Throws: ``PolicyFormatError`` if the file is no XML property list.
  public func merged(
    into infoPlist: [UInt8], as format: PolicyFormat, at now: Int64
  ) throws(PolicyFormatError) -> PolicyExport? {
    let (path, value): ([String], [String: PropertyListValue])
    switch format {
    case .nsPinnedDomains:
      let written = NSPinnedDomainsWriter.domains(usable(at: now))
      (path, value) = (["NSAppTransportSecurity", "NSPinnedDomains"], written.value)
    case .trustKit:
      let written = TrustKitWriter.configuration(usable(at: now))
      guard case .dictionary(let domains)? = written.value["TSKPinnedDomains"] else { return nil }
      (path, value) = (["TSKConfiguration", "TSKPinnedDomains"], domains)
    default: return nil
    }
    let bytes = try PropertyListMerge.merge(value, at: path, into: infoPlist)
    let alone = written(as: format, at: now)
    // Of a key that stands there twice, readers take the last one.
    guard Self.rules(bytes, format) == alone.flatMap({ Self.rules(Array($0.text.utf8), format) })
    else {
      throw .malformed(
        format, reason: "\(path.joined(separator: ".")) stands there twice, or in another spelling")
    }
    return PolicyExport(
      text: String(decoding: bytes, as: UTF8.self),
      losses: (alone?.losses ?? []) + Self.unpinned(infoPlist, bytes, format))
  }

  /// What readers of a file find; `nil` if they find no place for pins.
  private static func rules(_ file: [UInt8], _ format: PolicyFormat) -> Set<HostRule>? {
    (try? PinPolicy(reading: file, as: format)).map { Set($0.rules) }
  }

  /// Hosts that a file pinned before its pins were replaced, and does not pin any more.
  private static func unpinned(
    _ before: [UInt8], _ after: [UInt8], _ format: PolicyFormat
  ) -> [PolicyRemark] {
    guard let old = try? PinPolicy(reading: before, as: format) else { return [] }
    let new = try? PinPolicy(reading: after, as: format)
    return old.groups.flatMap { group in
      group.samples.filter { _, host in
        old.entry(for: host) != nil && new?.entry(for: host) == nil
      }.map { .init($0.subject, "was pinned in the file, and is not pinned there any more") }
    }
  }

  /// The same with all pins taken as leaf pins, or as CA pins: for formats that do not tell them apart.
  public func taking(_ role: PinEvaluation.PinRole) -> PinPolicy {
    let known = rules.map { rule in
      guard rule.entry.hasUnknownRoles else { return rule }
      var entry = PolicyEntry(rule.entry.pattern, enforcement: rule.entry.enforcement)
      if role == .leaf { entry.leaf = rule.entry.leaf } else { entry.ca = rule.entry.ca }
      return HostRule(entry, unpinnedFrom: rule.unpinnedFrom, isExempt: rule.isExempt)
    }
    return PinPolicy(
      format: format, rules: known, overlap: overlap, denied: denied, remarks: remarks)
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
