import CSslPinningShims
import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import TestSupport
import Testing

/// libdispatch, which watches descriptors for Foundation, may never watch the number of a socket again that its peer closed.
@Suite("The sockets of a session", .timeLimit(.minutes(3)))
struct LookoutTests {
  /// Which descriptors the epolls of this process watch.
  private static func watches() throws -> [Int32: Set<Int32>] {
    var all: [Int32: Set<Int32>] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fdinfo") {
      // Another test may have closed it meanwhile.
      guard let number = Int32(name),
        let text = try? String(contentsOfFile: "/proc/self/fdinfo/\(name)", encoding: .utf8)
      else { continue }
      let watched = text.split(separator: "\n").filter { $0.hasPrefix("tfd:") }
        .compactMap { $0.split(separator: " ").dropFirst().first.flatMap { Int32($0) } }
      if !watched.isEmpty { all[number] = Set(watched) }
    }
    return all
  }

  /// The sockets of this process that are connected to this port.
  private static func sockets(to port: UInt16) -> Set<Int32> {
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return Set(
      numbers.compactMap { Int32($0) }.filter { number in
        var peer = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = withUnsafeMutablePointer(to: &peer) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            getpeername(number, $0, &size) == 0
          }
        }
        return isConnected && peer.sin_family == UInt16(AF_INET) && peer.sin_port == port.bigEndian
      })
  }

  @Test(
    "are watched behind one descriptor, which Foundation watches while there is something to do")
  func behind() async throws {
    let isWaiting = Locked(true)
    let site = try PinnedSite { _ in
      // why: a handler has no way to wait; the request is to be under way while its sockets are looked at.
      while isWaiting.withLock({ $0 }) { usleep(1000) }
      return .text("hello")
    }
    defer { isWaiting.withLock { $0 = false } }
    let session = site.session()
    let url = try site.url(host: "127.0.0.1")
    let task = Task { try await session.data(from: url) }
    let port = site.server.port
    /// What watches the session's sockets, and what watches that.
    @Sendable func roads() throws -> (lookouts: Set<Int32>, dispatch: Set<Int32>) {
      let (watches, sockets) = (try Self.watches(), Self.sockets(to: port))
      let lookouts = Set(watches.filter { !$0.value.isDisjoint(with: sockets) }.keys)
      return (lookouts, Set(watches.filter { !$0.value.isDisjoint(with: lookouts) }.keys))
    }
    try #require(await eventually { (try? roads().lookouts.count) == 1 })
    let (lookouts, dispatch) = try roads()
    #expect(dispatch.count == 1 && dispatch.isDisjoint(with: lookouts))
    isWaiting.withLock { $0 = false }
    _ = try await task.value
    @Sendable func isWatched() throws -> Bool {
      try Self.watches().values.contains { !$0.isDisjoint(with: lookouts) }
    }
    #expect(await eventually { (try? isWatched()) == false }, "nothing is left to do")
    isWaiting.withLock { $0 = true }
    let second = Task { try await session.data(from: url) }
    #expect(await eventually { (try? isWatched()) == true })
    isWaiting.withLock { $0 = false }
    _ = try await second.value
    #expect(site.server.counts.connections == 1)
  }
}
