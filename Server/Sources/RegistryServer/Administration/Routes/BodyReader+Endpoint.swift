import RegistryCore
import SslPinningRules

extension BodyReader {
  /// How many patterns one endpoint may have.
  private static let mostPatterns = 64

  /// Within how many milliseconds a changed key is to be published.
  func interval() throws(APIError) -> Int64? {
    try duration("interval", in: 1000...86_400_000)
  }

  /// The endpoint that the body describes.
  func endpoint() throws(APIError) -> WatchedEndpoint {
    guard let text = try string("fqdn") else { throw .missing("fqdn") }
    let fqdn: HostName
    do throws(HostNameError) { fqdn = try HostName(text) } catch {
      throw APIError(400, describing: "fqdn: \(error)")
    }
    var address: IPAddress?
    if let text = try string("address") {
      guard case .address(let value)? = try? HostName(text) else {
        throw .badRequest(
          "address: \"\(text)\" is no IP address", hint: "leave it out to resolve the name")
      }
      address = value
    }
    let port = try integer("port", in: 1...65_535) ?? 443
    return WatchedEndpoint(
      fqdn: fqdn, port: UInt16(clamping: port), address: address, patterns: try patterns(),
      interval: try interval(), approval: try choice("approval", ApprovalMode.self))
  }

  private func patterns() throws(APIError) -> [HostPattern]? {
    guard let texts = try strings("patterns") else { return nil }
    guard (1...Self.mostPatterns).contains(texts.count) else {
      throw .badRequest("patterns has \(texts.count) elements", hint: "1 to \(Self.mostPatterns)")
    }
    var patterns: [HostPattern] = []
    for text in texts {
      let pattern: HostPattern
      do throws(HostNameError) { pattern = try HostPattern(text) } catch {
        throw APIError(400, describing: "patterns: \(error)")
      }
      guard !patterns.contains(pattern) else {
        throw .badRequest("patterns: \(pattern) stands twice")
      }
      patterns.append(pattern)
    }
    return patterns
  }
}
