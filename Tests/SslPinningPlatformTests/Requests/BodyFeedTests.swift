import Foundation
import TestSupport
import Testing

@testable import SslPinningPlatform

@Suite("A body as it comes from the app")
struct BodyFeedTests {
  /// The other side of a bound pair of streams: takes what it has room for.
  private final class Pipe: Sendable {
    private let state = Locked((room: 0, written: Data()))

    var written: Data { state.withLock { $0.written } }

    func makeRoom(_ count: Int) { state.withLock { $0.room += count } }

    func pour(_ body: BodyFeed) -> BodyFeed.Poured {
      body.pour(hasRoom: { state.withLock { $0.room > 0 } }, write: write)
    }

    private func write(_ chunk: Data) -> Int {
      state.withLock { state in
        let count = min(state.room, chunk.count)
        state.room -= count
        state.written += chunk.prefix(count)
        return count
      }
    }
  }

  /// Pours whenever there is more, as a stream's queue does, until the body has ended.
  private func end(of body: BodyFeed, into pipe: Pipe) async -> BodyFeed.Poured? {
    let last = Locked<BodyFeed.Poured?>(nil)
    let pour: @Sendable () -> Void = {
      let poured = pipe.pour(body)
      last.withLock { if poured != .waits { $0 = poured } }
    }
    body.whenMore(pour)
    pour()
    // Room comes bit by bit.
    _ = await eventually {
      pipe.makeRoom(7)
      pour()
      return last.withLock { $0 } != nil
    }
    return last.withLock { $0 }
  }

  @Test("arrives whole, however little the other side takes at a time")
  func whole() async {
    let chunks = (1...20).map { Data(repeating: UInt8($0), count: $0 % 9) }
    let pipe = Pipe()
    let body = BodyFeed { feed in for chunk in chunks { #expect(await feed.put(chunk)) } }
    #expect(await end(of: body, into: pipe) == .ended)
    #expect(pipe.written == chunks.reduce(Data(), +))
  }

  struct Broken: Error {}

  @Test("that the app breaks off is never whole: what came is written, and there is no end")
  func broken() async {
    let pipe = Pipe()
    let body = BodyFeed { feed in
      _ = await feed.put(Data("half".utf8))
      throw Broken()
    }
    #expect(await end(of: body, into: pipe) == .broken)
    #expect(pipe.written == Data("half".utf8))
    #expect(body.failure is Broken)
    #expect(pipe.pour(body) == .broken)
  }

  @Test("asks the app for nothing before it is asked, and for a chunk once the last was taken")
  func oneAtATime() async {
    let asked = Locked(0)
    let body = BodyFeed { feed in
      repeat { asked.withLock { $0 += 1 } } while await feed.put(Data([1, 2]))
    }
    let pipe = Pipe()
    #expect(!body.hasBegun && asked.withLock { $0 } == 0)
    #expect(pipe.pour(body) == .waits)
    #expect(await eventually { body.next() == .bytes(Data([1, 2])) })
    pipe.makeRoom(1)
    #expect(pipe.pour(body) == .waits)
    #expect(body.next() == .bytes(Data([2])))
    #expect(asked.withLock { $0 } == 1)
    body.close()
  }

  @Test("that nobody wants any more wakes an app that waits, and does not end whole")
  func refused() async {
    let answers = Locked<[Bool]>([])
    let body = BodyFeed { feed in
      for _ in 0..<2 {
        let wants = await feed.put(Data([1]))
        answers.withLock { $0.append(wants) }
      }
    }
    // The connection is refused: nobody ever makes room.
    let pipe = Pipe()
    #expect(pipe.pour(body) == .waits)
    #expect(await eventually { body.next() != .later })
    body.close()
    #expect(await eventually { answers.withLock { $0 } == [false, false] })
    #expect(body.next() == .broken && pipe.pour(body) == .broken)
    #expect(pipe.written.isEmpty)
  }

  @Test("closed before anybody asked, it never asks the app", arguments: [0, -1])
  func unwanted(count: Int) async {
    let asked = Locked(false)
    let body = BodyFeed { _ in asked.withLock { $0 = true } }
    body.close()
    #expect(body.next() == .broken && !body.hasBegun)
    #expect(!asked.withLock { $0 })
    // A stream whose reader has gone says so by its count.
    let other = BodyFeed { feed in _ = await feed.put(Data([1])) }
    #expect(await eventually { other.next() != .later })
    #expect(other.pour(hasRoom: { true }, write: { _ in count }) == .broken)
    #expect(other.failure == nil)
  }
}

@Suite("A value that is given once")
struct OnceTests {
  @Test("is the first, given before or after it is awaited")
  func first() async {
    let early = Once<Int>()
    early.give(1)
    early.give(2)
    #expect(await early.value == 1)
    let late = Once<Int>()
    async let value = late.value
    await withTaskGroup { group in
      for number in 1...64 { group.addTask { late.give(number) } }
    }
    #expect((1...64).contains(await value))
  }

  @Test("of empty chunks is asked for no more once nobody wants more")
  func emptyForEver() async {
    let ended = Locked(false)
    let body = BodyFeed { feed in
      while await feed.put(Data()) {}
      ended.withLock { $0 = true }
    }
    #expect(body.next() == .later)
    body.close()
    while !ended.withLock({ $0 }) { await Task.yield() }
  }
}
