/// A key that stands for a host.
struct ListedKey: Hashable, Sendable, CustomStringConvertible {
  var host: String
  /// In base64.
  var pin: String

  var description: String { "\(host) \(pin.prefix(8))" }
}
