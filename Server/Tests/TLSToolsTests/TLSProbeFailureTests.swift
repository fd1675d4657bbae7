import FaultLab
import Foundation
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

@Suite("TLS probe: servers that do not answer, and bad input")
struct TLSProbeFailureTests {
  let probe: TLSProbe

  init() throws { probe = try TLSProbe(anchors: ChainValidator(anchors: [])) }

  private func failure(
    at port: UInt16, milliseconds: Int64 = 30_000
  ) async throws -> ProbeError? {
    let target = try ProbeTarget(host: "site.test", connectTo: [.loopback(port)])
    return await #expect(throws: ProbeError.self) {
      try await probe.probe(target, milliseconds: milliseconds)
    }
  }

  @Test("nobody listens")
  func refused() async throws {
    let port = try freePort()
    #expect(try await failure(at: port) == .refused(.loopback(port)))
  }

  @Test("a server that accepts and says nothing")
  func silent() async throws {
    let server = try LocalRawServer(.silent)
    #expect(try await failure(at: server.port, milliseconds: 200) == .timeout(.handshake))
    #expect(server.connections == 1)
  }

  @Test("a port whose packets go nowhere")
  func neverAnswers() async throws {
    let full = try FullPort()
    #expect(try await failure(at: full.port, milliseconds: 200) == .timeout(.connect))
  }

  @Test("a server that drips bytes of a record that never ends")
  func drip() async throws {
    let record: [UInt8] = [0x16, 3, 3, 0x3f, 0xff, 2, 0, 0x3f, 0xf0]
    let server = try LocalRawServer(.drips(record, pauseMilliseconds: 5))
    #expect(try await failure(at: server.port, milliseconds: 300) == .timeout(.handshake))
  }

  @Test(
    "servers that speak something else",
    arguments: [
      ("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n", "HTTP/1.1 400 Bad Request"),
      ("220 mail.example.com ESMTP\r\n", "220 mail.example.com ESMTP"),
      ("SSH-2.0-x\n", "SSH-2.0-x"),
      ("\u{1}\u{2}x\n", "??x"),
      ("<script>alert('1')</script>;%00\n", "?script?alert??1???/script???00"),
    ])
  func otherProtocols(greeting: String, beginning: String) async throws {
    let server = try LocalRawServer(.sends(Array(greeting.utf8)))
    #expect(try await failure(at: server.port) == .notTLS(beginning: beginning))
  }

  @Test("a plain HTTP server")
  func plainHTTP() async throws {
    let server = try LocalHTTPServer { _ in .text("clear") }
    #expect(
      try await failure(at: server.port) == .notTLS(beginning: "HTTP/1.1 400 Bad Request"))
  }

  @Test("a server that hangs up during the handshake")
  func hangsUp() async throws {
    let server = try LocalRawServer(.hangUp)
    guard case .handshake(let reason) = try await failure(at: server.port) else {
      Issue.record("no handshake failure")
      return
    }
    #expect(!reason.isEmpty && reason != "unknown cause", "\(reason)")
  }

  @Test("a server that sends an alert, or garbage in a record")
  func alert() async throws {
    let alert = try LocalRawServer(.sends([0x15, 3, 3, 0, 2, 2, 40]))
    #expect(
      try await failure(at: alert.port) == .handshake(reason: "sslv3 alert handshake failure"))
    let garbage = try LocalRawServer(.sends([0x16, 3, 3, 0, 4, 9, 9, 9, 9]))
    guard case .handshake = try await failure(at: garbage.port) else {
      Issue.record("no handshake failure")
      return
    }
  }

  @Test("a server that asks for handshakes without end is not listened to")
  func helloRequests() async throws {
    let server = try LocalRawServer(.sends([0x16, 3, 3, 0, 4, 0, 0, 0, 0]))
    guard case .handshake = try await failure(at: server.port, milliseconds: 10_000) else {
      Issue.record("it was waited for")
      return
    }
  }

  @Test("a name that does not resolve, with the resolver's reason")
  func noSuchName() async throws {
    let resolver = NameResolver { _, _ in .failure(.init(reason: "Name or service not known")) }
    let probe = try TLSProbe(anchors: ChainValidator(anchors: []), resolver: resolver)
    let target = try ProbeTarget(host: "missing.test")
    await #expect(throws: ProbeError.dns(host: "missing.test", reason: "Name or service not known"))
    {
      try await probe.probe(target)
    }
  }

  @Test("a resolver that hangs costs the deadline, and addresses are still probed meanwhile")
  func hangingResolver() async throws {
    let release = DispatchSemaphore(value: 0)
    let resolver = NameResolver { _, _ in
      release.wait()
      return .failure(.init(reason: "too late"))
    }
    let probe = try TLSProbe(anchors: ChainValidator(anchors: []), resolver: resolver)
    // More than there are resolver threads: the last of them are never begun.
    let failures = await withTaskGroup(of: ProbeError?.self) { group in
      for index in 0..<40 {
        group.addTask {
          do throws(ProbeError) {
            _ = try await probe.probe(
              ProbeTarget(host: "host\(index).test"), milliseconds: 200)
            return nil
          } catch { return error }
        }
      }
      return await group.reduce(into: [ProbeError?]()) { $0.append($1) }
    }
    #expect(failures == Array(repeating: .timeout(.dns), count: 40))
    let port = try freePort()
    let target = try ProbeTarget(host: "127.0.0.1", port: port)
    await #expect(throws: ProbeError.refused(.loopback(port))) { try await probe.probe(target) }
    for _ in 0..<40 { release.signal() }
  }

  @Test(
    "a server that demands a client certificate is seen: it proved its key before it refused",
    arguments: [TLSVersion.tls12, .tls13])
  func demandsCertificate(_ version: TLSVersion) async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Demanding Root")
    let identity = try authority.issue(names: ["site.test"])
    let server = try InterceptingProxy.tunnelling(
      showing: identity, admitting: ChainValidator(anchors: [authority.root]),
      options: TLSServerOptions(minimum: version, maximum: version))
    let probe = try TLSProbe(anchors: ChainValidator(anchors: [authority.root]))
    let target = try ProbeTarget(host: "site.test", connectTo: [.loopback(server.port)])
    let result = try await probe.probe(target)
    #expect(result.isTrusted)
    #expect(result.leaf.certificate == identity.leaf)
  }

  @Test("with plain RSA key exchange such a server proves nothing, and is not seen")
  func demandsCertificateUnproved() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Demanding Root")
    let identity = try authority.issue(
      names: ["site.test"], algorithm: .rsa(bits: 2048))
    let directory = try TemporaryDirectory()
    let certificate = try directory.write(identity.leaf.pem, to: "leaf.pem").path
    let key = try directory.write(identity.key.pem, to: "leaf.key").path
    let port = try freePort()
    let server = try ChildProcess(
      "openssl",
      [
        "s_server", "-accept", "\(port)", "-cert", certificate, "-key", key, "-tls1_2",
        "-cipher", "AES128-GCM-SHA256:@SECLEVEL=0", "-Verify", "1", "-quiet",
      ])
    let probe = try TLSProbe(anchors: ChainValidator(anchors: [authority.root]))
    let target = try ProbeTarget(host: "site.test", connectTo: [.loopback(port)])
    var outcome: ProbeError? = .refused(.loopback(port))
    // Until it listens.
    while outcome == .refused(.loopback(port)) {
      do throws(ProbeError) {
        _ = try await probe.probe(target)
        outcome = nil
      } catch { outcome = error }
    }
    guard case .handshake = outcome else {
      Issue.record("\(outcome.map { "\($0)" } ?? "it was seen")")
      return
    }
    _ = try await server.terminate()
  }

  @Test("cancelling ends a probe that waits, and one that has not begun")
  func cancelling() async throws {
    let server = try LocalRawServer(.silent)
    let target = try ProbeTarget(host: "site.test", connectTo: [.loopback(server.port)])
    let probe = probe
    let waiting = Task { () -> ProbeError? in
      do throws(ProbeError) {
        _ = try await probe.probe(target, milliseconds: 3_600_000)
        return nil
      } catch { return error }
    }
    while server.connections == 0 { await Task.yield() }
    waiting.cancel()
    #expect(await waiting.value == .cancelled)
    let early = Task { () -> ProbeError? in
      while !Task.isCancelled { await Task.yield() }
      do throws(ProbeError) {
        _ = try await probe.probe(target, milliseconds: 3_600_000)
        return nil
      } catch { return error }
    }
    early.cancel()
    #expect(await early.value == .cancelled)
  }

  @Test("no time at all is a timeout, not a crash", arguments: [Int64(0), -1, .min])
  func noTime(milliseconds: Int64) async throws {
    let server = try LocalRawServer(.silent)
    #expect(try await failure(at: server.port, milliseconds: milliseconds) == .timeout(.queue))
  }

  @Test(
    "targets are read the way people write them",
    arguments: [
      ("example.com", "example.com", UInt16(443)), ("Example.COM.:8443", "example.com", 8443),
      ("[::1]:8443", "::1", 8443), ("[::1]", "::1", 443), ("::1", "::1", 443),
      ("127.0.0.1:1", "127.0.0.1", 1), ("xn--bcher-kva.example", "xn--bcher-kva.example", 443),
    ])
  func targets(text: String, host: String, port: UInt16) throws {
    let target = try ProbeTarget(parsing: text)
    #expect(target.host == host)
    #expect(target.port == port)
  }

  @Test(
    "what is no host and port is refused",
    arguments: [
      "", ":443", "example.com:", "example.com:0", "example.com:65536", "example.com:+1",
      "example.com:443:444", "https://example.com", "*.example.com", ".example.com", "a b",
      "bücher.example", "[::1", "[::1]x", "[::1]:", "[example.com]:443", "127.1",
    ])
  func badTargets(text: String) {
    #expect(throws: ProbeError.self) { try ProbeTarget(parsing: text) }
  }
}
