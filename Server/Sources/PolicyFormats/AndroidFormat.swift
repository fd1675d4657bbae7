import Foundation
import FoundationXML
import SslPinningRules

/// Reads and writes Android's `network_security_config.xml`.
///
/// - A pin matches any certificate of the validated path. Subdomains are of any depth, the domain included.
/// - The longest domain that matches decides alone. An entry inside another one takes its pins if it has none.
/// - `expiration` is a day from which the hosts are no longer pinned. Here it begins in UTC, on a device in its time zone.
/// - Pins are not held against chains that end at an anchor with `overridePins`.
/// - The innermost `trust-anchors` name the CAs that are trusted, those of `base-config` for all other hosts; without any
///   these are the system's, as for apps with a `targetSdkVersion` of 24 or more. What counts in debug builds alone is left
///   aside: other builds skip it unread, and are not refused for it.
///
/// Source: Android's guide to the network security configuration, "Certificate pinning" and "Configuration
/// inheritance".
enum AndroidReader {
  static func policy(of bytes: [UInt8]) throws(PolicyFormatError) -> PinPolicy {
    let root = try root(of: bytes)
    var rules: [HostRule] = []
    var remarks = unread(below: root)
    let anchors = root.children(named: "base-config").first?.children(named: "trust-anchors").first
    for config in root.children(named: "domain-config") {
      read(config, inherited: (nil, anchors), &rules, &remarks)
    }
    var seen: Set<HostName> = []
    for host in rules.map(\.entry.pattern.base) where !seen.insert(host).inserted {
      remarks.append(
        .init(.refused, "\(host)", "has two entries: Android refuses the whole file"))
    }
    return PinPolicy(
      format: .android, rules: rules, overlap: .mostSpecific, anchors: sources(anchors),
      remarks: remarks)
  }

  private static func root(
    of bytes: [UInt8]
  ) throws(PolicyFormatError) -> AndroidDocument.Element {
    let reader = AndroidDocument()
    let parser = XMLParser(data: Data(bytes))
    parser.delegate = reader
    // Entities from elsewhere have no place in a policy; the parser fetches none by itself.
    parser.shouldResolveExternalEntities = false
    // A document that stops in the middle is no error to the parser.
    guard parser.parse(), reader.isWhole, let root = reader.root else {
      let reason = parser.parserError.map { ($0 as NSError).code }
      throw .malformed(
        .android, reason: "line \(parser.lineNumber), error \(reason ?? 0) of the XML parser")
    }
    guard root.name == "network-security-config" else {
      throw .noPins(.android, wanted: "network-security-config")
    }
    return root
  }

  /// The CAs that are trusted.
  private static func sources(_ anchors: AndroidDocument.Element?) -> AnchorSources {
    guard let anchors else { return .system }
    return AnchorSources(
      anchors.children(named: "certificates").map { $0.attributes["src"] ?? "" })
  }

  /// What a list says besides pins, each with its host: an export that takes its place does not say it.
  static func settings(of bytes: [UInt8]) -> [PolicyRemark] {
    guard let root = try? root(of: bytes) else { return [] }
    return settings(below: root)
  }

  private static func settings(below parent: AndroidDocument.Element) -> [PolicyRemark] {
    func lost(_ what: String, _ element: AndroidDocument.Element) -> PolicyRemark {
      let host = element.children(named: "domain").first?.text ?? ""
      return .init(host.shown, "lost with the file that is replaced: \(what.shown)")
    }
    return parent.children.flatMap { child -> [PolicyRemark] in
      switch child.name {
      case "domain", "pin-set": return []
      case "domain-config":
        // What an export writes.
        let written = ["cleartextTrafficPermitted": "false"]
        // A name with a prefix is for tools.
        let names = child.attributes.keys.filter { !$0.contains(":") }
        return names.filter { written[$0] != child.attributes[$0] }.sorted()
          .map { lost($0, child) } + settings(below: child)
      default: return [lost(child.name, parent)]
      }
    }
  }

