import Foundation
import SslPinningPlatform
import TLSTools

/// Accepts a server's connections, on a thread of its own.
///
/// Not libmicrohttpd's own listening: `MHD_quiesce_daemon` of 0.9.75 and a worker both take the
/// socket out of the worker's epoll set, and the one that comes second ends the process. Here the
/// library never knows the socket, so a server stops, and changes its daemon, without that call.
final class ConnectionIntake: Sendable {
  /// Takes over a connection's socket, and closes it if it cannot serve it.
  typealias Take = @Sendable (Int32, UnsafePointer<sockaddr>, socklen_t) -> Void

  private struct End {
    var isReached = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let wakeup = SelfPipe()
  private let end = Locked(End())

  /// Milliseconds until a server that is full, or out of descriptors, looks again. Connections
  /// stand in the kernel's queue meanwhile.
  private static let pause = 10

  /// Accepts from now on.
  ///
  /// - Parameters:
  ///   - listening: does not block; closed when this ends.
  ///   - hasRoom: whether one more connection may be accepted now.
  init(listening: Int32, hasRoom: @escaping @Sendable () -> Bool, take: @escaping Take) {
    BackgroundThread.start("accept") { [wakeup, end] in
      while wakeup.wait(for: listening, milliseconds: 60_000) != .woken {
        if hasRoom(), Self.acceptOne(from: listening, take) != .failed { continue }
        if wakeup.wait(milliseconds: Self.pause) == .woken { break }
      }
      // Who has connected is served: closing the socket resets what stands in its queue. Whoever connects
      // without end does not keep this from ending.
      for _ in 0..<Int(SOMAXCONN) where Self.acceptOne(from: listening, take) != .taken { break }
      Foundation.close(listening)
      let waiting = end.withLock { end in
        defer { end = End(isReached: true) }
        return end.waiting
      }
      for continuation in waiting { continuation.resume() }
    }
  }

  /// Begins to end; it may take connections a little longer.
  func close() { wakeup.wake() }

  /// Ends, and returns when the last connection was taken and the socket is closed.
  func closed() async {
    close()
    await withCheckedContinuation { continuation in
      let isReached = end.withLock { end in
        if !end.isReached { end.waiting.append(continuation) }
        return end.isReached
      }
      if isReached { continuation.resume() }
    }
  }

  private enum Outcome {
    case taken
    /// None stands there any more, or it was gone before it could be accepted.
    case nothing
    /// The system has no descriptor or memory for it now.
    case failed
  }

  private static func acceptOne(from listening: Int32, _ take: Take) -> Outcome {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        let accepted = accept(listening, address, &length)
        if accepted >= 0 {
          _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
          take(accepted, address, length)
          return .taken
        }
        // What became of a connection is told as an error of the accept that would have had it.
        return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) ? .failed : .nothing
      }
    }
  }
}
