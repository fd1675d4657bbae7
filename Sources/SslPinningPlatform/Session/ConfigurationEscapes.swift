import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A copy of an app's configuration with the ways past the pins closed. All else is carried over, settings that
/// this version has never heard of included: proxies and relays, DNSSEC, multipath, the limits on dear networks.
///
/// - No cache: an unpinned session may have filled the app's.
/// - The app's protocol classes are left out: they would carry requests past the pins.
///
/// On Apple's systems alone; on Linux a configuration is a class of ours.
package enum ConfigurationEscapes {
  /// - Parameters:
  ///   - refusing: our classes that refuse requests, asked before all others.
  ///   - fresh: the classes of a fresh configuration, each with the file that its code lies in. The system's own
  ///     stand behind ours, or nobody would load `https` if the list is all that is asked; one that a
  ///     debugging tool has put there is left out.
  /// - Returns: `nil` if the system makes no copy.
  package static func closed(
    _ other: URLSessionConfiguration, refusing: [AnyClass],
    fresh: [(type: AnyClass, image: String?)]
  ) -> URLSessionConfiguration? {
    guard let copy = other.copy() as? URLSessionConfiguration else { return nil }
    copy.urlCache = nil
    copy.requestCachePolicy = .reloadIgnoringLocalCacheData
    copy.protocolClasses = refusing + fresh.filter { isSystem($0.image) }.map(\.type)
    return copy
  }

  /// Whether a file of code is the system's: below `/System/Library`, in a simulator's copy of it, too.
  private static func isSystem(_ image: String?) -> Bool {
    let folders = (image ?? "").split(separator: "/")
    return zip(folders, folders.dropFirst()).contains { $0 == "System" && $1 == "Library" }
  }
}
