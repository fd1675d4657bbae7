import RegistryServer

/// Which version of the tool this is.
enum Version {
  static let current = ServerVersion.current
}
