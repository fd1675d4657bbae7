import Foundation

/// How many files and sockets this process may open.
enum DescriptorLimit {
  /// Raises the limit to the hard one that the system allows.
  ///
  /// The usual soft limit of 1024 is below what clients alone may take of the server
  /// (``HTTPLimits/connections``): whoever opens as many idle connections would leave none to probe
  /// endpoints with, and a key that changes meanwhile would not be published.
  static func raise() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    // Not without end: libraries allocate tables by it.
    let wanted = min(limit.rlim_max, 65_536)
    guard limit.rlim_cur < wanted else { return }
    limit.rlim_cur = wanted
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
