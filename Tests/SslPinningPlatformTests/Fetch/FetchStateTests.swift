import Foundation
import SslPinningRules
import TLSTools
import Testing

@testable import SslPinningPlatform

@Suite("The state of a fetch over a task of the platform's session")
struct FetchStateTests {
  enum Event: Sendable {
    case redirect(String)
    case head(Int, length: Int64 = -1)
    case notHTTP
    case data(Int)
    case ended
    case broken
  }

  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var kind = HTTPExchange.Kind.get
    let events: [Event]
    /// What each event but the last leads to, `go`; and how it ends.
    let steps: [String]
  }

  private static let next = Event.redirect("https://b.test/")

  static let rows = [
    Row(
      testDescription: "a document as large as may be",
      events: [.head(200), .data(60), .data(40), .ended],
      steps: ["go", "go", "go", "200 with 100"]),
    Row(
      testDescription: "one byte too many", events: [.head(200), .data(60), .data(41)],
      steps: ["go", "go", "too large"]),
    Row(
      testDescription: "a length that is too much", events: [.head(200, length: 101)],
      steps: ["too large"]),
    Row(
      testDescription: "an answer without a body", events: [.head(304), .ended],
      steps: ["go", "304 with 0"]),
    Row(testDescription: "an answer that is not HTTP", events: [.notHTTP], steps: ["not HTTP"]),
    Row(testDescription: "an end without an answer", events: [.ended], steps: ["not HTTP"]),
    Row(testDescription: "a body without a head", events: [.data(1)], steps: ["no head"]),
    Row(
      testDescription: "a body that breaks off", events: [.head(200), .data(60), .broken],
      steps: ["go", "go", "the system's words"]),
    Row(testDescription: "no answer", events: [.broken], steps: ["the system's words"]),
    Row(
      testDescription: "five redirects",
      events: [next, next, next, next, next, .head(200), .ended],
      steps: ["go", "go", "go", "go", "go", "go", "200 with 0"]),
    Row(
      testDescription: "six", events: [next, next, next, next, next, next],
      steps: ["go", "go", "go", "go", "go", "too many"]),
    Row(
      testDescription: "a redirect to clear text, on this machine, too",
      events: [.redirect("http://127.0.0.1/")],
      steps: ["clear text"]),
    Row(
      testDescription: "a scheme in capitals",
      events: [.redirect("HTTPS://b.test/"), .head(200), .ended],
      steps: ["go", "go", "200 with 0"]),
    Row(
      testDescription: "a redirect of what only this server may say", kind: .getHere,
      events: [next], steps: ["302 with 0"]),
    Row(
      testDescription: "a redirect of a post", kind: .post([]),
      events: [.redirect("http://b.test/")], steps: ["302 with 0"]),
    Row(
      testDescription: "a long answer to a post", kind: .post([]),
      events: [.head(200), .data(60), .data(60)], steps: ["go", "go", "200 with 60"]),
    Row(
      testDescription: "an answer to a post that says it is long", kind: .post([]),
      events: [.head(429, length: 1000)], steps: ["429 with 0"]),
    Row(
      testDescription: "an answer to a post that breaks off", kind: .post([]),
      events: [.head(200), .broken], steps: ["go", "200 with 0"]),
    Row(
      testDescription: "no answer to a post", kind: .post([]), events: [.broken],
      steps: ["the system's words"]),
  ]

  @Test("goes on or ends", arguments: rows)
  func steps(_ row: Row) throws {
    var state = FetchState(
      HTTPExchange(
        url: try RegistryURL("https://a.test/"), kind: row.kind, headers: [], maximumBytes: 100,
        timeout: 1))
    let steps = row.events.map { event in
      switch event {
      case .redirect(let target):
        Self.text(state.redirect(to: URL(string: target), by: HTTPAnswer(status: 302, body: [])))
      case .head(let status, let length):
        Self.text(state.head(HTTPAnswer(status: status, body: []), expecting: length))
      case .notHTTP: Self.text(state.head(nil, expecting: -1))
      case .data(let count): Self.text(state.data(Data(count: count)))
      case .ended: Self.text(.end(state.ended(nil)))
      case .broken: Self.text(.end(state.ended("the system's words")))
      }
    }
    #expect(steps == row.steps)
  }

  private static func text(_ step: FetchState.Step) -> String {
    switch step {
    case .goOn: "go"
    case .end(.success(let answer)): "\(answer.status) with \(answer.body.count)"
    case .end(.failure(.tooLarge(limit: 100))): "too large"
    case .end(.failure(.unreachable(let reason))):
      switch reason {
      case "the answer is not HTTP": "not HTTP"
      case "a body without a head": "no head"
      case "more than 5 redirects": "too many"
      case "a redirect to another scheme than https": "clear text"
      default: reason
      }
    case .end(.failure(let error)): "\(error)"
    }
  }

  @Test(
    "a tag that cannot be sent back is none",
    arguments: [("\"a\"", "\"a\""), ("", nil), ("\"a\r\n\"", nil), (nil, nil)]
      as [(String?, String?)])
  func tags(tag: String?, kept: String?) {
    var answer = HTTPAnswer(status: 200, etag: tag, body: [])
    #expect(answer.etag == kept)
    answer.etag = tag
    #expect(answer.etag == kept)
  }

  // MARK: the dates of a registry's server

  private static func failure(_ fault: ChainFault) -> ChainEvidence {
    ChainEvidence(presented: [], validation: .failure(fault))
  }

  @Test("a chain that fails for its dates alone is judged at its beginning, too")
  func judgedAtItsBeginning() throws {
    let authority = try CertificateAuthority.makeRoot(name: "Test root")
    let leaf = try authority.issue(names: ["a.test"]).leaf.der
    let beginning = try #require(SubjectPublicKeyInfo.validity(inCertificate: leaf)).notBefore
    let time = TrustTime(clock: beginning - 10_000, floor: beginning - 20_000)
    for (fault, isLast) in [
      (ChainFault.outOfDate(code: 9, reason: "not yet", mayBeEarly: true), true),
      (.untrusted(code: 20, reason: "x"), false), (.wrongHost, false),
    ] {
      var times: [[Int64]] = []
      _ = RegistryDates.evidence(
        at: time, presented: { [leaf] },
        judging: {
          times.append($0)
          return Self.failure(fault)
        })
      #expect(times == [time.dates] + (isLast ? [[beginning]] : []))
    }
  }

  @Test("a chain that is not valid yet is told apart, if a clock is known to be asked about")
  func early() {
    let early = ChainFault.outOfDate(code: 9, reason: "not yet", mayBeEarly: true)
    let late = ChainFault.outOfDate(code: 10, reason: "expired", mayBeEarly: false)
    let time = TrustTime(clock: 2000, floor: nil)
    #expect(RegistryDates.error(for: early, at: time) == .notYetValid(clock: 2000))
    #expect(RegistryDates.error(for: early, at: nil) == .unreachable("not yet"))
    #expect(RegistryDates.error(for: late, at: time) == .unreachable("expired"))
  }

  @Test(
    "knows the hosts that a challenge is a server's for: the first, and those that it was led to")
  func asked() throws {
    let exchange = HTTPExchange(
      url: try RegistryURL("https://a.test/list"), kind: .get, headers: [], maximumBytes: 1,
      timeout: 1)
    var state = FetchState(exchange)
    let head = HTTPAnswer(status: 302, body: [])
    _ = state.redirect(to: URL(string: "https://b.test/"), by: head)
    _ = state.redirect(to: URL(string: "http://c.test/"), by: head)
    #expect(state.asked.compactMap { $0?.host } == ["a.test", "b.test"])
    for (host, step) in [
      ("a.test", ChallengeRule.Step.judge), ("b.test", .judge), ("proxy.test", .leaveToSystem),
    ] {
      let challenge = ChallengeRule.Challenge(
        level: .session, method: .serverTrust, host: host, isProxy: true, hasTrust: true)
      #expect(
        ChallengeRule.step(
          about: challenge, isListed: false, requests: state.asked, in: .unlisted) == step,
        "\(host)")
    }
  }
}
