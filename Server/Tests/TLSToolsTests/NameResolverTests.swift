import Dispatch
import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import TLSTools

@Suite("Names that do not resolve never delay those that do")
struct NameResolverTests {
  /// A name service that hangs on `silent-…` until it is released.
  private final class Zone: Sendable {
    private let gate = DispatchSemaphore(value: 0)
    private let isOpen = Locked(false)
    let asked = Locked<[String: Int]>([:])

    func lookUp(_ host: String, _ port: UInt16) -> Result<[TLSTools.Endpoint], NameResolver.Failure>
    {
      asked.withLock { $0[host, default: 0] += 1 }
      guard host.hasPrefix("silent") else { return .success([.loopback(port)]) }
      if !isOpen.withLock({ $0 }) {
        gate.wait()
        gate.signal()
      }
      return .failure(.init(reason: "nobody answered", isFinal: false))
    }

    func release() {
      isOpen.withLock { $0 = true }
      gate.signal()
    }
  }

  /// Whether every one of these names is answered by an address within 20 s.
  private func areAnswered(_ names: [String], _ resolver: NameResolver) async -> Bool {
    await withTaskGroup(of: Bool.self) { group in
      for name in names { group.addTask { await isAnswered(name, resolver) } }
      return await group.allSatisfy { $0 }
    }
  }

  private func isAnswered(_ name: String, _ resolver: NameResolver) async -> Bool {
    let (answers, continuation) = AsyncStream<Bool>.makeStream()
    resolver.resolve(name, port: 443, until: .after(milliseconds: 20_000)) { result in
      continuation.yield((try? result.get()) != nil)
      continuation.finish()
    }
    let timer = Task {
      // why: the limit of the wait itself, where no answer comes.
      try? await Task.sleep(for: .seconds(20))
      continuation.finish()
    }
    defer { timer.cancel() }
    for await answer in answers { return answer }
    return false
  }

  private let good = (0..<10).map { "good-\($0).test" }
  private let silent = (0..<1000).map { "silent-\($0).test" }

  @Test("a thousand names that hang stand beside ten that answered before: those always answer")
  func silence() async {
    let zone = Zone()
    let resolver = NameResolver { zone.lookUp($0, $1) }
    #expect(await areAnswered(good, resolver))
    for name in silent {
      resolver.resolve(name, port: 443, until: .after(milliseconds: 50)) { _ in }
    }
    for _ in 0..<3 { #expect(await areAnswered(good, resolver)) }
    zone.release()
  }

  @Test(
    "names that failed twice take four threads, and a name that was never asked comes before them")
  func failing() async {
    let zone = Zone()
    let resolver = NameResolver { zone.lookUp($0, $1) }
    zone.release()
    for name in silent.prefix(300) { #expect(await !isAnswered(name, resolver)) }
    let hanging = DispatchSemaphore(value: 0)
    let running = Locked(0)
    let slow = NameResolver { host, port in
      if host.hasPrefix("silent") {
        let isEarly = zone.asked.withLock { asked in
          asked["again \(host)", default: 0] += 1
          return asked["again \(host)", default: 0] <= 2
        }
        if isEarly { return .failure(.init(reason: "no such name")) }
        running.withLock { $0 += 1 }
        hanging.wait()
      }
      return .success([.loopback(port)])
    }
    for _ in 0..<2 { for name in silent.prefix(300) { #expect(await !isAnswered(name, slow)) } }
    for name in silent.prefix(300) {
      slow.resolve(name, port: 443, until: .after(milliseconds: 50)) { _ in }
    }
    #expect(await areAnswered(good, slow))
    #expect(await areAnswered(good, slow))
    #expect(running.withLock { $0 } <= 4)
    for _ in 0..<300 { hanging.signal() }
  }

  @Test("an answer is never older than its question; those that wait together share one lookup")
  func sharing() async {
    let gate = DispatchSemaphore(value: 0)
    let begun = DispatchSemaphore(value: 0)
    let count = Locked(0)
    let resolver = NameResolver { _, port in
      let number = count.withLock { count in
        count += 1
        return count
      }
      begun.signal()
      gate.wait()
      return .success([.loopback(UInt16(number) + port)])
    }
    let (answers, continuation) = AsyncStream<UInt16>.makeStream()
    let ask = { @Sendable in
      resolver.resolve("a.test", port: 1000, until: .after(milliseconds: 60_000)) { result in
        continuation.yield((try? result.get())?.first?.port ?? 0)
      }
    }
    ask()
    await withCheckedContinuation { done in
      DispatchQueue.global().async {
        begun.wait()
        done.resume()
      }
    }
    for _ in 0..<3 { ask() }
    // why: that nothing begins can only be waited for.
    let isAnotherBegun = { begun.wait(timeout: .now() + 0.2) == .success }
    #expect(!isAnotherBegun())
    gate.signal()
    gate.signal()
    var ports: [UInt16] = []
    for await port in answers {
      ports.append(port)
      if ports.count == 4 { break }
    }
    #expect(ports.sorted() == [1001, 1002, 1002, 1002])
    #expect(count.withLock { $0 } == 2)
  }

  @Test("the last addresses stand in for silence, and end with an answer that there are none")
  func remembered() async {
    let state = Locked<Result<[TLSTools.Endpoint], NameResolver.Failure>>(.success([.loopback(1)]))
    let resolver = NameResolver { _, _ in state.withLock { $0 } }
    #expect(resolver.lastFound("a.test", port: 443) == nil)
    _ = await isAnswered("a.test", resolver)
    state.withLock { $0 = .failure(.init(reason: "nobody answered", isFinal: false)) }
    _ = await isAnswered("a.test", resolver)
    #expect(resolver.lastFound("a.test", port: 443) == [.loopback(1)])
    state.withLock { $0 = .failure(.init(reason: "no such name")) }
    _ = await isAnswered("a.test", resolver)
    #expect(resolver.lastFound("a.test", port: 443) == nil)
  }

  @Test("who gave up is told when a name turns out to have addresses")
  func late() async {
    let gate = DispatchSemaphore(value: 0)
    let resolver = NameResolver { _, port in
      gate.wait()
      return .success([.loopback(port)])
    }
    let (told, continuation) = AsyncStream<String>.makeStream()
    resolver.whenFoundLate { continuation.yield($0) }
    resolver.resolve("late.test", port: 443, until: .after(milliseconds: 0)) { _ in
      Issue.record("an answer after the deadline")
    }
    gate.signal()
    for await host in told {
      #expect(host == "late.test")
      break
    }
  }
}
