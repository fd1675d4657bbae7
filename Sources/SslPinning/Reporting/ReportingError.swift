import SslPinningPlatform

/// Why failures cannot be reported as configured.
public enum ReportingError: Error, Hashable, Sendable {
  /// No URL is given.
  case noURL
  /// Reports must survive a restart, and the client stores nothing.
  case noStorage
  /// A URL is not an absolute `https` URL, or has a user name in it. Counted from 0: its text may hold
  /// a key.
  case badURL(index: Int)
  /// A URL is `http` to another machine.
  case clearTextURL(index: Int)
}

extension ReportingError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noStorage: "reports have nowhere to be kept; hint: name a storage"
    case .noURL: "no report URL is given; hint: leave reporting out to send nothing"
    case .badURL(let index): "report URL \(index) cannot be used; hint: use https://host/path"
    case .clearTextURL(let index): "report URL \(index) is clear text; hint: use https"
    }
  }
}

extension ReportingConfig {
  /// The URLs, each once.
  ///
  /// - Throws: ``ReportingError``.
  func collectors() throws(ReportingError) -> [RegistryURL] {
    guard !urls.isEmpty else { throw .noURL }
    var collectors: [RegistryURL] = []
    for (index, text) in urls.enumerated() {
      do throws(RegistryURL.Fault) {
        let url = try RegistryURL(text)
        if !collectors.contains(url) { collectors.append(url) }
      } catch {
        throw error == .clearText ? .clearTextURL(index: index) : .badURL(index: index)
      }
    }
    return collectors
  }
}

extension ReportingError: ExplainedError {}
