import CanonicalJSON
import Foundation
import FoundationXML
import SslPinningPlatform
import SslPinningRules

/// Finds the lists that are files of their own: property lists, Android's XML, documents of a registry.
enum ConfigurationSites {
  /// What was found in a file of one of these kinds.
  static func sites(in file: SourceFile) -> [PinSite] {
    switch file.kind {
    case .plist: propertyLists(file)
    case .xml: android(file)
    case .json: registry(file)
    default: []
    }
  }

  // MARK: - Apple, TrustKit

  private static func propertyLists(_ file: SourceFile) -> [PinSite] {
    let formats: [(PolicyFormat, PinSite.Mechanism, String)] = [
      (.nsPinnedDomains, .nsPinnedDomains, "NSPinnedDomains"),
      (.trustKit, .trustKit, "TSKPinnedDomains"),
    ]
    return formats.compactMap { format, mechanism, word in
      guard SourceFile.holds(file.bytes, Array(word.utf8)) else { return nil }
      let misplaced = misplaced(file, format)
      do throws(PolicyFormatError) {
        let policy = try PinPolicy(reading: file.bytes, as: format)
        let isTold = misplaced.map { policy.remarks.contains($0) } ?? true
        return PinSite(
          file, line: nil, mechanism, policy,
          notes: (isTold ? [] : [misplaced].compactMap { $0 }.map { note($0, file, word) })
            + (mechanism == .nsPinnedDomains ? clearText(file, policy) : []))
      } catch {
        if case .noPins = error {
          // Else the word stands there, and for something else.
          return misplaced.map {
            PinSite(file, line: file.line(of: word), mechanism, notes: [note($0, file, word)])
          }
        }
        return PinSite(
          file, line: file.line(of: word), mechanism,
          notes: [Finding(.unreadable, "nothing is pinned by it: \(error)", severity: .error)])
      }
    }
  }

  /// What is to be told of a list that stands where nobody looks; `nil` if it does not.
  private static func misplaced(_ file: SourceFile, _ format: PolicyFormat) -> PolicyRemark? {
    guard case .dictionary(let root)? = try? PropertyListReader.value(of: file.bytes) else {
      return nil
    }
    let isInfoPlist = file.path.hasSuffix("Info.plist")
    switch format {
    case .nsPinnedDomains:
      return NSPinnedDomainsReader.isMisplaced(in: root, isInfoPlist: isInfoPlist)
        ? NSPinnedDomainsReader.misplaced : nil
    default:
      return TrustKitReader.isMisplaced(in: root, isInfoPlist: isInfoPlist)
        ? TrustKitReader.misplaced : nil
    }
  }

  private static func note(_ remark: PolicyRemark, _ file: SourceFile, _ word: String) -> Finding {
    Finding(
      .notPinned, remark.text, site: .init(line: file.line(of: word), affects: file.affects))
  }

  /// App Transport Security turned off beside pins: for all, or for a domain that has pinned hosts.
  private static func clearText(_ file: SourceFile, _ policy: PinPolicy) -> [Finding] {
    guard case .dictionary(let root)? = try? PropertyListReader.value(of: file.bytes),
      case .dictionary(let security)? = root["NSAppTransportSecurity"]
    else { return [] }
    func finding(_ key: String, _ host: String, _ hosts: String) -> Finding {
      Finding(
        .clearText, host: host,
        "\(key) permits clear text to \(hosts), and nothing is pinned there; hint: take it out",
        site: .init(line: file.line(of: key), affects: file.affects))
    }
    let key = "NSAllowsArbitraryLoads"
    let ofAll = security[key] == .boolean(true) ? [finding(key, "", "every host")] : []
    guard case .dictionary(let domains)? = security["NSExceptionDomains"] else { return ofAll }
    return ofAll
      + domains.inOrder.compactMap { domain, value in
        guard case .dictionary(let members) = value,
          let key = clearTextKeys.first(where: { members[$0] == .boolean(true) }),
          let host = try? HostName(domain),
          policy.pins(host, andBelow: members["NSIncludesSubdomains"] == .boolean(true))
        else { return nil }
        return finding(key, domain.shown, "it")
      }
  }

