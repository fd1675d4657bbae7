/// Why a property list has no `NSPinnedDomains` to go by.
public enum NSPinnedDomainsError: Error, Hashable, Sendable {
  /// Nothing stands under this key.
  case missing(path: String)
  /// Something else than a dictionary stands under this key.
  case notADictionary(path: String, found: String)
}

extension NSPinnedDomainsError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .missing(let path):
      "no \(path); hint: NSPinnedDomains stands under NSAppTransportSecurity"
    case .notADictionary(let path, let found):
      "\(found) where \(path.isEmpty ? "the property list's" : path + "'s") dictionary belongs"
    }
  }
}
