import RegistryStores
import Testing

@testable import RegistryServer

@Suite("A confirmation that another server carries out") struct ProposalMarkTests {
  private static let now: Int64 = 1_000_000

  private static func proposal() -> Proposal {
    Proposal(
      route: "POST /denials", path: [:], query: [], body: "{}", what: "deny", why: "x", basis: "",
      who: "alice", token: "t", at: now, expires: now + Proposal.life)
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
