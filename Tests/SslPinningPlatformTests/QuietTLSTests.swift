import CSslPinningOpenSSL
import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import TLSTools
import Testing

/// Not in a header that Swift sees: only C of the same module prepares contexts with it.
@_silgen_name("pp_judged_prepare")
private func prepareJudged(
  _ context: OpaquePointer, _ store: OpaquePointer,
  _ verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32,
  _ argument: UnsafeMutableRawPointer?
) -> UInt32

/// Before 7.87 libcurl lets OpenSSL write to sockets by itself; what happens then is shown on OpenSSL
/// alone, because a newer libcurl writes for it. Each in a process of its own: a signal ends it.
@Suite("A peer that leaves a handshake")
struct QuietTLSTests {
  /// Begins a handshake with a peer that has left; what OpenSSL returned.
  private static func dial(_ prepare: (OpaquePointer) -> Bool = { _ in true }) -> Int32? {
    signal(SIGPIPE, SIG_DFL)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    guard let context = SSL_CTX_new(TLS_client_method()) else { return nil }
    defer { SSL_CTX_free(context) }
    guard prepare(context) else { return nil }
    var pair: [Int32] = [0, 0]
    guard let ssl = SSL_new(context) else { return nil }
    defer { SSL_free(ssl) }
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0,
      SSL_set_fd(ssl, pair[0]) == 1
    else { return nil }
    close(pair[1])
    return SSL_connect(ssl)
  }

  @Test("ends the process where OpenSSL writes as it likes")
  func control() async {
    await #expect(processExitsWith: .signal(SIGPIPE)) { _ = Self.dial() }
  }

  @Test("is a failed handshake where it was told to be quiet")
  func quiet() async {
    await #expect(processExitsWith: .exitCode(7)) {
      exit(Self.dial(QuietTLS.prepare) == -1 ? 7 : 8)
    }
  }

  @Test(
    "is a failed handshake in a context whose peers are judged: that of sessions and of requests without one"
  )
  func judged() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let answer = Self.dial { context in
        guard let store = X509_STORE_new() else { return false }
        defer { X509_STORE_free(store) }
        return prepareJudged(context, store, { _, _ in 1 }, nil) == 0
      }
      exit(answer == -1 ? 7 : 8)
    }
  }

  @Test("or stays finds all else as it was: bytes go both ways, blocked writes are tried again")
  func transfer() async throws {
    let site = try PinnedSite(handler: echo)
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    let context = try #require(SSL_CTX_new(TLS_client_method()))
    defer { SSL_CTX_free(context) }
    #expect(QuietTLS.prepare(context))
    let ssl = try #require(SSL_new(context))
    defer { SSL_free(ssl) }
    let socket = try connectedSocket(to: relay.port)
    defer { close(socket) }
    SSL_set_fd(ssl, socket)
    try #require(SSL_connect(ssl) == 1)
    #expect(SSL_get_wfd(ssl) == socket)
    // More than sockets hold while nobody reads, on one that does not wait.
    var held: Int32 = 65_536
    try #require(
      setsockopt(
        socket, SOL_SOCKET, SO_SNDBUF, &held, socklen_t(MemoryLayout.size(ofValue: held))) == 0)
    relay.suspend(true)
    let limits = try String(contentsOfFile: "/proc/sys/net/ipv4/tcp_rmem", encoding: .utf8)
    let most = try #require(limits.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) })
    let body = [UInt8](repeating: 0x61, count: most + (1 << 20))
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.count)\r\n\r\n"
    _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK)
    var retries = 0
    var rest = ArraySlice(Array(head.utf8) + body)
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes {
        SSL_write(ssl, $0.baseAddress, Int32(min($0.count, 16_384)))
      }
      if sent > 0 {
        rest = rest.dropFirst(Int(sent))
      } else {
        try #require(SSL_get_error(ssl, sent) == SSL_ERROR_WANT_WRITE)
        retries += 1
        relay.suspend(false)
        wait(for: socket, POLLOUT)
      }
    }
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while !String(decoding: answer, as: UTF8.self).hasSuffix("POST \(body.count)") {
      let count = SSL_read(ssl, &buffer, Int32(buffer.count))
      if count > 0 {
        answer += buffer.prefix(Int(count))
      } else {
        try #require(SSL_get_error(ssl, count) == SSL_ERROR_WANT_READ)
        wait(for: socket, POLLIN)
      }
    }
    #expect(retries > 0)
  }

  @Test("is so prepared for by registry fetches, sessions and requests without one")
  func everyWay() async throws {
    await #expect(processExitsWith: .exitCode(7)) {
      let site = try PinnedSite()
      let url = try site.url()
      _ = await site.transport.end(of: url)
      guard QuietTLS.count == 1 else { exit(1) }
      _ = try await site.session().data(from: url)
      guard QuietTLS.count == 2 else { exit(2) }
      let fetcher = try DocumentFetcher(trust: .anchors([site.authority.root.der]))
      _ = try? await fetcher.fetch(
        DocumentRequest(url: RegistryURL(url.absoluteString), maximumBytes: 100, timeout: 20))
      exit(QuietTLS.count == 3 ? 7 : 3)
    }
  }

  private func wait(for socket: Int32, _ events: Int32) {
    var poll = pollfd(fd: socket, events: Int16(events), revents: 0)
    Glibc.poll(&poll, 1, 10_000)
  }

  private func connectedSocket(to port: UInt16) throws -> Int32 {
    let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(made, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(result == 0)
    return made
  }
}
