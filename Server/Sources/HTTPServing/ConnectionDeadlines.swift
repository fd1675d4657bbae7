import Foundation
import SslPinningPlatform
import Synchronization
import TLSTools

/// The open connections of a server, each with the moment at which it is cut.
///
/// libmicrohttpd's own time-out counts silence, so a client that sends one byte every few seconds
/// holds its connection for ever. Here each phase of a request has one absolute deadline, which
/// traffic does not move.
///
/// A socket is shut down under the lock that its closing takes, so the descriptor of a connection
/// that just closed, and may already be another one's, is never touched.
final class ConnectionDeadlines: Sendable {
  /// How long each phase may take, in nanoseconds.
  private struct Times {
    let idle, header, body, answer, later: Int64

    init(_ limits: HTTPLimits) {
      (idle, header, body) = (Self.of(limits.idle), Self.of(limits.header), Self.of(limits.body))
      (answer, later) = (Self.of(limits.answer), Self.of(limits.later))
    }

    private static func of(_ duration: Duration) -> Int64 {
      let (seconds, attoseconds) = duration.components
      return min(seconds, 1 << 32) * 1_000_000_000 + attoseconds / 1_000_000_000
    }
  }

  private let times: Locked<Times>
  private let open = Locked(Open())
  private let count = Atomic(0)
  private let crowd: Int
  private let limits: (usual: Int, inACrowd: Int)

  private struct Open {
    var connections: [ObjectIdentifier: HTTPConnection] = [:]
    /// Those of callers that may have only so many. Behind a trusted proxy are many callers.
    var limited: Set<ObjectIdentifier> = []
    var counts = CallerCounts()
    /// The connections that were handed over and that no thread has begun with.
    var queued = CallerCounts()
  }

  init(limits: HTTPLimits) {
    times = Locked(Times(limits))
    crowd = limits.crowd
    self.limits = (limits.connectionsPerAddress, limits.connectionsPerAddressInACrowd)
  }

  /// Whether so many connections are open that each answer is to be its connection's last.
  var isCrowded: Bool { count.load(ordering: .relaxed) >= crowd }

  /// Goes by these times from the next phase of each connection on.
  func change(_ limits: HTTPLimits) { times.withLock { $0 = Times(limits) } }

  /// Counts a connection of a caller who may have only so many, before it is handed over. A thread that works on handshakes begins
  /// with the next ones late, and one caller would have all places meanwhile.
  ///
  /// - Returns: false if it is one too many.
  func reserve(_ caller: Caller) -> Bool {
    open.withLock { open in
      let isCrowd = count.load(ordering: .relaxed) + open.queued.total >= crowd
      let most = isCrowd ? limits.inACrowd : limits.usual
      guard open.counts.hasRoom(for: caller, most: most, with: open.queued) else { return false }
      open.queued.add(caller)
      return true
    }
  }

  /// A connection that was counted could not be handed over.
  func giveUp(_ caller: Caller) { open.withLock { _ = $0.queued.remove(caller) } }

  /// Empties the queue: the library has lost its connections.
  func forgetQueue() { open.withLock { $0.queued = CallerCounts() } }

  /// A connection began.
  func begin(_ connection: HTTPConnection) {
    // Not idle: a handshake takes a client that is far away longer than a connection may be that.
    set(connection) { $0.header }
    open.withLock { open in
      open.connections[ObjectIdentifier(connection)] = connection
      count.wrappingAdd(1, ordering: .relaxed)
      guard open.queued.remove(connection.caller) else { return }
      open.limited.insert(ObjectIdentifier(connection))
      open.counts.add(connection.caller)
    }
  }

  /// The first line of a request is in. On a new connection its time runs already.
  func receivingHeader(_ connection: HTTPConnection) {
    let deadline = Self.now() + times.withLock { $0.header }
    if deadline < connection.deadline.load(ordering: .relaxed) {
      connection.deadline.store(deadline, ordering: .relaxed)
    }
    connection.isIdle.store(false, ordering: .relaxed)
    connection.since.store(Self.now(), ordering: .relaxed)
  }

  func receivingBody(_ connection: HTTPConnection) { set(connection) { $0.body } }
  func waiting(_ connection: HTTPConnection) { set(connection) { $0.later } }
  func answering(_ connection: HTTPConnection) { set(connection) { $0.answer } }
  func answered(_ connection: HTTPConnection) { set(connection, isIdle: true) { $0.idle } }

