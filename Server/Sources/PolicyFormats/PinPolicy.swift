import SslPinningPlatform
import SslPinningRules

/// A pin list as one format states it, in the terms of this project.
///
/// - A format that does not tell leaf from CA lets a pin match any certificate of the validated path. Such a pin
///   stands in both lists of its entry, with match any: that says the same.
/// - Formats differ in what happens if several entries cover a host (``Overlap``), and in what happens when a
///   list ends (``HostRule/unpinnedFrom``). Both are kept, so that ``entry(for:at:)`` answers as the format's
///   own clients would.
public struct PinPolicy: Hashable, Sendable {
  /// What counts if several entries cover a host.
  public enum Overlap: Hashable, Sendable {
    /// All of them: registries, `NSPinnedDomains`, OkHttp.
    case united
    /// The one that names the host most closely: Android, TrustKit.
    case mostSpecific
  }

  /// The format that it was read from.
  public let format: PolicyFormat
  /// Its entries, in the order of the source.
  public let rules: [HostRule]
  /// What counts if several entries cover a host.
  public let overlap: Overlap
  /// Pins that refuse a connection wherever they stand in its path.
  public let denied: Set<SPKIPin>
  /// The CAs that clients trust for hosts without an entry.
  public let anchors: AnchorSources
  /// What in the source does not do what it seems to.
  public let remarks: [PolicyRemark]

  /// A policy.
  public init(
    format: PolicyFormat, rules: [HostRule], overlap: Overlap, denied: Set<SPKIPin> = [],
    anchors: AnchorSources = .system, remarks: [PolicyRemark] = []
  ) {
    self.format = format
    self.rules = rules
    self.overlap = overlap
    self.denied = denied
    self.anchors = anchors
    self.remarks = remarks
  }

  /// What the format's clients demand of a host; `nil` if they do not pin it.
  ///
  /// - Parameter time: Unix seconds; `nil` leaves aside that a list ends.
  public func entry(for host: HostName, at time: Int64? = nil) -> PolicyEntry? {
    let matching = rules.filter { $0.entry.pattern.matches(host) }
    switch overlap {
    case .united:
      guard let first = matching.first else { return nil }
      return matching.dropFirst().reduce(first.entry) { $0.united(with: $1.entry) }
    case .mostSpecific:
      guard let rule = closest(to: host), !rule.isExempt else { return nil }
      if let end = rule.unpinnedFrom, let time, time >= end { return nil }
      return rule.entry
    }
  }

  /// The CAs that the format's clients trust for a host.
  public func anchors(for host: HostName) -> AnchorSources { closest(to: host)?.anchors ?? anchors }

  /// The entry that names a host most closely, pinned or not.
  private func closest(to host: HostName) -> HostRule? {
    rules.filter { $0.entry.pattern.matches(host) }.max { $0.specificity < $1.specificity }
  }
}

/// One entry of a policy.
public struct HostRule: Hashable, Sendable {
  /// The hosts, and what they must show.
  public let entry: PolicyEntry
  /// Unix seconds from which the format's clients pin these hosts no longer: what Android and TrustKit call
  /// expiration opens the door, where the expiry of a registry's pin closes it.
  public let unpinnedFrom: Int64?
  /// Whether these hosts are taken out of a wider entry and are not pinned.
  public let isExempt: Bool
  /// The CAs that clients trust for these hosts.
  public let anchors: AnchorSources

  /// An entry.
  public init(
    _ entry: PolicyEntry, unpinnedFrom: Int64? = nil, isExempt: Bool = false,
    anchors: AnchorSources = .system
  ) {
    self.entry = entry
    self.unpinnedFrom = unpinnedFrom
    self.isExempt = isExempt
    self.anchors = anchors
  }

  /// The same hosts, of which something else is demanded.
  func demanding(_ entry: PolicyEntry) -> HostRule {
    HostRule(entry, unpinnedFrom: unpinnedFrom, isExempt: isExempt, anchors: anchors)
  }

  /// An exact name before all others, then the longer name.
  fileprivate var specificity: Int {
    switch entry.pattern {
    case .exact: .max
    case .oneMoreLabel(let base): 2 * base.bytes.count + 1
    case .anyDepth(let base): 2 * base.bytes.count
    }
  }
}

/// The CAs that clients trust, as a list names them. All formats but Android's go by the system's.
public struct AnchorSources: Hashable, Sendable {
  /// The system's alone.
  public static let system = AnchorSources(["system"])

  /// Such as `system`, `user`, `@raw/own_ca`.
  let names: [String]

  init(_ names: [String]) { self.names = names }

  /// Whether a chain under the system's CAs is valid to these clients.
  public var includesSystem: Bool { names.contains("system") }

  /// Whether clients trust no CA, and refuse every server.
  public var isEmpty: Bool { names.isEmpty }

  /// Whether a file of the app has some of them.
  var hasOwn: Bool { names.contains { $0.hasPrefix("@") } }

  /// How to judge servers by them, if a file can have them; empty otherwise.
  public var hint: String { hasOwn ? "; hint: --ca FILE names them" : "" }

  /// What is other than with the system's CAs alone; `nil` if nothing is.
  public var difference: String? {
    let others = names.filter { $0 != "system" }.map(\.shown)
    guard !others.isEmpty else { return includesSystem ? nil : "clients trust no CA" }
    return "clients trust the CAs of \(others.joined(separator: ", ")), "
      + (includesSystem ? "beside the system's" : "and not the system's")
  }
}

/// Something in a policy that is not as it seems, or that a format cannot say.
public struct PolicyRemark: Hashable, Sendable {
  /// What it is about.
  public enum Kind: Hashable, Sendable {
    /// Something that nothing reads, that reads as something else, or that nobody could find out.
    case unclear
    /// Something for which the format's clients refuse the whole list, or the app does not start.
    case refused
    /// A host that is not pinned although it seems to be.
    case unpinned
    /// Hosts that are not always pinned in an app for macOS, of a list that does not say whether it is for one.
    case unpinnedOnMacOS
    /// One pin twice, which looks like a backup and is none.
    case duplicate
    /// What another format cannot say.
    case loss
    /// What another format cannot say, and refuses.
    case stricter
  }

  /// What it is about.
  public let kind: Kind
  /// The host or pattern; empty if it is about the whole.
  public let host: String
  /// What is so.
  public let text: String

  /// A remark.
  public init(_ kind: Kind, _ host: String, _ text: String) {
    self.kind = kind
    self.host = host
    self.text = text
  }

  init(_ host: String, _ text: String) { self.init(.loss, host, text) }
}

extension PolicyRemark: CustomStringConvertible {
  public var description: String { host.isEmpty ? text : "\(host): \(text)" }
}

/// Why a text is no policy.
public enum PolicyFormatError: Error, Hashable, Sendable {
  /// None of the formats.
  case unknownFormat
  /// More bytes than this.
  case tooLarge(limit: Int)
  /// Of the format by its first bytes, and broken; the reason.
  case malformed(PolicyFormat, reason: String)
  /// Readable, without a place for pins; which one was looked for.
  case noPins(PolicyFormat, wanted: String)
}

extension PolicyFormatError: ExplainedError {
  public var description: String {
    switch self {
    case .unknownFormat:
      "no format that is known; hint: an Info.plist, a TrustKit dictionary, Android's network_security_config.xml,"
        + " or a registry"
    case .tooLarge(let limit): "more than \(limit) bytes"
    case .malformed(let format, let reason): "not readable as \(format.title): \(reason)"
    case .noPins(let format, let wanted): "no \(wanted) in this \(format.title)"
    }
  }
}
