import SslPinningPlatform
import SslPinningRules

/// The hosts that a client itself asks outside of all pins, as it must: a registry is never fetched under the pins that
/// it refreshes, and a pin that fails is to be reported.
///
/// A man in the middle whose CA the device trusts can be met there. Where a host is listed as well, and the system
/// resumes TLS sessions across the sessions of a process, a pinned session may go on from that meeting.
enum UnpinnedHosts {
  /// Those of the URLs' hosts that are listed, each once. Clear text, which goes to this machine alone, makes no TLS
  /// session.
  static func listed(among urls: [String], by lists: (HostName) -> Bool) -> [HostName] {
    var found: [HostName] = []
    for text in urls {
      guard let url = try? RegistryURL(text), !url.isClearText, let host = try? HostName(url.host),
        lists(host), !found.contains(host)
      else { continue }
      found.append(host)
    }
    return found
  }
}
