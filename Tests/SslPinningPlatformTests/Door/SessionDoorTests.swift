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
      let challenge = ChallengeRule.Challenge(
        level: .session, method: method, host: "bank.example", isProxy: true, hasTrust: true)
      #expect(kept.step(about: challenge, requests: []) == .cancel)
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

  @Test("looks at both URLs of a task: one may go on from what an earlier one left")
  func currentRequest() throws {
    let transport = try makeTransport()
    let door = SessionDoor(.pinned) { transport }
    let clear = URL(string: "http://bank.example/")
    #expect(door.admits(.request, to: url, url))
    #expect(door.admits(.request, to: url, nil))
    #expect(door.admits(.request, to: nil, url))
    #expect(!door.admits(.request, to: url, clear))
    #expect(!door.admits(.request, to: clear, url))
    #expect(!door.admits(.request, to: nil, nil))
    #expect(!door.admits(.stream, to: url, url))
    #expect(
      judge.recorded.map(\.outcome) == [
        .clearText(scheme: "http"), .clearText(scheme: "http"),
        .unjudged("the task names no URL"), .clearText(scheme: "tcp"),
      ])
  }

  @Test("judges a challenge for a listed host, though the system says that a proxy asks")
  func listedProxy() throws {
    let transport = try makeTransport()
    let door = SessionDoor(.pinned) { transport }
    for (host, step) in [
      ("BANK.example.", ChallengeRule.Step.judge), ("a..example", .judge),
      ("proxy.example", .leaveToSystem),
    ] {
      let challenge = ChallengeRule.Challenge(
        level: .session, method: .serverTrust, host: host, isProxy: true, hasTrust: true)
      #expect(door.step(about: challenge, requests: [url]) == step, "\(host)")
    }
  }

  /// A door under the anchors of a real root, a server that its pins accept, and its chain.
  private struct Site {
    let authority: CertificateAuthority
    let bank: ServerIdentity
    let judge: ScriptedJudge
    let transport: PinnedTransport
    let door: SessionDoor

    init() throws {
      authority = try CertificateAuthority.makeRoot(name: "Root")
      bank = try authority.issue(names: ["bank.example"])
      let trust = TrustMode.anchors([authority.root.der])
      judge = try ScriptedJudge(["bank.example": bank], trust: trust)
      let transport = try PinnedTransport(trust: trust, judge: judge, longestRefresh: 60)
      self.transport = transport
      door = SessionDoor(.pinned) { transport }
    }

    /// Puts another key in force for the host.
    func pinAnother() throws {
      try judge.pin(["bank.example": try authority.issue(names: ["bank.example"])])
    }

    var validate: ConnectionJudgement.Validate {
      { [leaf = bank.leaf.der] in
        ($0.store.evidence(presented: [leaf], host: $1, at: $2), [leaf])
      }
    }

    func accepts(challenged: Double = 100, _ other: ServerIdentity? = nil) async -> Bool {
      let leaf = (other ?? bank).leaf.der
      return await door.accepts(host: "bank.example", port: 443, challenged: challenged) {
        ($0.store.evidence(presented: [leaf], host: $1, at: $2), [leaf])
      }
    }
  }

  @Test("tells of a request that outlived its pins, whatever was accepted since")
  func outlived() async throws {
    let site = try Site()
    let next = try site.authority.issue(names: ["bank.example"])
    func reused(_ begun: Double) -> TransactionFacts {
      TransactionFacts(
        url: url, isReused: true, secured: nil, established: nil,
        begun: Date(timeIntervalSince1970: begun))
    }
    #expect(await site.accepts(challenged: 100))
    try site.judge.pin(["bank.example": next])
    #expect(await site.accepts(challenged: 200, next))
    #expect(!site.door.finished([reused(250)], at: 0))
    #expect(site.judge.recorded.map(\.rule) == ["matched", "matched"])
    // Two that began before the pins changed end.
    #expect(site.door.finished([reused(150)], at: 0), "to be flushed")
    #expect(!site.door.finished([reused(160)], at: 1))
    #expect(!site.door.finished([reused(260)], at: 2))
    #expect(site.judge.recorded.map(\.rule) == ["matched", "matched", "unjudged", "unjudged"])
    // The old key counts again.
    try site.judge.pin(["bank.example": site.bank])
    #expect(!site.door.finished([reused(150)], at: 3))
    #expect(site.judge.recorded.count == 4)
  }

  @Test("gives up a connection that the pins have let go of, and tells of each request over it")
  func judgedAgain() async throws {
    let site = try Site()
    #expect(await site.accepts())
    let reused = TransactionFacts(url: url, isReused: true, secured: nil, established: nil)
    #expect(!site.door.finished([reused], at: 0))
    #expect(site.judge.recorded.map(\.rule) == ["matched"])
    try site.pinAnother()
    #expect(site.door.finished([reused], at: 0), "to be flushed")
    #expect(site.judge.recorded.last?.rule == "unjudged")
    #expect(site.judge.recorded.last?.description.contains("before a change of pins") == true)
    #expect(!site.door.finished([reused], at: 59), "that was done")
    #expect(site.door.finished([reused], at: 60), "and did not help")
    #expect(site.judge.recorded.map(\.rule) == ["matched", "unjudged", "unjudged", "unjudged"])
  }

  @Test("compares the pins again once a handshake was accepted and told")
  func changedWhileTold() async throws {
    let site = try Site()
    let other = try site.authority.issue(names: ["bank.example"])
    // The last of these holds the judge.
    defer { site.judge.onRecord { _, _ in } }
    site.judge.onRecord { judge, evaluation in
      guard evaluation.decision == .accept else { return }
      try? judge.pin(["bank.example": other])
    }
    #expect(await !site.accepts())
    #expect(site.judge.recorded.map(\.rule) == ["matched", "leaf-pin"])
    #expect(
      site.transport.refusal(for: cancelled("https://bank.example/"))?.rule == "leaf-pin")
    // A change that accepts it as well changes nothing.
    site.judge.onRecord { judge, evaluation in
      guard evaluation.decision == .accept else { return }
      try? judge.pin(["bank.example": site.bank, "new.example": other])
    }
    try site.judge.pin(["bank.example": site.bank])
    #expect(await site.accepts(challenged: 200))
    let reused = TransactionFacts(url: url, isReused: true, secured: nil, established: nil)
    #expect(!site.door.finished([reused], at: 0))
    #expect(site.judge.recorded.last?.rule == "matched")
  }

  @Test("answers for other sessions, with the leave for unlisted hosts only if it is asked for")
  func foreign() async throws {
    let site = try Site()
    let evidence = site.validate
    func accepts(allowsUnlisted: Bool) async -> Bool {
      await site.transport.accepts(
        host: "bank.example", port: 443, allowsUnlisted: allowsUnlisted, validate: evidence)
    }
    #expect(await accepts(allowsUnlisted: false))
    try site.judge.pin([:], unlisted: .systemTrust)
    #expect(await !accepts(allowsUnlisted: false))
    #expect(await accepts(allowsUnlisted: true))
    try site.judge.pin([:])
    #expect(await !accepts(allowsUnlisted: true))
    #expect(
      site.judge.recorded.map(\.rule) == [
        "matched", "unlisted-host", "unlisted-host", "unlisted-host",
      ])
  }
}
