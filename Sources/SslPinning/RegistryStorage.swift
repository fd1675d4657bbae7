import Foundation
import SslPinningPlatform

/// Where a client keeps the last good registry, to start from after a restart.
///
/// What is stored is verified again when it is read: no file is trusted for being there.
public enum RegistryStorage: Hashable, Sendable {
  /// Application Support on Apple's systems, excluded from backup; on Linux the directory
  /// `$XDG_STATE_HOME`, or `~/.local/state` (XDG Base Directory Specification).
  ///
  /// - Warning: a process without `HOME` and `XDG_STATE_HOME`, such as a service or a cron job, has no
  ///   such place: nothing is kept then, as with ``none``, and the client says so
  ///   (``PinningEvent/registryNotStored(reason:)``, ``RegistryStatus/storage-swift.property``). Name a
  ///   ``directory(_:)`` there.
  case standard
  /// This directory, by a file URL; made if it is missing. By another URL nothing is kept.
  case directory(URL)
  /// Nowhere.
  ///
  /// - Warning: every start is then a first start, which can be fed an old registry, and needs the
  ///   network or a bundled one.
  case none
}

extension RegistryStorage {
  /// The directory; `nil` for nowhere, for a URL of no file, and if the system names no home for this process.
  var path: String? {
    switch self {
    case .none: return nil
    case .directory(let url): return url.isFileURL ? url.path : nil
    case .standard:
      let app = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
      return StateDirectory.standard(app: app).map { "\($0)/SslPinning" }
    }
  }

  /// Why there is no ``path``, unless the app chose none.
  var whyNowhere: String {
    if case .directory = self { return "the storage's URL is no file URL" }
    return "the system names no home for this process"
  }
}
