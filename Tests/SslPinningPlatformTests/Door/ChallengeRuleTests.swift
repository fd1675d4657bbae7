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
    let level: Rule.Level
    let step: Rule.Step

    var testDescription: String {
      "\(method)\(isProxy ? " of a proxy" : "")\(hasTrust ? "" : " without trust") at the \(level)"
    }
  }

  static let all: [Rule.Asked] = [.appSession, .taskOwn, .appTask]
  /// Both levels wherever the documents leave open which one is asked first.
  static let rows =
    Rule.Level.allCases.flatMap { level in
      [
        Row(method: .serverTrust, level: level, step: .judge),
        Row(method: .serverTrust, hasTrust: false, level: level, step: .cancel),
        Row(method: .serverTrust, isProxy: true, level: level, step: .leaveToSystem),
        Row(
          method: .serverTrust, isProxy: true, hasTrust: false, level: level, step: .leaveToSystem),
      ]
    } + [
      Row(method: .sessionWide, level: .session, step: .ask(all)),
      Row(method: .sessionWide, isProxy: true, level: .session, step: .ask(all)),
      Row(method: .perTask, level: .session, step: .ask(all)),
      Row(method: .sessionWide, level: .task, step: .ask([.taskOwn, .appTask, .appSession])),
      // The session's method is not meant for these, and may cancel what it does not know.
      Row(method: .perTask, level: .task, step: .ask([.taskOwn, .appTask])),
    ]

  @Test("by table, on every session that pins", arguments: rows)
  func pinning(row: Row) {
    for role in [SessionRole.pinned, .unlisted] {
      #expect(
        Rule.step(
          at: row.level, about: row.method, isProxy: row.isProxy, hasTrust: row.hasTrust, in: role)
          == row.step)
    }
  }

  @Test("nobody, on a session that cannot pin", arguments: rows)
  func refusing(row: Row) {
    #expect(
      Rule.step(
        at: row.level, about: row.method, isProxy: row.isProxy, hasTrust: row.hasTrust,
        in: .refusing(reason: "why")) == .cancel)
  }

  @Test("a task's own delegate for every client certificate, at whatever level it is asked for")
  func ownDelegate() {
    for level in Rule.Level.allCases {
      guard
        case .ask(let order) = Rule.step(
          at: level, about: .sessionWide, isProxy: false, hasTrust: false, in: .pinned)
      else {
        Issue.record("nobody is asked at the \(level)")
        continue
      }
      #expect(order.contains(.taskOwn))
      #expect(Set(order).count == order.count)
    }
  }

  @Test("a task of the challenged host, or any if it is a proxy's challenge")
  func concerned() {
    let url = URL(string: "https://A.example:8443/b")
    #expect(Rule.concerns(url, host: "a.example", isProxy: false))
    #expect(!Rule.concerns(url, host: "b.example", isProxy: false))
    #expect(Rule.concerns(url, host: "proxy.example", isProxy: true))
    #expect(!Rule.concerns(nil, host: "a.example", isProxy: false))
  }
}
