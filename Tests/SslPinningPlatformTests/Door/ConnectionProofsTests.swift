import Foundation
import SslPinningPlatform
import SslPinningRules
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("What an answered request shows")
struct ConnectionProofsTests {
  enum Finding: Equatable, Sendable {
    case judged, judgeAgain
    case told(PinEvaluation.Outcome)
  }

  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    /// Challenges accepted for `a.example`, in the order in which their verdicts came: when each arrived.
    var challenged: [Double] = [100]
    var generation: UInt64 = 7
    var url = "https://a.example/"
    var isReused = false
    var secured: Double? = 100
    let finding: Finding

    var testDescription: String { name }
  }

  static let resumed = Finding.told(
    .unjudged("a new connection was not challenged: it resumed a TLS session"))
  static let rows = [
    Row(name: "its own challenge", finding: .judged),
    Row(name: "the connection of an earlier one", isReused: true, finding: .judged),
    Row(
      name: "a reused connection is not held to the time of its handshake", isReused: true,
      secured: 200, finding: .judged),
    Row(name: "a new connection without a challenge", secured: 102, finding: resumed),
    Row(name: "the same, and other pins meanwhile", generation: 8, secured: 102, finding: resumed),
    Row(name: "clocks that differ a little", secured: 100.9, finding: .judged),
    Row(name: "a system that names no time", secured: nil, finding: .judged),
    Row(
      name: "verdicts that came in another order", challenged: [200, 100], secured: 199,
      finding: .judged),
    Row(name: "other pins", generation: 8, isReused: true, finding: .judgeAgain),
    Row(
      name: "no challenge for this host, HTTP/2", url: "https://b.example/", isReused: true,
      finding: .told(.unjudged("a reused connection was never challenged for this host"))),
    Row(
      name: "no challenge for this host", url: "https://b.example/",
      finding: .told(.unjudged("a connection was never challenged for this host"))),
    Row(name: "the host in another spelling", url: "wss://A.EXAMPLE.:444/", finding: .judged),
    Row(
      name: "clear text", url: "http://a.example/", finding: .told(.clearText(scheme: "http"))),
    Row(name: "a file", url: "file://a.example/b", finding: .judged),
    Row(name: "data", url: "data:,b", finding: .judged),
  ]

  private func proof(_ host: String, challenged: Double, generation: UInt64 = 7) throws
    -> ConnectionProof
  {
    ConnectionProof(
      host: try HostName(host),
      evidence: ChainEvidence(presented: [], validation: .failure(.wrongHost)),
      generation: generation, challenged: challenged)
  }

  private func finding(_ proofs: ConnectionProofs, _ row: Row) throws -> Finding {
    let facts = TransactionFacts(
      url: URL(string: row.url), isReused: row.isReused, secured: row.secured)
    switch proofs.finding(about: facts, generation: row.generation) {
    case .judged: return .judged
    case .judgeAgain(let proof):
      #expect(proof.host.description == "a.example")
      return .judgeAgain
    case .told(let evaluation):
      #expect(evaluation.decision == .accept, "it has left")
      return .told(evaluation.outcome)
    }
  }

  @Test("by table", arguments: rows)
  func table(row: Row) throws {
    var proofs = ConnectionProofs()
    for time in row.challenged { proofs.keep(try proof("a.example", challenged: time)) }
    #expect(try finding(proofs, row) == row.finding)
  }

  @Test("is forgotten after a second look that refused, unless there was another handshake")
  func replaced() throws {
    let (old, newer) = (
      try proof("a.example", challenged: 100), try proof("a.example", challenged: 101)
    )
    let row = Row(name: "", secured: 100, finding: .judged)
    var proofs = ConnectionProofs()
    proofs.keep(old)
    proofs.replace(old, by: nil)
    #expect(try finding(proofs, row) != .judged)
    proofs.keep(old)
    proofs.keep(newer)
    proofs.replace(old, by: nil)
    #expect(try finding(proofs, row) == .judged)
    proofs.replace(newer, by: try proof("a.example", challenged: 101, generation: 8))
    #expect(try finding(proofs, row) == .judgeAgain)
  }

  @Test("is remembered of the latest hosts, however many there are")
  func bounded() throws {
    var proofs = ConnectionProofs()
    for number in 0..<20_000 {
      proofs.keep(try proof("h\(number).example", challenged: Double(number)))
    }
    for (number, expected) in [(19_999, true), (18_500, true), (0, false)] {
      let row = Row(
        name: "", url: "https://h\(number).example/", isReused: true, finding: .judged)
      #expect(try (finding(proofs, row) == .judged) == expected, "\(number)")
    }
  }
}

