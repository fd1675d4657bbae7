import Foundation

/// Carries bytes both ways between two streams until both sides have finished.
///
/// - Each direction buffers at most 64 KiB and reads more only after that has gone out: a side that does
///   not read stops the other from sending, and neither can block the other direction.
/// - The end of one side is passed on; the other direction goes on (half-closed connections), unless
///   `client` decides.
/// - It may be bounded in time, and in what each side sends.
package struct Relay {
  private struct Direction {
    let from: ByteStream
    let to: ByteStream
    let tap: ([UInt8]) -> Void
    /// How much may still be read.
    var room: Int
    var buffer: [UInt8] = []
    var sent = 0
    var hasEnded = false
    var isFinished = false
    /// What the last attempt waits for.
    var waitsOn: (stream: ByteStream, events: Int16)?

    init(from: ByteStream, to: ByteStream, most: Int, tap: @escaping ([UInt8]) -> Void) {
      (self.from, self.to, self.room, self.tap) = (from, to, most, tap)
    }
  }

  private var directions: [Direction]
  private let stop: EventSignal
  private let isSuspended: () -> Bool
  private let endsWithClient: Bool
  private let end: Deadline
  /// How long both sides may be silent.
  private static let idleMilliseconds: Int64 = 300_000

  /// - Parameters:
  ///   - tap: sees what `client` sends, before `server` does.
  ///   - isSuspended: whether to carry nothing for now, without closing anything.
  ///   - endsWithClient: whether all ends once `client` has ended and what it sent is out.
  ///   - end: when it ends by itself.
  ///   - most: how many bytes each side may send.
  package init(
    client: ByteStream, server: ByteStream, stop: EventSignal,
    tap: @escaping ([UInt8]) -> Void = { _ in }, isSuspended: @escaping () -> Bool = { false },
    endsWithClient: Bool = false, until end: Deadline = .after(milliseconds: .max),
    most: Int = .max
  ) {
    directions = [
      Direction(from: client, to: server, most: most, tap: tap),
      Direction(from: server, to: client, most: most, tap: { _ in }),
    ]
    self.end = end
    self.stop = stop
    self.isSuspended = isSuspended
    self.endsWithClient = endsWithClient
  }

  package mutating func run() throws(SocketError) {
    while directions.contains(where: { !$0.isFinished }) {
      if endsWithClient, directions[0].isFinished { return }
      // A side that never rests must not keep the loop from its end.
      if end.hasPassed { throw .timeout }
      while isSuspended() { guard stop.sleep(milliseconds: 20) else { throw .stopped } }
      var hasMoved = false
      for index in directions.indices where !directions[index].isFinished {
        if try Self.advance(&directions[index]) { hasMoved = true }
      }
      if !hasMoved { try waitForEither() }
    }
  }

  /// One attempt to read or write; true if it made progress.
  private static func advance(_ direction: inout Direction) throws(SocketError) -> Bool {
    direction.waitsOn = nil
    guard direction.sent == direction.buffer.count else { return try write(&direction) }
    if direction.hasEnded {
      direction.to.finishWriting()
      direction.isFinished = true
      return true
    }
    return try read(&direction)
  }

  private static func read(_ direction: inout Direction) throws(SocketError) -> Bool {
    var attempt = ByteStream.Attempt.ended
    direction.buffer = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
      attempt = direction.from.tryRead(UnsafeMutableRawBufferPointer(buffer))
      if case .moved(let moved) = attempt { count = moved }
    }
    direction.sent = 0
    switch attempt {
    case .moved(let count):
      guard count <= direction.room else { throw .closed(reason: "a side sent too much") }
      direction.room -= count
      direction.tap(direction.buffer)
    case .ended: direction.hasEnded = true
    case .wait(let events):
      direction.waitsOn = (direction.from, events)
      return false
    case .failed(let reason): throw .closed(reason: reason)
    }
    return true
  }

  private static func write(_ direction: inout Direction) throws(SocketError) -> Bool {
    let attempt = direction.buffer.withUnsafeBytes {
      direction.to.tryWrite(UnsafeRawBufferPointer(rebasing: $0[direction.sent...]))
    }
    switch attempt {
    case .moved(let count): direction.sent += count
    case .wait(let events):
      direction.waitsOn = (direction.to, events)
      return false
    case .ended: throw .closed(reason: "the other side left")
    case .failed(let reason): throw .closed(reason: reason)
    }
    return true
  }

  private func waitForEither() throws(SocketError) {
    var watched = directions.compactMap(\.waitsOn).map {
      pollfd(fd: $0.stream.socket.descriptor, events: $0.events, revents: 0)
    }
    watched.append(pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0))
    let deadline = min(end, .after(milliseconds: Self.idleMilliseconds))
    while true {
      let ready = poll(&watched, nfds_t(watched.count), deadline.pollTimeout)
      if stop.isRaised { throw .stopped }
      if ready > 0 { return }
      if ready < 0, errno != EINTR { throw .system(operation: "poll", code: errno) }
      if deadline.hasPassed { throw .timeout }
    }
  }
}