  /// The elements of which pins are made, each by its letters alone, and where Android reads it.
  private static let places: [String: (name: String, parents: Set<String>)] = [
    "domainconfig": ("domain-config", ["network-security-config", "domain-config"]),
    "domain": ("domain", ["domain-config"]), "pinset": ("pin-set", ["domain-config"]),
    "pin": ("pin", ["pin-set"]),
  ]

  /// What looks like a part of a list, and is none: Android skips an element that it does not know, or refuses the file.
  ///
  /// - Parameter isPinned: whether the element has pins, by itself or by one around it.
  private static func unread(
    below parent: AndroidDocument.Element, isPinned: Bool = false
  ) -> [PolicyRemark] {
    var remarks: [PolicyRemark] = []
    for child in parent.children {
      let set = child.children(named: "pin-set").first
      let isPinned = set.map { !$0.children(named: "pin").isEmpty } ?? isPinned
      let place = places[child.name.lowercased().filter(\.isLetter)]
      if let place, child.name != place.name || !place.parents.contains(parent.name) {
        let remark =
          "is not read in \(parent.name.shown), and pins nothing; hint: \(place.name) belongs into "
        remarks.append(
          .init(
            .unpinned, child.name.shown, remark + place.parents.sorted().joined(separator: " or ")))
      }
      for name in mistakenAttributes(of: child, in: parent) where isPinned {
        remarks.append(
          .init(
            .unpinned, child.text.shown,
            "\(name.shown) of \(child.name.shown) is not read, and pins no subdomains; hint: \(subdomains) of domain"
          ))
      }
      remarks += unread(below: child, isPinned: isPinned)
        .filter { child.name != "debug-overrides" || $0.kind != .refused }
    }
    let single = ["pin-set", "trust-anchors", "base-config", "debug-overrides"]
    for name in single where parent.children(named: name).count > 1 {
      remarks.append(
        .init(
          .refused, "",
          "\(parent.name.shown) has more than one \(name): Android refuses the whole file"))
    }
    if parent.name == "trust-anchors" {
      for certificates in parent.children(named: "certificates") {
        let source = certificates.attributes["src"] ?? ""
        guard !["system", "user", "wfa"].contains(source), !source.hasPrefix("@") else { continue }
        remarks.append(
          .init(
            .refused, "",
            "certificates with the src \"\(source.shown)\", which is none: Android refuses the whole file"
          ))
      }
    }
    if parent.name == "domain-config", parent.children(named: "domain").isEmpty {
      remarks.append(
        .init(.refused, "", "a domain-config has no domain: Android refuses the whole file"))
    }
    return remarks
  }

  private static let subdomains = "includeSubdomains"

  /// The attributes that seem to pin the subdomains of a `domain`, and are not read, if its subdomains are not pinned.
  private static func mistakenAttributes(
    of element: AndroidDocument.Element, in parent: AndroidDocument.Element
  ) -> [String] {
    let domains =
      switch element.name {
      case "domain": [element]
      case "domain-config": element.children(named: "domain")
      default: parent.children(named: "domain")
      }
    guard !domains.allSatisfy({ $0.flag(subdomains) }) else { return [] }
    return element.attributes.filter { name, value in
      name.lowercased().contains("subdomain") && value.lowercased() != "false"
        && (element.name, name) != ("domain", subdomains)
    }.keys.sorted()
  }

