import Foundation
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

/// Debian's Redis with a certificate of a test's own CA.
@Suite("Redis under TLS") struct RedisTLSTests {
  private struct World {
    let server: RedisServer
    let directory: TemporaryDirectory
    let port: UInt16

    /// - Parameter names: what the certificate is for.
    init(names: [String] = ["localhost"]) async throws {
      directory = try TemporaryDirectory()
      port = try freePort()
      let authority = try CertificateAuthority.makeRoot(name: "Own")
      let identity = try authority.issue(names: names)
      try directory.write(authority.root.pem, to: "ca.pem")
      try directory.write(
        CertificateAuthority.makeRoot(name: "Other").root.pem, to: "other.pem")
      try directory.write(identity.leaf.pem, to: "leaf.pem")
      try directory.write(identity.key.pem, to: "leaf.key")
      server = try await .start(settings: [
        "--appendonly", "yes", "--appendfsync", "always", "--tls-port", "\(port)",
        "--tls-cert-file", directory.path("leaf.pem"), "--tls-key-file", directory.path("leaf.key"),
        "--tls-ca-cert-file", directory.path("ca.pem"), "--tls-auth-clients", "no",
      ])
    }

    func dsn(_ host: String = "localhost", ca: String? = "ca.pem") -> String {
      let password = RedisServer.password.addingPercentEncoding(
        withAllowedCharacters: .alphanumerics)
      return "rediss://:\(password ?? "")@\(host):\(port)/0"
        + (ca.map { "?ca=\(directory.path($0))" } ?? "")
    }
  }

  @Test("keeps records of any size, tells of changes, and lets one lead")
  func store() async throws {
    let world = try await World()
    let (one, other) = (
      try RedisStore(dsn: world.dsn()), try RedisStore(dsn: world.dsn())
    )
    let large = [UInt8](repeating: 0x61, count: 9 << 20)
    var changes = other.changes().makeAsyncIterator()
    // The first is told once the feed is there.
    #expect(await changes.next() == "")
    #expect(
      try await one.replace("a", version: 0, with: large, history: [[1]]) == .replaced(version: 1))
    #expect(await changes.next() == "a")
    #expect(try await other.record(named: "a")?.bytes == large)
    let leadership = try await one.lead()
    #expect(leadership != nil)
    #expect(try await other.lead() == nil)
    await leadership?.resign()
    // A Redis that ends is noticed, and found again.
    try await world.server.stop()
    await #expect(throws: StoreError.self) { try await one.record(named: "a") }
    try await world.server.launch()
    #expect(try await one.record(named: "a")?.version == 1)
    await one.close()
    await other.close()
    try await world.server.stop()
  }

  @Test("keeps no socket, and no thread, for a Redis that hangs once nobody waits for it")
  func hanging() async throws {
    let world = try await World()
    let port = world.port
    @Sendable func sockets() -> Int {
      (0..<4096).count { (descriptor: Int32) in
        var peer = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = withUnsafeMutablePointer(to: &peer) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            getpeername(descriptor, $0, &length) == 0
          }
        }
        return isConnected && peer.sin_family == AF_INET && UInt16(bigEndian: peer.sin_port) == port
      }
    }
    do {
      let connection = try RedisConnection(RedisDSN(world.dsn()), patience: 500)
      #expect(sockets() == 1)
      world.server.suspend(true)
      #expect(throws: StoreError.self) { try connection.command("PING") }
    }
    #expect(await eventually(within: 20) { sockets() == 0 })
    world.server.suspend(false)
    try await world.server.stop()
  }

  @Test("refuses a Redis that does not prove itself, before it hears a password")
  func refusals() async throws {
    let world = try await World()
    for (dsn, reason) in [
      (world.dsn("127.0.0.1"), "not for"), (world.dsn(ca: "other.pem"), "certificate"),
      (world.dsn(ca: nil), "certificate"), (world.dsn(ca: "nowhere.pem"), "nowhere.pem"),
      // Its other port speaks no TLS.
      (
        world.dsn().replacing(":\(world.port)/", with: ":\(world.server.port)/"),
        "no connection to localhost:\(world.server.port)/0: TLS: "
      ),
    ] {
      let error = #expect(throws: StoreError.self) { try RedisConnection(RedisDSN(dsn)) }
      let said = "\(error, default: "")"
      #expect(said.contains(reason) && !said.contains("secret"), "\(said)")
    }
    try await world.server.stop()
  }

  @Test("the scheme may be written in any case, and its CA as a member")
  func address() throws {
    let dsn = try RedisDSN("REDISS://u:p@r.example.com/3?ca=%2Fetc%2Fa%20b.pem")
    #expect(dsn.isTLS && dsn.anchors == "/etc/a b.pem" && dsn.place == "r.example.com:6379/3")
    #expect(try !RedisDSN("redis://127.0.0.1").isTLS)
    #expect(try RedisDSN("redis://r.example.com", isInsecure: true).host == "r.example.com")
  }
}
