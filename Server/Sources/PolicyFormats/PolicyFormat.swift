import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// The formats in which the field writes pins down.
public enum PolicyFormat: String, Hashable, Sendable, CaseIterable {
  /// Apple's `NSPinnedDomains`, in an Info.plist or alone.
  case nsPinnedDomains = "nspinneddomains"
  /// Android's `network_security_config.xml`.
  case android
  /// TrustKit's dictionary as a property list, alone or under `TSKConfiguration`.
  case trustKit = "trustkit"
  /// The same dictionary as Swift; written only.
  case trustKitSwift = "trustkit-swift"
  /// OkHttp's `CertificatePinner`, as Kotlin; written only.
  case okHttp = "okhttp"
  /// Options of curl, a file to each set of pins; written only.
  case curl
  /// A registry of this project: signed, or its payload alone.
  case registry

  /// What messages call it.
  public var title: String {
    switch self {
    case .nsPinnedDomains: "NSPinnedDomains"
    case .android: "network security config"
    case .trustKit: "TrustKit configuration"
    case .trustKitSwift: "TrustKit configuration in Swift"
    case .okHttp: "OkHttp pinner"
    case .curl: "curl configuration"
    case .registry: "registry"
    }
  }

  /// The formats that ``PinPolicy/init(reading:)`` reads.
  public static let readable: [PolicyFormat] = [.nsPinnedDomains, .android, .trustKit, .registry]
  /// The formats that ``PinPolicy/written(as:)`` writes.
  public static let writable: [PolicyFormat] = [
    .nsPinnedDomains, .android, .trustKit, .trustKitSwift, .okHttp, .curl,
  ]
}

extension PinPolicy {
  /// The most bytes of a policy: 4 MiB.
  public static let maximumBytes = 4 << 20

  /// Reads a policy of any readable format; which one is found out from its contents.
  ///
  /// A registry's signature is not looked at: whoever needs it checks the document before.
  ///
  /// - Parameter format: the one that it must be, if that is known: an Info.plist may hold two.
  /// - Throws: ``PolicyFormatError``.
  public init(
    reading bytes: [UInt8], as format: PolicyFormat? = nil
  ) throws(PolicyFormatError) {
    guard bytes.count <= Self.maximumBytes else { throw .tooLarge(limit: Self.maximumBytes) }
    let text = bytes.drop { $0 <= 0x20 || [0xEF, 0xBB, 0xBF].contains($0) }
    if text.first == UInt8(ascii: "{"), format == nil || format == .registry {
      self = try PayloadReader.policy(of: bytes)
    } else if format == .android || (format == nil && Self.isAndroid(text)) {
      self = try AndroidReader.policy(of: bytes)
    } else {
      self = try Self.propertyList(bytes, as: format)
    }
  }

  private static func isAndroid(_ text: ArraySlice<UInt8>) -> Bool {
    // The root element follows comments and a declaration; a property list names itself there.
    let head = String(decoding: text.prefix(64 << 10), as: UTF8.self)
    return head.hasPrefix("<") && head.contains("<network-security-config")
  }

  private static func propertyList(
    _ bytes: [UInt8], as format: PolicyFormat?
  ) throws(PolicyFormatError) -> PinPolicy {
    let root: PropertyListValue
    do throws(PropertyListError) { root = try PropertyListReader.value(of: bytes) } catch {
      guard let format else { throw .unknownFormat }
      throw .malformed(format, reason: "\(error)")
    }
    guard case .dictionary(let members) = root else {
      throw .malformed(format ?? .nsPinnedDomains, reason: "\(root.kind) at its root")
    }
    let hasTrustKit = TrustKitReader.configuration(in: members) != nil
    let hasApple = NSPinnedDomainsReader.domains(in: members) != nil
    switch format {
    case .trustKit: return try TrustKitReader.policy(of: members)
    case .nsPinnedDomains: return try NSPinnedDomainsReader.policy(of: members)
    case nil where hasTrustKit && hasApple:
      throw .malformed(
        .nsPinnedDomains,
        reason: "TSKConfiguration stands beside it; hint: --from says which one is meant")
    case nil where hasTrustKit: return try TrustKitReader.policy(of: members)
    case nil: return try NSPinnedDomainsReader.policy(of: members)
    default: throw .unknownFormat
    }
  }
}

/// Reads a registry's payload as people write it for `sign`.
///
/// - A signed document is refused here: whether it is to be believed is for ``TrustedRegistry`` to say.
enum PayloadReader {
  static func policy(of bytes: [UInt8]) throws(PolicyFormatError) -> PinPolicy {
    let payload: JSONView
    do throws(JSONError) { payload = try JSONView(parsing: bytes) } catch {
      throw .malformed(.registry, reason: "\(error)")
    }
    guard payload.isObject else { throw .malformed(.registry, reason: "no object") }
    guard payload["payload"] == nil, payload["statement"] == nil else {
      throw .malformed(
        .registry, reason: "it is signed; hint: --registry, and --key to check it by")
    }
    guard payload["keys"]?.arrayValue != nil else { throw .noPins(.registry, wanted: "keys") }
    do throws(RegistryError) {
      let registry = try Registry(format1: payload)
      return PinPolicy(registry, entries: registry.policyEntries)
    } catch { throw .malformed(.registry, reason: "\(error)") }
  }
}

extension PinPolicy {
  /// A verified registry.
  public init(_ trusted: TrustedRegistry) {
    self.init(
      trusted.registry, entries: trusted.policyEntries, denied: Set(trusted.statement?.denied ?? [])
    )
  }

  init(_ registry: Registry, entries: [PolicyEntry], denied: Set<SPKIPin> = []) {
    self.init(
      format: .registry, rules: entries.map { HostRule($0) }, overlap: .united, denied: denied,
      remarks: registry.problems.map { PolicyRemark(.unclear, "", "\($0)") } + registry.repeated)
  }
}

extension Registry {
  /// Entries that stand there twice.
  fileprivate var repeated: [PolicyRemark] {
    var seen: [HostPattern: Set<SPKIPin>] = [:]
    return keys.compactMap { key in
      guard let pin = try? key.pin.get(), !seen[key.pattern, default: []].insert(pin).inserted
      else {
        return nil
      }
      return PolicyRemark(.duplicate, "\(key.pattern)", "has the same pin twice")
    }
  }
}