  /// The second is the name that the first had before, and still is read.
  private static let clearTextKeys = [
    "NSExceptionAllowsInsecureHTTPLoads", "NSTemporaryExceptionAllowsInsecureHTTPLoads",
  ]

  // MARK: - Android

  private static func android(_ file: SourceFile) -> [PinSite] {
    guard SourceFile.holds(file.bytes, Array("<network-security-config".utf8)) else { return [] }
    do throws(PolicyFormatError) {
      let policy = try PinPolicy(reading: file.bytes, as: .android)
      let notes = AndroidSwitches.findings(in: file)
      // Without any of these it is about clear text or CAs, and pinning is somebody else's.
      guard !policy.rules.isEmpty || !policy.remarks.isEmpty || !notes.isEmpty else { return [] }
      return [PinSite(file, line: nil, .android, policy, notes: notes)]
    } catch {
      // A layout or a manual that quotes it has another root.
      if case .noPins = error { return [] }
      return [
        PinSite(
          file, line: file.line(of: "<network-security-config"), .android,
          notes: [Finding(.unreadable, "Android reads none of it: \(error)", severity: .error)])
      ]
    }
  }

  /// The names of network security configurations that a manifest refers to; `nil` if it is no manifest.
  static func configurations(ofManifest file: SourceFile) -> Set<String>? {
    guard file.kind == .xml, file.path.hasSuffix("AndroidManifest.xml") else { return nil }
    let reader = ManifestReader()
    let parser = XMLParser(data: Data(file.bytes))
    parser.delegate = reader
    parser.shouldResolveExternalEntities = false
    _ = parser.parse()
    // One that cannot be read as far as that says nothing of any list.
    return reader.hasApplication ? reader.names : nil
  }

  // MARK: - Registries

  /// A document or a payload as an app ships it. Its signature is not checked: the key is the app's.
  private static func registry(_ file: SourceFile) -> [PinSite] {
    guard SourceFile.holds(file.bytes, Array("\"domainName\"".utf8)) else { return [] }
    let root: JSONObject
    do throws(JSONError) {
      guard let object = try JSONValue(parsing: file.bytes).objectValue else { return [] }
      root = object
    } catch {
      // Any JSON may have such a member; a signed one beside it is ours.
      guard SourceFile.holds(file.bytes, Array("\"signature\"".utf8)) else { return [] }
      return [unreadable(file, "\(error)")]
    }
    let payload = root["payload"]?.objectValue ?? root
    // The server's own configuration has hosts, and no key to them.
    guard let keys = payload["keys"]?.arrayValue,
      keys.contains(where: { $0.objectValue?["key"] != nil })
    else { return [] }
    let json = root["statement"]?.objectValue
    let statement = json.flatMap {
      try? Statement($0, registry: $0["registry"]?.stringValue ?? "")
    }
    do throws(RegistryError) {
      let registry = try Registry(payload: payload, settings: statement?.hosts ?? [])
      let policy = PinPolicy(
        registry, entries: registry.policyEntries, denied: Set(statement?.denied ?? []))
      let end = statement.flatMap { $0.isRetired ? nil : $0.expires }
      let broken = json != nil && statement == nil
      return [
        PinSite(
          file, line: nil, .registry, policy, ends: end,
          notes: broken
            ? [
              Finding(
                .unreadable, "clients refuse it: its statement cannot be read", severity: .error)
            ]
            : [])
      ]
    } catch { return [unreadable(file, "\(error)")] }
  }

  private static func unreadable(_ file: SourceFile, _ reason: String) -> PinSite {
    PinSite(
      file, line: file.line(of: "\"domainName\""), .registry,
      notes: [Finding(.unreadable, "clients refuse it: \(reason)", severity: .error)])
  }
}