  /// A connection is about to close.
  func end(_ connection: HTTPConnection) {
    open.withLock { open in
      guard open.connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else {
        return
      }
      count.subtract(1, ordering: .relaxed)
      guard open.limited.remove(ObjectIdentifier(connection)) != nil else { return }
      open.counts.remove(connection.caller)
    }
  }

  /// Cuts connections so that others can be accepted, where the server is full: ``HeldConnection/leaving(_:_:share:at:)``.
  ///
  /// - Parameter count: how many at most; fewer where others are about to end.
  func makeRoom(_ count: Int) {
    let now = Self.now()
    open.withLock { open in
      let held = open.connections.filter {
        $0.value.later == nil && !$0.value.isCut.load(ordering: .relaxed)
      }.map { id, connection in
        HeldConnection(
          connection: connection,
          of: open.limited.contains(id) ? open.counts.share(of: connection.caller) : 0,
          isIdle: connection.isIdle.load(ordering: .relaxed),
          since: connection.since.load(ordering: .relaxed))
      }
      let ending = open.connections.values.count { $0.isCut.load(ordering: .relaxed) }
      for connection in HeldConnection.leaving(
        held, count - ending, share: limits.inACrowd, at: now)
      {
        connection.isCut.store(true, ordering: .relaxed)
        shutdown(connection.descriptor, Int32(SHUT_RDWR))
      }
    }
  }

  /// Cuts every connection whose deadline has passed; but where an answer is waited for, that is
  /// told to end: first its task, and after the time that an answer may take, the wait itself.
  func cutOverdue() {
    let now = Self.now()
    let late = open.withLock { open in
      let overdue = open.connections.values.filter { $0.deadline.load(ordering: .relaxed) < now }
      let late = overdue.filter { $0.later != nil }
      for connection in overdue where connection.later == nil {
        shutdown(connection.descriptor, Int32(SHUT_RDWR))
      }
      return late
    }
    let answer = times.withLock { $0.answer }
    for connection in late {
      connection.deadline.store(now + answer, ordering: .relaxed)
      connection.later?.expire()
    }
  }

  /// Ends the reading side of every connection: what was received is still answered, nothing more
  /// is asked.
  func hangUp() {
    open.withLock { open in
      for connection in open.connections.values {
        shutdown(connection.descriptor, Int32(SHUT_RD))
      }
    }
  }

  private func set(
    _ connection: HTTPConnection, isIdle: Bool = false, _ limit: (Times) -> Int64
  ) {
    let now = Self.now()
    connection.deadline.store(now + times.withLock { limit($0) }, ordering: .relaxed)
    connection.isIdle.store(isIdle, ordering: .relaxed)
    connection.since.store(now, ordering: .relaxed)
  }

  /// Nanoseconds of the monotonic clock, at the kernel's tick: a few nanoseconds per call.
  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// A connection that may have to go where the server is full. No answer to it is worked on.
struct HeldConnection<Connection> {
  let connection: Connection
  /// How many its caller has (``CallerCounts/share(of:)``); 0 if many callers share its address.
  let of: Int
  let isIdle: Bool
  /// When it began what it does now, in nanoseconds.
  let since: Int64

  /// How long a connection may be idle, or busy, before another one may take its place: in nanoseconds.
  ///
  /// Of a caller that has more than its share a twentieth of a second remains to each, or so many connections that are
  /// all in use now and then would keep everybody out. In it an honest head is in and an answer is read.
  static func patience(isIdle: Bool, isBeyondShare: Bool) -> Int64 {
    isBeyondShare ? 50_000_000 : isIdle ? 250_000_000 : 1_000_000_000
  }

  /// Who goes first: the idle ones, and of those the oldest. While somebody has more than his share, only those of whoever
  /// has most: where all of his are so new that ``patience(isIdle:isBeyondShare:)`` holds, they are waited for.
  ///
  /// Up to that share it does not count who has them: the address with most is a carrier's, with many readers behind it,
  /// if somebody comes with a thousand addresses and a silent connection of each.
  ///
  /// - Parameter share: how many connections one caller may have in a crowd.
  static func leaving(
    _ held: [Self], _ count: Int, share: Int, at now: Int64
  ) -> [Connection] {
    let most = held.map(\.of).max() ?? 0
    return held.filter {
      (most <= share || $0.of == most)
        && now - $0.since >= patience(isIdle: $0.isIdle, isBeyondShare: $0.of > share)
    }
    .sorted { ($0.isIdle ? 0 : 1, $0.since) < ($1.isIdle ? 0 : 1, $1.since) }
    .prefix(max(0, count)).map(\.connection)
  }
}

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
