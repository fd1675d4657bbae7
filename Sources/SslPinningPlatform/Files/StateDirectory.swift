import Foundation

/// Where a system wants programs to keep what they must remember.
package enum StateDirectory {
  /// The path of an app's own directory, which need not exist yet; `nil` where the system names no
  /// home for this process.
  ///
  /// - Linux: `$XDG_STATE_HOME`, if that is an absolute path, or `~/.local/state` (XDG Base Directory
  ///   Specification).
  /// - Apple platforms: Application Support; on tvOS, where nothing else may be written, Caches,
  ///   which the system may empty.
  ///
  /// - Parameter app: such as the bundle identifier; becomes one component of the path, and what
  ///   could lead elsewhere becomes `_`.
  package static func standard(
    app: String, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> String? {
    home(environment).map { $0 + "/" + component(app) }
  }

  private static func component(_ app: String) -> String {
    let kept = app.utf8.prefix(200).enumerated().map { index, byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        byte
      case UInt8(ascii: ".") where index > 0: byte
      default: UInt8(ascii: "_")
      }
    }
    return kept.isEmpty ? "_" : String(decoding: kept, as: UTF8.self)
  }

  private static func home(_ environment: [String: String]) -> String? {
    #if os(tvOS)
      FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first?.path
    #elseif canImport(Security)
      FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first?.path
    #else
      if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
        state
      } else if let home = environment["HOME"], home.hasPrefix("/") {
        home + "/.local/state"
      } else {
        nil
      }
    #endif
  }
}