extension PinPolicy {
  /// Whether one of these hosts is pinned.
  fileprivate func pins(_ host: HostName, andBelow isWide: Bool) -> Bool {
    guard entry(for: host) == nil else { return true }
    guard isWide, case .name(let name) = host else { return false }
    return patterns.contains { HostPattern.anyDepth(name).matches($0.base) }
  }
}

/// The network security configurations that a manifest names.
private final class ManifestReader: NSObject, XMLParserDelegate {
  private(set) var names: Set<String> = []
  private(set) var hasApplication = false

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
    qualifiedName: String?, attributes: [String: String]
  ) {
    if name == "application" { hasApplication = true }
    for (key, value) in attributes where key.hasSuffix("networkSecurityConfig") {
      if value.hasPrefix("@xml/") { names.insert(String(value.dropFirst("@xml/".count))) }
    }
  }
}

/// What a network security configuration permits beside its pins: clear text, and what debug builds trust.
private final class AndroidSwitches: NSObject, XMLParserDelegate {
  private struct Element {
    let name: String
    /// `cleartextTrafficPermitted`, if it says so.
    let clearText: Bool?
    let line: Int
    var hosts: [String] = []
    var isPinned = false
  }

  private let affects: AffectedUsers
  private var open: [Element] = []
  private var text = ""
  private var base: Element?
  /// Entries with pins, and whether they permit clear text by themselves or by what they stand in.
  private var pinned: [(element: Element, clearText: Bool?)] = []
  private var found: [Finding] = []

  private init(_ file: SourceFile) { affects = file.affects }

  /// The parser has found the document whole before.
  static func findings(in file: SourceFile) -> [Finding] {
    let reader = AndroidSwitches(file)
    let parser = XMLParser(data: Data(file.bytes))
    parser.delegate = reader
    parser.shouldResolveExternalEntities = false
    _ = parser.parse()
    return reader.found + reader.clearText
  }

  private var clearText: [Finding] {
    let byBase = base?.clearText ?? false
    let permitted = pinned.filter { $0.clearText ?? byBase }
    if permitted.isEmpty, byBase, let base {
      return [
        note(.clearText, "clear text is permitted to hosts that are not pinned", base.line, .info)
      ]
    }
    return permitted.map { element, _ in
      note(
        .clearText,
        "clear text is permitted, and nothing is pinned there; hint: cleartextTrafficPermitted=\"false\"",
        element.line, host: element.hosts.joined(separator: ", ").shown)
    }
  }

  private func note(
    _ rule: CheckRule, _ text: String, _ line: Int, _ severity: Finding.Severity? = nil,
    host: String = "", _ users: AffectedUsers? = nil
  ) -> Finding {
    Finding(
      rule, host: host, text, severity: severity,
      site: .init(line: line, affects: users ?? affects))
  }

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
    qualifiedName: String?, attributes: [String: String]
  ) {
    let line = parser.lineNumber
    switch name {
    case "pin-set":
      if let last = open.indices.last { open[last].isPinned = true }
    case "debug-overrides":
      found.append(
        note(
          .debugBuilds, "debug builds trust the anchors that stand here, and check no pin for them",
          line, host: "", .developers))
    case "trustkit-config" where attributes["enforcePinning"] == "false":
      found.append(
        note(
          .reportOnly,
          "TrustKit only reports a missing pin before Android 7, and lets the server in",
          line))
    default: break
    }
    text = ""
    open.append(
      Element(
        name: name, clearText: attributes["cleartextTrafficPermitted"].map { $0 == "true" },
        line: line))
  }

  func parser(_ parser: XMLParser, foundCharacters text: String) { self.text += text }

  func parser(
    _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
  ) {
    guard let element = open.popLast() else { return }
    switch name {
    case "domain":
      if let last = open.indices.last {
        open[last].hosts.append(text.trimmingCharacters(in: .whitespacesAndNewlines))
      }
    case "base-config": base = element
    case "domain-config":
      let around = open.filter { $0.name == "domain-config" }
      if element.isPinned || around.contains(where: \.isPinned) {
        pinned.append(
          (element, element.clearText ?? around.reversed().compactMap(\.clearText).first))
      }
    default: break
    }
  }
}
