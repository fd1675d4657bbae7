import SslPinningRules

/// A policy in the words of a format, with what the format cannot say.
public struct PolicyExport: Hashable, Sendable {
  /// The file.
  public let text: String
  /// What is lost or changed, by host. Each one is either a host that is pinned less or not at all there, or one
  /// that is refused where it is not refused here.
  public let losses: [PolicyRemark]
}

extension PinPolicy {
  /// Writes it in a format.
  ///
  /// - Wider patterns are written into narrower ones where a format goes by the closest entry alone.
  /// - Pins that end are written without their end, and nothing is written that ends the pinning.
  ///
  /// - Returns: `nil` for ``PolicyFormat/registry``, which `sign` makes of a payload.
  public func written(as format: PolicyFormat) -> PolicyExport? {
    switch format {
    case .nsPinnedDomains:
      let (domains, losses) = NSPinnedDomainsWriter.domains(self)
      return PolicyExport(
        text: PropertyListText.document([
          "NSAppTransportSecurity": .dictionary(["NSPinnedDomains": .dictionary(domains)])
        ]), losses: losses)
    case .trustKit:
      let (configuration, losses) = TrustKitWriter.configuration(self)
      return PolicyExport(text: PropertyListText.document(configuration), losses: losses)
    case .trustKitSwift:
      let (configuration, losses) = TrustKitWriter.configuration(self)
      return PolicyExport(text: TrustKitWriter.swift(configuration), losses: losses)
    case .android: return PolicyExport(AndroidWriter.text(self))
    case .okHttp: return PolicyExport(OkHttpWriter.text(self))
    case .curl: return PolicyExport(CurlWriter.text(self))
    case .registry: return nil
    }
  }

  /// Writes it into an Info.plist, in place of the pins that stand there: `NSPinnedDomains`, or
  /// `TSKConfiguration`'s domains. Every other byte stays as it is.
  ///
  /// - Returns: `nil` for formats that have no place there.
  /// - Throws: ``PolicyFormatError`` if the file is no XML property list.
  public func merged(
    into infoPlist: [UInt8], as format: PolicyFormat
  ) throws(PolicyFormatError) -> PolicyExport? {
    let (path, value, losses): ([String], [String: PropertyListValue], [PolicyRemark])
    switch format {
    case .nsPinnedDomains:
      let written = NSPinnedDomainsWriter.domains(self)
      (path, value) = (["NSAppTransportSecurity", "NSPinnedDomains"], written.value)
      losses = written.losses
    case .trustKit:
      let written = TrustKitWriter.configuration(self)
      guard case .dictionary(let domains)? = written.value["TSKPinnedDomains"] else { return nil }
      (path, value) = (["TSKConfiguration", "TSKPinnedDomains"], domains)
      losses = written.losses
    default: return nil
    }
    let bytes = try PropertyListMerge.merge(value, at: path, into: infoPlist)
    return PolicyExport(text: String(decoding: bytes, as: UTF8.self), losses: losses)
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

extension PolicyExport {
  fileprivate init(_ written: (text: String, losses: [PolicyRemark])) {
    self.init(text: written.text, losses: written.losses)
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
