import SslPinningRules
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("A vantage point may be asked for what is enrolled, and dials the open internet")
struct VantageRulesTests {
  private static func rules(_ networks: String...) throws -> VantageRules {
    VantageRules(targets: [], networks: try networks.map { try AddressNetwork($0) })
  }

  private static func address(_ text: String) throws -> IPAddress {
    guard case .address(let address) = try HostName(text) else { throw HostNameError.empty }
    return address
  }

  @Test(
    "an address of the open internet is dialled",
    arguments: [
      "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
      "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0",
      "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
      "223.255.255.255", "2001:200::1", "2606:4700::1111", "2a00::1", "2003::1", "3ffe::1",
    ])
  func open(_ text: String) throws {
    #expect(try Self.rules().permits(Self.address(text)))
  }

  @Test(
    "none that is private, of this machine or link, shared, reserved, multicast, or hides one of IPv4",
    arguments: [
      "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255",
      "127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.0", "172.31.255.255",
      "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1",
      "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.255",
      "240.0.0.1", "255.255.255.255",
      "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:1.1.1.1", "64:ff9b::a00:1",
      "64:ff9b::101:101", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::1",
      "2001:10::1", "2001:1ff::1", "2001:db8::1", "2002:7f00:1::1", "3fff::1", "5f00::1",
      "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1",
    ])
  func closed(_ text: String) throws {
    #expect(try !Self.rules().permits(Self.address(text)))
  }

  @Test("a network that is named is dialled, and none beside it")
  func named() throws {
    let rules = try Self.rules("10.1.0.0/16", "::1", "fd00:1::/32")
    for text in ["10.1.2.3", "::1", "fd00:1::7", "1.1.1.1"] {
      #expect(try rules.permits(Self.address(text)), "\(text)")
    }
    for text in ["10.2.0.1", "127.0.0.1", "::2", "fd00:2::7", "::ffff:10.1.2.3"] {
      #expect(try !rules.permits(Self.address(text)), "\(text)")
    }
  }

  @Test("behind a NAT64 network that is named, the IPv4 address counts")
  func nat64() throws {
    let rules = try Self.rules("64:ff9b::/96")
    #expect(try rules.permits(Self.address("64:ff9b::1.1.1.1")))
    for text in ["64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::1.1.1.1"] {
      #expect(try !rules.permits(Self.address(text)), "\(text)")
    }
  }

  @Test(
    "hosts are read with their ports",
    arguments: [
      ("www.example.com", "www.example.com:443"), ("WWW.Example.com.", "www.example.com:443"),
      ("www.example.com:8443", "www.example.com:8443"), ("192.0.2.7:1", "192.0.2.7:1"),
      ("[2001:db8::7]:65535", "[2001:db8::7]:65535"), ("[2001:db8::7]", "[2001:db8::7]:443"),
      ("2001:db8::7", "[2001:db8::7]:443"),
    ])
  func targets(_ text: String, _ meant: String) {
    #expect(VantageTarget(text).map { "\($0)" } == meant)
  }

  @Test(
    "and nothing else is one",
    arguments: [
      "", ":443", "a.example:", "a.example:0", "a.example:00443", "a.example:+443",
      "a.example:65536", "a.example:443:443", "*.example.com", "**.example.com", "user@a.example",
      "https://a.example", "a.example/", "127.1", "0x7f.0.0.1", "0177.0.0.1", "[::1", "::1]",
      "[a.example]:443", "a b:443", "a.example :443", "fe80::1%eth0",
    ])
  func noTargets(_ text: String) { #expect(VantageTarget(text) == nil) }
}

@Suite("A vantage point reads CONNECT and nothing else") struct TunnelRequestTests {
  private static func read(_ text: String) -> Result<String?, TunnelRefusal> {
    do throws(TunnelRefusal) {
      return .success(try TunnelRequest.read(Array(text.utf8)).map { "\($0.target)" })
    } catch { return .failure(error) }
  }

  @Test(
    "as registries send it, and with fields that mean nothing here",
    arguments: [
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nhost:a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nUser-Agent: curl/8\r\nHost: a.example:443\r\nX:\r\n\r\n",
    ])
  func taken(_ text: String) { #expect(Self.read(text) == .success("a.example:443")) }

  @Test("one of the host's addresses may be asked for, as an address and once")
  func address() throws {
    func read(_ fields: String) throws -> IPAddress? {
      try TunnelRequest.read(
        Array("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\(fields)\r\n".utf8))?
        .address
    }
    #expect(try read("") == nil)
    #expect(
      try read("SSL-Pinning-Address: 192.0.2.7\r\n") == IPAddress(bytes: [192, 0, 2, 7]))
    let one = "ssl-pinning-address: 2001:db8::1\r\n"
    #expect(try read(one)?.bytes.count == 16)
    for fields in [one + one, "ssl-pinning-address: b.example\r\n", "ssl-pinning-address:\r\n"] {
      #expect(throws: TunnelRefusal.malformed) { try read(fields) }
    }
  }

  @Test("each beginning of it is waited for")
  func beginnings() {
    let text = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"
    for count in 0..<text.utf8.count {
      let beginning = String(decoding: text.utf8.prefix(count), as: UTF8.self)
      #expect(Self.read(beginning) == .success(nil), "\(count)")
    }
  }

  @Test(
    "what two readers could read differently is refused",
    arguments: [
      // Bytes behind the head, which would go to the server, or be a second request.
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n\u{16}",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\nCONNECT b.example:443 HTTP/1.1\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n\r",
      // A body.
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nContent-Length: 0\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nTransfer-Encoding: chunked\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nUpgrade: h2c\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nExpect: 100-continue\r\n\r\n",
      // Two hosts, another one, none.
      "CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:444\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nHost: a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\n\r\n",
      // Lines.
      "CONNECT a.example:443 HTTP/1.1\nHost: a.example:443\n\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nX: a\r\n folded\r\nHost: a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nHost : a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\n: x\r\nHost: a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nX\r\nHost: a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nX: \u{0}\r\nHost: a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1\r\nX: ä\r\nHost: a.example:443\r\n\r\n",
      "\r\nCONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
      // The request line.
      "CONNECT a.example:443 HTTP/1.0\r\nHost: a.example:443\r\n\r\n",
      "CONNECT  a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
      "CONNECT a.example:443 HTTP/1.1 \r\nHost: a.example:443\r\n\r\n",
      "CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
      "CONNECT http://a.example:443 HTTP/1.1\r\nHost: http://a.example:443\r\n\r\n",
      "CONNECT u@a.example:443 HTTP/1.1\r\nHost: u@a.example:443\r\n\r\n",
      "CONNECT a.example:443,b.example:443 HTTP/1.1\r\nHost: a.example:443,b.example:443\r\n\r\n",
      "CONNECT /a.example:443 HTTP/1.1\r\nHost: /a.example:443\r\n\r\n",
    ])
  func ambiguous(_ text: String) { #expect(Self.read(text) == .failure(.malformed)) }

  @Test("another method is no way through", arguments: ["GET", "POST", "connect", "CONNECT2"])
  func methods(_ method: String) {
    #expect(
      Self.read("\(method) a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
        == .failure(.noTunnel))
  }

  @Test("a head is short, and has few fields")
  func floods() {
    let line = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n"
    let long = line + "X: " + String(repeating: "x", count: TunnelRequest.limit)
    #expect(Self.read(long) == .failure(.tooLong))
    #expect(Self.read(long + "\r\n\r\n") == .failure(.tooLong))
    let many = line + String(repeating: "a:\r\n", count: 16) + "\r\n"
    #expect(Self.read(many) == .failure(.malformed))
  }
}
