import FaultLab
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import SslPinningPlatform

@Suite("Threads that several clients share")
struct ThreadTurnsTests {
  /// Brings work for so many owners, one after the other, and tells which of it runs at once. Each is called by its place.
  private func begin(_ owners: [UInt64], in turns: inout ThreadTurns<Int>) -> [Bool] {
    var began: [Bool] = []
    for (place, owner) in owners.enumerated() { began.append(turns.begin(place, for: owner)) }
    return began
  }

  /// Ends work of these owners, one after the other, and tells what runs in its place.
  private func end(_ owners: [UInt64], in turns: inout ThreadTurns<Int>) -> [Int?] {
    var next: [Int?] = []
    for owner in owners { next.append(turns.end(for: owner)?.work) }
    return next
  }

  @Test("one client has no more than its share, and what it brings beyond that waits")
  func share() {
    var turns = ThreadTurns<Int>(limit: 4, share: 2)
    let began = begin([1, 1, 1, 2, 2, 2], in: &turns)
    #expect(began == [true, true, false, true, true, false])
    let next = end([1, 2, 1], in: &turns)
    #expect(next == [2, 5, nil])
  }

  @Test("all clients together have no more than there are, first come, first served")
  func limit() {
    var turns = ThreadTurns<Int>(limit: 2, share: 2)
    let began = begin([1, 2, 3, 4], in: &turns)
    #expect(began == [true, true, false, false])
    let next = end([2, 1, 3], in: &turns)
    #expect(next == [2, 3, nil])
    let later = begin([1, 1], in: &turns)
    #expect(later == [true, false])
  }

  @Test("what waits for its client's share does not hold up what another one brings")
  func passesBy() {
    var turns = ThreadTurns<Int>(limit: 2, share: 1)
    let began = begin([1, 1, 2, 3], in: &turns)
    #expect(began == [true, false, true, false])
    let next = end([2, 1, 3, 1], in: &turns)
    #expect(next == [3, 1, nil, nil])
  }

  @Test("a client whose registry is silent keeps no fetch of another one waiting")
  func silentRegistry() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let site = try PinnedSite()
      let silent = try LocalRawServer(.silent)
      let attacked = try DocumentFetcher(trust: .anchors([site.authority.root.der]))
      let hanging = DocumentRequest(
        url: try RegistryURL("https://localhost:\(silent.port)/"), maximumBytes: 100, timeout: 600)
      for _ in 0..<60 { Task { _ = try? await attacked.fetch(hanging) } }
      guard await eventually(within: 60, { silent.connections >= 40 }) else { exit(1) }
      let other = try DocumentFetcher(trust: .anchors([site.authority.root.der]))
      let request = DocumentRequest(
        url: try RegistryURL(site.url().absoluteString), maximumBytes: 100, timeout: 20)
      let answer = try await other.fetch(request)
      exit(answer == .fresh(Array("hello".utf8), etag: nil) ? 7 : 8)
    }
  }
}
