import SslPinningRules

/// Whether a database is on this machine. A link that leaves it is read and changed by whoever stands between.
enum DatabaseHost {
  /// Whether a name or an address stays here: `localhost`, 127.0.0.0/8 and `::1`. Other names are looked up, and
  /// whoever answers says where they lead.
  static func isHere(_ host: String) -> Bool {
    guard case .address(let address)? = try? HostName(host) else { return host == "localhost" }
    let bytes = address.bytes
    return bytes.count == 4
      ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
  }
}
