/// Where a value of the configuration was set.
public enum ConfigurationOrigin: Sendable, Hashable {
  /// Nowhere: it is the default.
  case standard
  /// In the file, on this line, counted from 1.
  case file(line: Int)
  /// In an environment variable.
  case environment(name: String)
  /// By a flag of the command line, such as `--log-level`.
  case flag(name: String)

  /// The line, where it is in the file.
  var line: Int? {
    if case .file(let line) = self { line } else { nil }
  }
}

extension ConfigurationOrigin: CustomStringConvertible {
  public var description: String {
    switch self {
    case .standard: "default"
    case .file(let line): "line \(line)"
    case .environment(let name), .flag(let name): name
    }
  }
}
