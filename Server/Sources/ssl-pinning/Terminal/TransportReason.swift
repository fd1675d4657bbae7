import Foundation

/// Puts into the tool's words what a transport says in its own, where a user can do something about
/// it. Everything else is passed on as it is.
enum TransportReason {
  /// - Parameters:
  ///   - text: libcurl's or OpenSSL's words.
  ///   - url: what was asked for.
  static func text(_ text: String, at url: String) -> String {
    if text.contains("wrong version number") || text.contains("packet length too long") {
      return "no TLS on \(endpoint(url)); hint: is the port right, and is it an https server?"
    }
    // libcurl refuses the next hop by its protocol: the first one is checked before it is asked.
    if text.hasPrefix("Protocol \""),
      text.contains("not supported") || text.contains("disabled")
    {
      let scheme =
        text.split(separator: "\"").dropFirst().first.map(String.init) ?? "another scheme"
      return "\(endpoint(url)) redirects to \(scheme); hint: redirects are followed to https only"
    }
    if text.contains("SSL certificate problem") {
      // For dates and names another CA is no cure.
      let lacksAnchor = ["local issuer", "self-signed", "self signed"].contains {
        text.contains($0)
      }
      return "\(endpoint(url)) is not trusted: \(text.lowercased())"
        + (lacksAnchor ? "; hint: --ca FILE names a CA of your own" : "")
    }
    // libcurl's sentences begin with a capital; an abbreviation stays.
    let second = text.dropFirst().first
    return second?.isLowercase == true ? text.prefix(1).lowercased() + text.dropFirst() : text
  }

  private static func endpoint(_ url: String) -> String {
    guard let parts = URLComponents(string: url), let host = parts.host else { return "the server" }
    return "\(host):\(parts.port ?? (parts.scheme?.lowercased() == "http" ? 80 : 443))"
  }
}
