import Foundation
import SslPinningRules
import TLSTools
import Testing

@testable import SslPinningPlatform

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("The door of a session")
struct SessionDoorTests {
  private let judge: ScriptedJudge
  private let bank: ServerIdentity
  private let url = URL(string: "https://bank.example/")

  init() throws {
    bank = try CertificateAuthority.makeRoot(name: "Root").issue(names: ["bank.example"])
    judge = try ScriptedJudge(["bank.example": bank], trust: .system)
  }

  private func makeTransport() throws -> PinnedTransport {
    try PinnedTransport(trust: .system, judge: judge, longestRefresh: 60)
  }

  /// What the system reports of a task that was cancelled.
  private func cancelled(_ url: String) -> NSError {
    NSError(
      domain: NSURLErrorDomain, code: NSURLErrorCancelled,
      userInfo: [NSURLErrorFailingURLErrorKey: URL(string: url) as Any])
  }

  @Test("of the client's own session lets its transport go, and then lets nothing out")
  func released() async throws {
    weak var gone: PinnedTransport?
    var door: SessionDoor?
    do {
      let transport = try makeTransport()
      gone = transport
      door = SessionDoor(.pinned) { [weak transport] in transport }
      #expect(door?.admits(.request, to: url) == true)
    }
    #expect(gone == nil)
    let kept = try #require(door)
    #expect(!kept.admits(.request, to: url))
    #expect(!kept.follows(to: url, from: url))
    for method in ChallengeRule.Method.allCases {
      #expect(kept.step(at: .session, about: method, isProxy: true, hasTrust: true) == .cancel)
    }
    #expect(
      await !kept.accepts(host: "bank.example", port: 443, challenged: 0) { _, _, _ in
        Issue.record("asked for a chain")
        return (.notValidated(presented: []), [])
      })
  }

  @Test("validates a chain anew after a refresh that may have made its dates valid")
  func early() async throws {
    let transport = try makeTransport()
    let door = SessionDoor(.pinned) { transport }
    judge.setTime(TrustTime(clock: 1000, floor: 1000))
    judge.onRefresh { $0.setTime(TrustTime(clock: 1000, floor: 5000)) }
    let asked = Locked<[[Int64]]>([])
    let early = ChainEvidence(
      presented: [],
      validation: .failure(.outOfDate(code: 9, reason: "not yet valid", mayBeEarly: true)))
    let isAccepted = await door.accepts(host: "bank.example", port: 443, challenged: 0) {
      _, _, moments in
      asked.withLock { $0.append(moments) }
      return (early, [])
    }
    #expect(!isAccepted)
    let moments = asked.withLock { $0 }
    #expect(moments.count == 2 && !moments[0].contains(5000) && moments[1].contains(5000))
  }

  @Test("makes the refusal of a task known behind the error of its cancel")
  func refusal() throws {
    let transport = try makeTransport()
    let door = SessionDoor(.pinned) { transport }
    #expect(transport.refusal(for: cancelled("http://bank.example/")) == nil)
    #expect(!door.admits(.request, to: URL(string: "http://bank.example/")))
    #expect(transport.refusal(for: cancelled("http://bank.example/"))?.rule == "clear-text")
    #expect(
      !door.follows(to: URL(string: "ftp://b.example/"), from: URL(string: "https://a.example/")))
    // The error names the URL that led there, or the one it led to.
    for host in ["a.example", "b.example"] {
      #expect(
        transport.refusal(for: cancelled("https://\(host)/"))?.outcome == .clearText(scheme: "ftp"))
    }
    #expect(judge.recorded.map(\.rule) == ["clear-text", "clear-text"])
    #expect(judge.recorded.allSatisfy { $0.decision == .refuse })
  }

  @Test("says why a session cannot pin")
  func cannotPin() throws {
    let transport = try makeTransport()
    let door = SessionDoor(.refusing(reason: "background sessions run elsewhere")) { transport }
    #expect(!door.admits(.request, to: url))
    let refusal = try #require(transport.refusal(for: cancelled("https://bank.example/")))
    #expect(refusal.description.contains("background sessions run elsewhere"))
    #expect(judge.recorded == [refusal])
  }

  @Test("tells of nothing a second time, if the pins let go of a connection")
  func judgedAgainOnce() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let bank = try authority.issue(names: ["bank.example"])
    let trust = TrustMode.anchors([authority.root.der])
    let judge = try ScriptedJudge(["bank.example": bank], trust: trust)
    let transport = try PinnedTransport(trust: trust, judge: judge, longestRefresh: 60)
    let door = SessionDoor(.pinned) { transport }
    let accepted = await door.accepts(host: "bank.example", port: 443, challenged: 100) {
      ($0.store.evidence(presented: [bank.leaf.der], host: $1, at: $2), [bank.leaf.der])
    }
    #expect(accepted)
    let reused = TransactionFacts(url: url, isReused: true, secured: 100)
    door.finished([reused])
    #expect(judge.recorded.map(\.rule) == ["matched"])
    try judge.pin(["bank.example": try authority.issue(names: ["bank.example"])])
    door.finished([reused])
    #expect(judge.recorded.last?.rule == "unjudged")
    // From here on it is a connection that nobody vouches for.
    #expect(judge.recorded.last?.description.contains("before a change of pins") == true)
    door.finished([reused])
    #expect(judge.recorded.last?.description.contains("never challenged") == true)
  }
}
