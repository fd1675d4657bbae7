import Foundation
import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("What a task may do")
struct TaskRuleTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let url: String?
    var kind = TaskKind.request
    /// Why it is refused on a session for listed hosts and on one for unlisted ones; `nil`: it may leave.
    let fault: PinEvaluation.Outcome?

    var testDescription: String { "\(kind) \(url ?? "without a URL")" }
  }

  static let rows = [
    Row(url: "https://a.example/", fault: nil), Row(url: "HTTPS://a.example/", fault: nil),
    Row(url: "wss://a.example/", fault: nil), Row(url: "data:,a", fault: nil),
    Row(url: "file:///a", fault: nil),
    Row(url: "http://a.example/", fault: .clearText(scheme: "http")),
    Row(url: "HTTP://a.example/", fault: .clearText(scheme: "http")),
    Row(url: "ws://a.example/", fault: .clearText(scheme: "ws")),
    Row(url: "ftp://a.example/", fault: .clearText(scheme: "ftp")),
    Row(url: "gopher://a.example/", fault: .clearText(scheme: "gopher")),
    Row(url: "//a.example/", fault: .clearText(scheme: "")),
    Row(url: nil, fault: .unjudged("the task names no URL")),
    Row(url: nil, kind: .stream, fault: .clearText(scheme: "tcp")),
    // Whatever the system may call its request.
    Row(url: "https://a.example/", kind: .stream, fault: .clearText(scheme: "tcp")),
  ]

  @Test("on a session that pins, and nothing at all on one that cannot", arguments: rows)
  func admitted(row: Row) throws {
    let url = try row.url.map { try #require(URL(string: $0)) }
    #expect(TaskRule.fault(of: row.kind, to: url, in: .pinned) == row.fault)
    #expect(TaskRule.fault(of: row.kind, to: url, in: .unlisted) == row.fault)
    #expect(
      TaskRule.fault(of: row.kind, to: url, in: .refusing(reason: "why")) == .unjudged("why"))
  }
}
