import RegistryStores
import Testing

@testable import RegistryServer

@Suite("A confirmation that another server carries out") struct ProposalMarkTests {
  fileprivate static let now: Int64 = 1_000_000

  fileprivate static func proposal(_ hosts: [String] = []) -> Proposal {
    Proposal(
      route: "POST /denials", path: [:], query: [], body: "{}", what: "deny", why: "x",
      hosts: hosts, basis: "", who: "alice", token: "t", at: now, expires: now + Proposal.life)
  }

  @Test(
    "is neither taken back nor made again while its mark is renewed, whatever the clocks say",
    arguments: [-3600, -200, 0, 200, 3600] as [Int64])
  func skewed(_ skew: Int64) async throws {
    let store = MemoryStore()
    let (one, other) = (ProposalBook(store: store), ProposalBook(store: store))
    let id = try await one.add(Self.proposal()).id
    let begun = try await one.begin(id, at: Self.now)
    func isRefused(after seconds: Int64) async {
      let time = Self.now + skew + seconds
      await #expect(throws: APIError.self) { _ = try await other.withdraw(id, at: time) }
      await #expect(throws: APIError.self) { _ = try await other.begin(id, at: time) }
    }
    await isRefused(after: 0)
    await isRefused(after: Proposal.longestConfirmation - 1)
    // Another mark, from when it is seen.
    await one.settle(begun, isMade: false, at: Self.now + 60)
    _ = try await one.begin(id, at: Self.now + 60)
    await isRefused(after: Proposal.longestConfirmation)
    await isRefused(after: 2 * Proposal.longestConfirmation - 1)
    // That server was ended.
    let end = Self.now + skew + 2 * Proposal.longestConfirmation
    #expect(try await other.list(at: end).map(\.id) == [id])
    #expect(try await other.withdraw(id, at: end).id == id)
  }

  @Test("whose server was ended keeps a proposal no longer than two minutes over its time")
  func ended() async throws {
    let store = MemoryStore()
    let (one, other) = (ProposalBook(store: store), ProposalBook(store: store))
    let id = try await one.add(Self.proposal()).id
    _ = try await one.begin(id, at: Self.now)
    let over = Self.now + Proposal.life
    #expect(try await other.list(at: over).map(\.id) == [id])
    #expect(try await other.list(at: over + Proposal.longestConfirmation - 1).map(\.id) == [id])
    #expect(try await other.list(at: over + Proposal.longestConfirmation).isEmpty)
  }
}

@Suite("The record of proposals") struct ProposalRecordTests {
  private static let now = ProposalMarkTests.now

  @Test("takes no more than can be read again, and what is in it goes on")
  func bounded() async throws {
    let book = ProposalBook(store: MemoryStore(), limit: 2000)
    let id = try await book.add(ProposalMarkTests.proposal()).id
    let hosts = (0..<200).map { ChangeJudgement.Confirmed.mark(of: "host-\($0).example.com") }
    let refused = await #expect(throws: APIError.self) {
      _ = try await book.add(ProposalMarkTests.proposal(hosts))
    }
    #expect(refused?.status == 409)
    #expect(try await book.list(at: Self.now).map(\.id) == [id])
    let begun = try await book.begin(id, at: Self.now)
    await book.settle(begun, isMade: true, at: Self.now)
    #expect(try await book.list(at: Self.now).isEmpty)
  }

  @Test(
    "that is full, or fuller than may be, takes nothing new, and what is in it goes on",
    arguments: [0, 1, 500])
  func full(excess: Int) async throws {
    let (store, now) = (MemoryStore(), Self.now)
    let roomy = ProposalBook(store: store)
    var ids: [String] = []
    for host in ["a", "b", "c"] {
      ids.append(try await roomy.add(ProposalMarkTests.proposal([host])).id)
    }
    let size = try #require(try await store.record(named: ProposalBook.recordName)).bytes.count
    let book = ProposalBook(store: store, limit: size - excess)
    let refused = await #expect(throws: APIError.self) {
      _ = try await book.add(ProposalMarkTests.proposal(["d"]))
    }
    #expect(refused?.status == 409)
    #expect(try await book.add(ProposalMarkTests.proposal(["a"])).id == ids[0])
    let tried = try await book.begin(ids[0], at: now)
    await book.settle(tried, isMade: false, at: now)
    let made = try await book.begin(ids[0], at: now)
    await book.settle(made, isMade: true, at: now)
    #expect(try await book.list(at: now).map(\.id) == [ids[1], ids[2]])
    #expect(try await book.withdraw(ids[1], at: now).id == ids[1])
    #expect(try await book.list(at: now).map(\.id) == [ids[2]])
    await book.tidy(at: now + Proposal.life)
    #expect(try await book.list(at: now).isEmpty)
  }

  @Test("has room for a forced denial that locks out a hundred thousand hosts")
  func manyHosts() {
    let mark = ChangeJudgement.Confirmed.mark(of: String(repeating: "a", count: 253))
    #expect(100_000 * (mark.utf8.count + 3) * ProposalBook.mostOfOne < ProposalBook.mostBytes)
    #expect(mark != ChangeJudgement.Confirmed.mark(of: String(repeating: "a", count: 252)))
  }

  @Test("is told in the log if it cannot be read, and begun anew")
  func unreadable() async throws {
    let (store, log) = (MemoryStore(), LogCollector())
    _ = try await store.replace(ProposalBook.recordName, version: 0, with: Array("{".utf8))
    let book = ProposalBook(store: store, log: log.log)
    #expect(try await book.list(at: Self.now).isEmpty)
    #expect(log.events("proposals_not_believed").count == 1)
    let id = try await book.add(ProposalMarkTests.proposal()).id
    #expect(try await book.list(at: Self.now).map(\.id) == [id])
  }
}
