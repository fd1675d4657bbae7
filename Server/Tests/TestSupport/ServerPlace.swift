/// Where in the network a server of a test lives.
public struct ServerPlace: Sendable {
  /// The network namespace, by its name in `ip netns`; `nil`: that of the test.
  public var namespace: String?
  /// The numeric addresses that it listens on; the test asks at the first.
  public var addresses: [String]

  public init(namespace: String? = nil, addresses: [String] = ["127.0.0.1"]) {
    (self.namespace, self.addresses) = (namespace, addresses)
  }
}
