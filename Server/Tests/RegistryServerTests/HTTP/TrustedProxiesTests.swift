import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Who called, behind proxies that are trusted") struct TrustedProxiesTests {
  private static let rows: [(peer: String, forwarded: String?, client: String)] = [
    // Nobody to believe.
    ("203.0.113.1", "198.51.100.7", "203.0.113.1"),
    ("203.0.113.1", nil, "203.0.113.1"),
    ("2001:db8:9::1", "198.51.100.7", "2001:db8:9::1"),
    // One proxy.
    ("127.0.0.1", "198.51.100.7", "198.51.100.7"),
    ("127.0.0.1", " 198.51.100.7 ", "198.51.100.7"),
    ("127.0.0.1", "2001:db8:1::7", "2001:db8:1::7"),
    ("10.1.2.3", "198.51.100.7", "198.51.100.7"),
    ("fd00::3", "198.51.100.7", "198.51.100.7"),
    ("::ffff:10.1.2.3", "198.51.100.7", "198.51.100.7"),
    // What the client wrote itself stands left of what the proxy added.
    ("127.0.0.1", "192.0.2.66, 198.51.100.7", "198.51.100.7"),
    ("127.0.0.1", "127.0.0.1, 198.51.100.7", "198.51.100.7"),
    // Several proxies in a row, the last of them the peer.
    ("127.0.0.1", "198.51.100.7, 10.0.0.1, 10.0.0.2", "198.51.100.7"),
    ("127.0.0.1", "192.0.2.66, 198.51.100.7,10.0.0.1", "198.51.100.7"),
    ("127.0.0.1", "10.0.0.1, 10.0.0.2", "10.0.0.1"),
    // Ports.
    ("127.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
    ("127.0.0.1", "[2001:db8:1::7]:4711", "2001:db8:1::7"),
    ("127.0.0.1", "[2001:db8:1::7]", "2001:db8:1::7"),
    // What is no address ends the walk where it stands.
    ("127.0.0.1", nil, "127.0.0.1"), ("127.0.0.1", "", "127.0.0.1"),
    ("127.0.0.1", "unknown", "127.0.0.1"), ("127.0.0.1", "_hidden, ", "127.0.0.1"),
    ("127.0.0.1", "198.51.100.7, nonsense, 10.0.0.1", "10.0.0.1"),
    ("127.0.0.1", "198.51.100.7, , 10.0.0.1", "10.0.0.1"),
    ("127.0.0.1", "198.51.100.7:", "127.0.0.1"), ("127.0.0.1", "198.51.100.7:123456", "127.0.0.1"),
    ("127.0.0.1", "[198.51.100.7]", "127.0.0.1"), ("127.0.0.1", "[2001:db8::1", "127.0.0.1"),
    ("127.0.0.1", "198.51.100.007", "127.0.0.1"), ("127.0.0.1", "198.51.100", "127.0.0.1"),
    ("127.0.0.1", "fe80::1%eth0", "127.0.0.1"), ("127.0.0.1", "\"198.51.100.7\"", "127.0.0.1"),
  ]

  private static func proxies(_ networks: String...) throws -> TrustedProxies {
    TrustedProxies(networks: try networks.map { try AddressNetwork($0) })
  }

  @Test("the field is read from the right, as long as whoever wrote it is trusted", arguments: rows)
  func client(_ row: (peer: String, forwarded: String?, client: String)) throws {
    let proxies = try Self.proxies("127.0.0.1", "10.0.0.0/8", "fd00::/16")
    #expect(proxies.client(row.peer, forwarded: row.forwarded) == row.client)
  }

  @Test("where none is named, nobody is believed")
  func none() {
    #expect(TrustedProxies().client("127.0.0.1", forwarded: "198.51.100.7") == "127.0.0.1")
  }

  @Test(
    "a network has the addresses that begin like it, and no others",
    arguments: [
      ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.0", false),
      ("192.0.2.128/25", "192.0.2.128", true), ("192.0.2.128/25", "192.0.2.127", false),
      ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.8", false),
      ("192.0.2.7/32", "192.0.2.7", true), ("200.0.0.0/8", "200.1.1.1", true),
      ("2001:db8::/33", "2001:db8:7fff::1", true), ("2001:db8::/33", "2001:db8:8000::", false),
      ("::1", "::1", true), ("::1", "::2", false), ("fc00::/7", "192.0.2.1", false),
      ("10.0.0.0/8", "::1", false), ("::ffff:10.0.0.1", "10.0.0.1", true),
      ("10.0.0.1", "::ffff:10.0.0.1", true), ("10.0.0.0/8", "nonsense", false),
    ])
  func networks(_ network: String, _ address: String, _ isIn: Bool) throws {
    #expect(try Self.proxies(network).contains(address) == isIn)
  }

  @Test(
    "what is no network is refused",
    arguments: [
      "", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8",
      "10.0.0/8", "proxy.example.com", "::/129", "::ffff:10.0.0.0/104", "10.0.0.0/0008",
      "10.0.0.0 /8",
    ])
  func unreadable(_ text: String) {
    #expect(throws: AddressNetwork.Fault.unreadable) { try AddressNetwork(text) }
  }

  @Test("an address within a network is told the network, and everybody is no proxy")
  func mistakes() throws {
    #expect(throws: AddressNetwork.Fault.insideOf(try AddressNetwork("10.0.0.0/8"))) {
      try AddressNetwork("10.1.2.3/8")
    }
    for text in ["0.0.0.0/0", "::/0"] {
      #expect(throws: AddressNetwork.Fault.everything) { try AddressNetwork(text) }
    }
  }
}
