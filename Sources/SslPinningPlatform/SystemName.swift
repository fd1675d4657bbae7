import Foundation

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