  private static func read(
    _ config: AndroidDocument.Element,
    inherited: (pins: AndroidDocument.Element?, anchors: AndroidDocument.Element?),
    _ rules: inout [HostRule], _ remarks: inout [PolicyRemark]
  ) {
    let pinSet = config.children(named: "pin-set").first ?? inherited.pins
    let anchors = config.children(named: "trust-anchors").first ?? inherited.anchors
    let overriding = anchors?.children(named: "certificates").first {
      $0.flag("overridePins")
    }
    let names = config.children(named: "domain").map(\.text)
    let (pins, end) = pins(of: pinSet, for: names.first ?? "", &remarks)
    for domain in config.children(named: "domain") {
      let host: HostName
      do throws(HostNameError) { host = try HostName(domain.text) } catch {
        remarks.append(.init(.unpinned, domain.text.shown, "is not pinned: \(error)"))
        continue
      }
      guard !domain.text.hasSuffix(".") else {
        remarks.append(
          .init(.unpinned, domain.text.shown, "is not pinned: no host has the dot at its end"))
        continue
      }
      let pattern: HostPattern =
        switch host {
        case .name(let name) where domain.flag(subdomains): .anyDepth(name)
        default: .exact(host)
        }
      if let overriding, !pins.isEmpty {
        let source = overriding.attributes["src"] ?? ""
        remarks.append(
          .init(
            .unpinned, domain.text.shown,
            "is not pinned for CAs of \"\(source.shown)\", by overridePins"))
      }
      // Without pins it takes its hosts out of a wider entry.
      rules.append(
        HostRule(
          PolicyEntry(
            pattern, leaf: PinSet(pins), ca: PinSet(pins), required: [.leaf, .ca], match: .any),
          unpinnedFrom: end, isExempt: pinSet == nil || pins.isEmpty, anchors: sources(anchors)))
    }
    for inner in config.children(named: "domain-config") {
      read(inner, inherited: (pinSet, anchors), &rules, &remarks)
    }
  }

  private static func pins(
    of set: AndroidDocument.Element?, for name: String, _ remarks: inout [PolicyRemark]
  ) -> ([Pin], Int64?) {
    guard let set else { return ([], nil) }
    var pins: [Pin] = []
    if set.children(named: "pin").isEmpty, !name.isEmpty {
      remarks.append(.init(.unpinned, name.shown, "is not pinned: its pin-set has no pin"))
    }
    for pin in set.children(named: "pin") {
      guard pin.attributes["digest"]?.uppercased() == "SHA-256" else {
        remarks.append(
          .init(
            .refused, name.shown,
            "a pin whose digest is not SHA-256: Android refuses the whole file"))
        continue
      }
      // Android's decoder skips what is no digit, and needs no padding.
      let digits = pin.text.filter {
        $0.isASCII && ($0.isLetter || $0.isNumber || "+/".contains($0))
      }
      do throws(PinSyntaxError) { pins.append(Pin(try SPKIPin(base64: digits + "="))) } catch {
        remarks.append(
          .init(.refused, name.shown, "Android refuses the whole file for a pin: \(error)"))
      }
    }
    if Set(pins).count < pins.count {
      remarks.append(.init(.duplicate, name.shown, "has the same pin twice"))
    }
    guard let text = set.attributes["expiration"] else { return (pins, nil) }
    // Android reads no further than the day.
    guard let end = text.leadingDay?.start else {
      remarks.append(
        .init(
          .refused, name.shown,
          "expiration is no date of the form 2030-01-31: Android refuses the whole file"))
      return (pins, nil)
    }
    return (pins, end)
  }
}

extension String {
  /// As much as a message needs, on one line.
  var shown: String {
    let text = unicodeScalars.prefix(80).map { $0.escaped(asASCII: true) }.joined()
    return unicodeScalars.count > 80 ? text + "…" : text
  }

  /// The day at its beginning (its start in UTC), and what follows. As for the formatters of Java and Apple with the
  /// pattern `yyyy-MM-dd`, a number may have fewer or more digits, and white space before it.
  var leadingDay: (start: Int64, rest: Substring)? {
    guard let match = prefixMatch(of: /[ \t]*([0-9]+)-[ \t]*([0-9]+)-[ \t]*([0-9]+)/),
      let year = Int(match.1), year > 0, let month = Int(match.2), let day = Int(match.3),
      let start = RFC3339.unixSeconds(
        String(format: "%04ld-%02ld-%02ldT00:00:00Z", min(year, 9999), month, day))
    else { return nil }
    return (start, self[match.range.upperBound...])
  }
}

