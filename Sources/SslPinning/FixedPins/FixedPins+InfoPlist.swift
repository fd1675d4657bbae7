import Foundation
import SslPinningPlatform
import SslPinningRules

extension FixedPins {
  /// The pins of a bundle's Info.plist, by the rules of Apple's `NSPinnedDomains`: the app's own by default.
  ///
  /// Hosts without an entry are left to the system's trust, as Apple's rules have it: pins tighten
  /// and never loosen. Pass ``SslPinningRules/UnlistedHosts/refuse`` to close that door too.
  ///
  /// - Note: on Apple platforms the system itself enforces `NSPinnedDomains` as well.
  /// - Throws: ``FixedPinsError``. What is wrong with single domains is told in ``problems``.
  public static func infoPlist(
    of bundle: Bundle = .main, trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .systemTrust
  ) throws(FixedPinsError) -> FixedPins {
    guard let members = bundle.infoDictionary, !members.isEmpty else {
      throw .noInfoPlist(bundle: bundle.bundlePath)
    }
    let root: PropertyListValue
    do throws(PropertyListError) { root = try PropertyListReader.value(of: members) } catch {
      throw .badPropertyList(error)
    }
    return try FixedPins(infoPlist: root, trust: trust, unlistedHosts: unlistedHosts)
  }

  /// The pins of an Info.plist at hand, XML or binary.
  ///
  /// - Parameters:
  ///   - url: a file URL.
  ///   - trust: who vouches for servers before their pins are looked at.
  ///   - unlistedHosts: what happens to hosts without an entry.
  /// - Throws: ``FixedPinsError``.
  public static func infoPlist(
    at url: URL, trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .systemTrust
  ) throws(FixedPinsError) -> FixedPins {
    let root: PropertyListValue
    do throws(PropertyListError) { root = try PropertyListReader.read(url) } catch {
      throw .badPropertyList(error)
    }
    return try FixedPins(infoPlist: root, trust: trust, unlistedHosts: unlistedHosts)
  }

  private init(
    infoPlist root: PropertyListValue, trust: TrustMode, unlistedHosts: UnlistedHosts
  ) throws(FixedPinsError) {
    let domains: NSPinnedDomains
    do throws(NSPinnedDomainsError) { domains = try NSPinnedDomains(infoPlist: root) } catch {
      throw .noPinnedDomains(error)
    }
    // A session that pins nothing and leaves every host to the system would only look pinned.
    guard !domains.entries.isEmpty else { throw .nothingPinned(domains.problems) }
    self.init(
      entries: domains.entries, trust: trust, unlistedHosts: unlistedHosts,
      problems: domains.problems)
  }
}
