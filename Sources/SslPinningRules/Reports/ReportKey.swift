/// What makes two failures the same one: the same rule failed for the same host and port, the server
/// showed the same key, and it had the same consequence.
package struct ReportKey: Hashable, Sendable {
  package let host: String
  let port: Int?
  let rule: String
  let leaf: SPKIPin?
  let isRefused: Bool

  /// The key as one line, for the disk.
  package var text: String {
    let port = port.map(String.init) ?? "-"
    return "\(host) \(port) \(rule) \(leaf?.base64 ?? "-") \(isRefused ? "refused" : "accepted")"
  }
}