/// The elements of an XML document, as a tree that is bounded in depth.
private final class AndroidDocument: NSObject, XMLParserDelegate {
  final class Element {
    let name: String
    let attributes: [String: String]
    fileprivate(set) var children: [Element] = []
    fileprivate var raw = ""

    init(_ name: String, _ attributes: [String: String]) {
      (self.name, self.attributes) = (name, attributes)
    }

    /// Its text without the white space around it, as Android's reader takes it.
    var text: String { raw.trimmingCharacters(in: .whitespacesAndNewlines) }

    func children(named name: String) -> [Element] { children.filter { $0.name == name } }

    /// Whether an attribute is on, as Android reads it.
    func flag(_ name: String) -> Bool { ["true", "TRUE", "1"].contains(attributes[name]) }
  }

  private(set) var root: Element?
  private var open: [Element] = []
  var isWhole: Bool { open.isEmpty }
  private static let maximumDepth = 32

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
    qualifiedName: String?, attributes: [String: String]
  ) {
    guard open.count < Self.maximumDepth else { return parser.abortParsing() }
    let element = Element(name, attributes)
    if let parent = open.last { parent.children.append(element) } else { root = element }
    open.append(element)
  }

  func parser(
    _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
  ) {
    _ = open.popLast()
  }

  func parser(_ parser: XMLParser, foundCharacters text: String) { open.last?.raw += text }
}

/// Writes Android's `network_security_config.xml`.
///
/// - Clear text to the listed hosts is forbidden, as on a pinned session.
/// - No `expiration` is written: it would open the door on that day.
/// - A host that is not refused here stands in an entry without pins if a wider entry would refuse it.
enum AndroidWriter {
  static func text(_ policy: PinPolicy) -> (text: String, losses: [PolicyRemark]) {
    var losses = policy.commonLosses
    var lines = ["<?xml version=\"1.0\" encoding=\"utf-8\"?>", "<network-security-config>"]
    var wide: [HostPattern] = []
    var open: [(host: HostName, isBelow: Bool)] = []
    for group in policy.groups {
      let name = group.base.description
      guard !group.isExempt else {
        let isBelow = policy.rules.contains {
          $0.entry.pattern.base == group.base && $0.entry.pattern != .exact(group.base)
        }
        open.append((group.base, isBelow))
        continue
      }
      guard let (entry, isBelow) = group.merged(deeper: true, &losses) else { continue }
      guard entry.enforcement == .enforce else {
        losses.append(.init(name, "only reports, and Android refuses: left out"))
        open.append((group.base, isBelow))
        continue
      }
      let pins = entry.pinsOfAnyRole(name, &losses)
      guard !pins.isEmpty else {
        // An empty pin-set pins nothing there, where here it refuses.
        losses.append(
          .init(name, "has no readable pin and is refused here; Android would not pin it: left out")
        )
        continue
      }
      if isBelow, case .name(let base) = group.base { wide.append(.anyDepth(base)) }
      lines += [
        "  <domain-config cleartextTrafficPermitted=\"false\">",
        "    <domain includeSubdomains=\"\(isBelow)\">\(name)</domain>", "    <pin-set>",
      ]
      lines += pins.map { "      <pin digest=\"SHA-256\">\($0.base64)</pin>" }
      lines += ["    </pin-set>", "  </domain-config>"]
    }
    for (host, isBelow) in open where wide.contains(where: { $0.matches(host) }) {
      lines += [
        "  <domain-config>", "    <domain includeSubdomains=\"\(isBelow)\">\(host)</domain>",
        "  </domain-config>",
      ]
    }
    return ((lines + ["</network-security-config>", ""]).joined(separator: "\n"), losses)
  }
}
