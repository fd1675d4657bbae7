import Foundation
import SslPinningPlatform
import Testing

@Suite("Who answers a challenge")
struct ChallengeRuleTests {
  typealias Rule = ChallengeRule

  struct Row: Sendable, CustomTestStringConvertible {
    let method: Rule.Method
    var isProxy = false
    var hasTrust = true
    var isListed = false
    /// Where the session's tasks go; `nil`: nobody has looked.
    var requests: [String]? = ["https://other.example/"]
    let level: Rule.Level
    let step: Rule.Step

    var challenge: Rule.Challenge {
      Rule.Challenge(
        level: level, method: method, host: "Proxy.example", isProxy: isProxy, hasTrust: hasTrust)
    }

    var testDescription: String {
      "\(method)\(isProxy ? " of a proxy" : "")\(hasTrust ? "" : " without trust") at the \(level), "
        + "\(isListed ? "listed" : "not listed"), tasks \(requests ?? ["not known"])"
    }
  }

  static let all: [Rule.Asked] = [.appSession, .taskOwn, .appTask]
  /// Both levels wherever the documents leave open which one is asked first.
  static let rows =
    Rule.Level.allCases.flatMap { level in
      [
        Row(method: .serverTrust, level: level, step: .judge),
        // Before anybody looks up tasks: no verdict waits for that.
        Row(method: .serverTrust, requests: nil, level: level, step: .judge),
        Row(method: .serverTrust, hasTrust: false, level: level, step: .cancel),
        Row(method: .serverTrust, isProxy: true, level: level, step: .leaveToSystem),
        Row(
          method: .serverTrust, isProxy: true, hasTrust: false, level: level, step: .leaveToSystem),
        Row(method: .serverTrust, isProxy: true, requests: [], level: level, step: .leaveToSystem),
        // The mark is not believed where the host has pins or a request goes.
        Row(method: .serverTrust, isProxy: true, isListed: true, level: level, step: .judge),
        Row(
          method: .serverTrust, isProxy: true, isListed: true, requests: nil, level: level,
          step: .judge),
        Row(
          method: .serverTrust, isProxy: true, hasTrust: false, isListed: true, level: level,
          step: .cancel),
        Row(
          method: .serverTrust, isProxy: true,
          requests: ["https://a.example/", "wss://PROXY.example.:8443/b"], level: level,
          step: .judge),
        Row(
          method: .serverTrust, isProxy: true, hasTrust: false,
          requests: ["https://proxy.example/"], level: level, step: .cancel),
        Row(method: .serverTrust, isProxy: true, requests: nil, level: level, step: .lookUp),
        Row(method: .sessionWide, requests: nil, level: level, step: .lookUp),
        Row(method: .perTask, requests: nil, level: level, step: .lookUp),
      ]
    } + [
      Row(method: .sessionWide, level: .session, step: .ask(all)),
      Row(method: .sessionWide, isProxy: true, level: .session, step: .ask(all)),
      Row(method: .perTask, level: .session, step: .ask(all)),
      Row(method: .sessionWide, level: .task, step: .ask([.taskOwn, .appTask, .appSession])),
      // The session's method is not meant for these, and may cancel what it does not know.
      Row(method: .perTask, level: .task, step: .ask([.taskOwn, .appTask])),
    ]

  private func step(_ row: Row, in role: SessionRole) throws -> Rule.Step {
    let requests = try row.requests?.map { Optional(try #require(URL(string: $0))) }
    return Rule.step(about: row.challenge, isListed: row.isListed, requests: requests, in: role)
  }

  @Test("by table, on every session that pins", arguments: rows)
  func pinning(row: Row) throws {
    for role in [SessionRole.pinned, .unlisted] {
      #expect(try step(row, in: role) == row.step)
    }
  }

  @Test("nobody, on a session that cannot pin", arguments: rows)
  func refusing(row: Row) throws {
    #expect(try step(row, in: .refusing(reason: "why")) == .cancel)
  }

  @Test("a task's own delegate for every client certificate, at whatever level it is asked for")
  func ownDelegate() throws {
    for level in Rule.Level.allCases {
      let row = Row(method: .sessionWide, hasTrust: false, level: level, step: .ask(Self.all))
      guard case .ask(let order) = try step(row, in: .pinned) else {
        Issue.record("nobody is asked at the \(level)")
        continue
      }
      #expect(order.contains(.taskOwn))
      #expect(Set(order).count == order.count)
    }
  }

  @Test("a task of the challenged host; any if it is a proxy's challenge; the task that is asked")
  func concerned() {
    let url = URL(string: "https://A.example:8443/b")
    func concerns(
      _ url: URL?, _ host: String, isProxy: Bool = false, at level: Rule.Level = .session
    ) -> Bool {
      Rule.Challenge(
        level: level, method: .sessionWide, host: host, isProxy: isProxy, hasTrust: false
      ).concerns(url)
    }
    #expect(concerns(url, "a.example."))
    #expect(!concerns(url, "b.example"))
    #expect(concerns(url, "proxy.example", isProxy: true))
    #expect(!concerns(nil, "a.example"))
    #expect(concerns(nil, "a.example", at: .task))
    // Names that nobody can read are compared as they stand.
    #expect(concerns(URL(string: "https://a..B/"), "A..b"))
  }
}
