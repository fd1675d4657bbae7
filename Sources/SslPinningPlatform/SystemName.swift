import Foundation

#if os(Linux)
  import CSslPinningShims
#endif

/// What failure reports call this system, in TrustKit's words where it has one.
package enum SystemName {
  /// `IOS`, `TVOS`, `WATCHOS`, `MACOS`, or `LINUX`, which TrustKit does not know.
  package static let platform: String = {
    #if os(tvOS)
      "TVOS"
    #elseif os(watchOS)
      "WATCHOS"
    #elseif os(iOS) || os(visionOS)
      "IOS"
    #elseif os(macOS)
      "MACOS"
    #else
      "LINUX"
    #endif
  }()

  /// The system's version in three numbers; on Linux the kernel's.
  package static var version: String {
    let version = ProcessInfo.processInfo.operatingSystemVersion
    return "\(version.majorVersion).\(version.minorVersion).\(version.patchVersion)"
  }
}

/// Whether the kernel calls the machine's clock synchronised (adjtimex(2)): a time daemon keeps it, and did
/// so within the last hours. Setting the clock by hand ends that until the daemon has put it right.
///
/// - False if nobody keeps the clock, if a sandbox hides it, and on Apple's systems, where no server runs.
package func isClockSynchronized() -> Bool {
  #if os(Linux)
    pp_is_clock_synchronized()
  #else
    false
  #endif
}