@Suite("The sessions of a transport")
struct LiveSessionsTests {
  @Test("are flushed when the pins have changed, and only then")
  func changes() {
    let live = LiveSessions()
    let session = URLSession(configuration: .ephemeral)
    #expect(live.due(at: 1).isEmpty)
    live.add(session)
    #expect(live.due(at: 1).isEmpty)
    #expect(live.due(at: 2) == [session])
    #expect(live.due(at: 2).isEmpty)
    // Back is another set of pins, too.
    #expect(live.due(at: 1) == [session])
  }

  @Test("are not flushed once they were invalidated or are gone")
  func ends() {
    let live = LiveSessions()
    let (first, second) = (
      URLSession(configuration: .ephemeral), URLSession(configuration: .ephemeral)
    )
    live.add(first)
    live.add(second)
    _ = live.due(at: 1)
    live.remove(first)
    #expect(live.due(at: 2) == [second])
  }
}

@Suite("An app's configuration on a pinned session")
struct ConfigurationEscapesTests {
  private final class App: URLProtocol {}
  private final class Ours: URLProtocol {}
  private final class Loader: URLProtocol {}

  private func protocols(_ fresh: [(type: AnyClass, image: String?)]) throws -> [ObjectIdentifier] {
    let app = URLSessionConfiguration.default
    app.protocolClasses = [App.self]
    let closed = try #require(
      ConfigurationEscapes.closed(app, refusing: [Ours.self], fresh: fresh))
    return (closed.protocolClasses ?? []).map { ObjectIdentifier($0) }
  }

  @Test("keeps its settings, and loses its cache and its protocol classes")
  func settings() throws {
    let app = URLSessionConfiguration.default
    app.timeoutIntervalForRequest = 7
    app.httpAdditionalHeaders = ["X-App": "1"]
    app.connectionProxyDictionary = ["HTTPSProxy": "proxy.example"]
    app.requestCachePolicy = .returnCacheDataElseLoad
    app.urlCache = URLCache.shared
    app.protocolClasses = [App.self]
    let closed = try #require(ConfigurationEscapes.closed(app, refusing: [Ours.self], fresh: []))
    #expect(closed.urlCache == nil)
    #expect(closed.requestCachePolicy == .reloadIgnoringLocalCacheData)
    #expect(
      (closed.protocolClasses ?? []).map { ObjectIdentifier($0) } == [ObjectIdentifier(Ours.self)])
    #expect(closed.timeoutIntervalForRequest == 7)
    #expect(closed.httpAdditionalHeaders?["X-App"] as? String == "1")
    #expect(closed.connectionProxyDictionary?["HTTPSProxy"] as? String == "proxy.example")
    #expect(app.urlCache != nil, "the app's own configuration is left alone")
  }

  @Test(
    "has the system's loaders behind ours, and nobody else's",
    arguments: [
      ("/System/Library/Frameworks/CFNetwork.framework/CFNetwork", true),
      ("/System/Library/Frameworks/CFNetwork.framework/Versions/A/CFNetwork", true),
      (
        "/Library/Developer/CoreSimulator/Volumes/a/RuntimeRoot/System/Library/Frameworks/CFNetwork.framework/CFNetwork",
        true
      ),
      ("/private/var/containers/Bundle/Application/A/App.app/App", false),
      (
        "/private/var/containers/Bundle/Application/A/App.app/Frameworks/Debug.framework/Debug",
        false
      ),
      ("/System/Applications/App.app/App", false), ("/usr/lib/libdebug.dylib", false), ("", false),
    ])
  func loaders(image: String, isSystem: Bool) throws {
    let expected: [AnyClass] = isSystem ? [Ours.self, Loader.self] : [Ours.self]
    #expect(try protocols([(Loader.self, image)]) == expected.map { ObjectIdentifier($0) })
    #expect(try protocols([(Loader.self, nil)]) == [ObjectIdentifier(Ours.self)])
  }
}
