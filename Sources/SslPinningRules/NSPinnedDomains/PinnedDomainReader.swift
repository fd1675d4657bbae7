/// Reads one domain under `NSPinnedDomains`, by the rules in ``NSPinnedDomains``.
struct PinnedDomainReader {
  private(set) var entries: [PolicyEntry] = []
  private(set) var problems: [NSPinnedDomainsProblem] = []

  private let path: String

  init(domain: String, value: PropertyListValue, path: String) {
    self.path = path + "[\"\(Self.shown(domain))\"]"
    let host: HostName
    do throws(HostNameError) { host = try HostName(domain) } catch {
      tell(.unreadableDomain(error))
      return
    }
    if domain.utf8.last == UInt8(ascii: ".") { tell(.trailingDot) }
    guard case .dictionary(let members) = value else {
      tell(.entryNotADictionary(found: value.kind))
      entries = [PolicyEntry(.exact(host))]
      return
    }
    var entry = PolicyEntry(.exact(host))
    var includesSubdomains = false
    for (key, value) in members.inByteOrder {
      switch key {
      case "NSIncludesSubdomains": includesSubdomains = flag(value, key)
      case "NSPinnedLeafIdentities":
        entry.leaf = identities(value, key)
        entry.required.insert(.leaf)
      case "NSPinnedCAIdentities":
        entry.ca = identities(value, key)
        entry.required.insert(.ca)
      default: tell(.unknownKey, at: "." + Self.shown(key))
      }
    }
    guard !entry.required.isEmpty else {
      tell(.noList)
      return
    }
    entries = [entry]
    guard includesSubdomains else { return }
    if case .name(let name) = host {
      entry.pattern = .oneMoreLabel(name)
      entries.append(entry)
    } else {
      tell(.subdomainsOfAddress, at: ".NSIncludesSubdomains")
    }
  }

  private mutating func flag(_ value: PropertyListValue, _ key: String) -> Bool {
    if case .boolean(let flag) = value { return flag }
    tell(.notABoolean(found: value.kind), at: "." + key)
    return false
  }

  private mutating func identities(_ value: PropertyListValue, _ key: String) -> PinSet {
    guard case .array(let list) = value else {
      tell(.listNotAnArray(found: value.kind), at: "." + key)
      return PinSet()
    }
    if list.isEmpty { tell(.emptyList, at: "." + key) }
    var pins = PinSet()
    for (index, identity) in list.enumerated() {
      let place = ".\(key)[\(index)]"
      guard case .dictionary(let members) = identity,
        case .string(let text) = members["SPKI-SHA256-BASE64"]
      else {
        tell(.noDigest, at: place)
        continue
      }
      do throws(PinSyntaxError) { pins.insert(Pin(try SPKIPin(base64: text))) } catch {
        tell(.unreadableDigest(error), at: place)
      }
    }
    return pins
  }

  private mutating func tell(_ fault: NSPinnedDomainsProblem.Fault, at place: String = "") {
    problems.append(NSPinnedDomainsProblem(path + place, fault))
  }

  /// Escapes and shortens a key for messages, because keys come from a file.
  private static func shown(_ key: String) -> String {
    let text = key.unicodeScalars.prefix(80).map { $0.escaped(asASCII: true) }.joined()
    return key.unicodeScalars.count > 80 ? text + "…" : text
  }
}
