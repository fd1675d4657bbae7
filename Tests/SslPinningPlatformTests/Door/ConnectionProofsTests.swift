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
    case unjudged(String)
  }

  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    /// Challenges accepted for `a.example`, in the order in which their verdicts came: when each arrived.
    var challenged: [Double] = [100]
    /// Later ones, of newer pins.
    var challengedSince: [Double] = []
    var generation: UInt64 = 7
    var url = "https://a.example/"
    var isReused = false
    /// When its handshake began and ended.
    var secured: Double? = 100
    var established: Double?
    var begun: Double? = 300
    var isAnswered = true
    var isCached = false
    let finding: Finding

    var testDescription: String { name }
  }

  static let resumed = Finding.unjudged(
    "a new connection was not challenged: it resumed a TLS session")
  static let unknown = Finding.unjudged("a connection was never challenged for this host")
  static let unknownReused = Finding.unjudged(
    "a reused connection was never challenged for this host")
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
      name: "times that are no numbers", secured: .nan, established: .nan, begun: .nan,
      finding: .judged),
    Row(
      name: "verdicts that came in another order", challenged: [200, 100], secured: 199,
      finding: .judged),
    Row(name: "a challenge in its handshake", secured: 99.9, established: 104, finding: .judged),
    // Its answer was held back until another connection had been challenged.
    Row(
      name: "a challenge after its handshake", secured: 90, established: 98, finding: resumed),
    Row(
      name: "challenges before and after its handshake", challenged: [80, 100], secured: 90,
      established: 91, finding: resumed),
    Row(
      name: "one of two handshakes at a time", challenged: [90.5, 100], secured: 90,
      established: 91, finding: .judged),
    Row(
      name: "times that contradict each other", secured: 99.9, established: 0, finding: .judged),
    Row(name: "other pins", generation: 8, isReused: true, finding: .judgeAgain),
    // It outlived the change: what was accepted since says nothing of the connection that it went over.
    Row(
      name: "other pins, and a newer connection that it cannot have gone over",
      challengedSince: [200], generation: 8, isReused: true, begun: 150, finding: .judgeAgain),
    Row(
      name: "the same, the first on its connection", challengedSince: [200], generation: 8,
      begun: 150, finding: .judgeAgain),
    Row(
      name: "other pins, and a newer connection", challengedSince: [200], generation: 8,
      isReused: true, finding: .judged),
    Row(
      name: "other pins, a newer connection, and a system that names no time",
      challengedSince: [200], generation: 8, isReused: true, begun: nil, finding: .judged),
    Row(
      name: "a connection that is older than all that is remembered",
      challenged: (100..<140).map(Double.init), isReused: true, begun: 101, finding: .judged),
    Row(
      name: "no challenge for this host, HTTP/2", url: "https://b.example/", isReused: true,
      finding: unknownReused),
    Row(name: "no challenge for this host", url: "https://b.example/", finding: unknown),
    Row(
      name: "the same, and no answer came", url: "https://b.example/", isAnswered: false,
      finding: unknown),
    Row(
      name: "the same, and an answer without word of its request", url: "https://b.example/",
      begun: nil, finding: unknown),
    Row(
      name: "nothing left: its handshake was refused", url: "https://b.example/", begun: nil,
      isAnswered: false, finding: .judged),
    Row(
      name: "the same, and times that are no numbers", url: "https://b.example/", isReused: true,
      secured: .nan, established: .nan, begun: .nan, isAnswered: false, finding: .judged),
    Row(
      name: "a cache answered", url: "https://b.example/", isCached: true, finding: .judged),
    Row(
      name: "a host that is no name", url: "https://a..example/",
      finding: .told(.unreadableHost(.badLabel("a..example")))),
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

  private func finding(_ proofs: inout ConnectionProofs, _ row: Row) throws -> Finding {
    let facts = TransactionFacts(
      url: URL(string: row.url), isReused: row.isReused,
      secured: row.secured.map { Date(timeIntervalSince1970: $0) },
      established: row.established.map { Date(timeIntervalSince1970: $0) },
      begun: row.begun.map { Date(timeIntervalSince1970: $0) }, isAnswered: row.isAnswered,
      isCached: row.isCached)
    switch proofs.finding(about: facts, generation: row.generation) {
    case .judged: return .judged
    case .judgeAgain(let proof):
      #expect(proof.host.description == "a.example")
      return .judgeAgain
    case .told(let evaluation):
      #expect(evaluation.decision == .accept, "it has left")
      return .told(evaluation.outcome)
    case .unjudged(_, let why): return .unjudged(why)
    }
  }

  @Test("by table", arguments: rows)
  func table(row: Row) throws {
    var proofs = ConnectionProofs()
    for time in row.challenged { proofs.keep(try proof("a.example", challenged: time)) }
    for time in row.challengedSince {
      proofs.keep(try proof("a.example", challenged: time, generation: 8))
    }
    #expect(try finding(&proofs, row) == row.finding)
  }

  @Test("nothing of a host, once a connection to it was not judged, until it is challenged again")
  func unproved() throws {
    var proofs = ConnectionProofs()
    proofs.keep(try proof("a.example", challenged: 100))
    #expect(try finding(&proofs, Row(name: "", secured: 110, finding: .judged)) == Self.resumed)
    let reused = Row(name: "", isReused: true, secured: 110, finding: .judged)
    #expect(try finding(&proofs, reused) == Self.unknownReused)
    #expect(try finding(&proofs, reused) == Self.unknownReused)
    proofs.keep(try proof("a.example", challenged: 120))
    #expect(try finding(&proofs, reused) == .judged)
  }

  @Test("asks for a flush at most once a minute for each host, of however many")
  func flushes() throws {
    var proofs = ConnectionProofs()
    func starts(_ host: String, at now: Int64) throws -> Bool {
      proofs.startFlush(for: try HostName(host), at: now)
    }
    // An attack on one host takes nothing from another.
    let asked = [
      try starts("a.example", at: 0), try starts("a.example", at: 59),
      try starts("b.example", at: 59), try starts("a.example", at: 60),
      try starts("a.example", at: 119),
    ]
    #expect(asked == [true, false, true, true, false])
    for number in 0..<20_000 { #expect(try starts("h\(number).example", at: 200)) }
    #expect(try starts("a.example", at: 200))
  }

  @Test("is forgotten, or renewed, for one handshake alone")
  func replaced() throws {
    let (old, newer) = (
      try proof("a.example", challenged: 100), try proof("a.example", challenged: 200)
    )
    // The first requests of the two connections.
    let (first, second) = (
      Row(name: "", secured: 100, established: 101, finding: .judged),
      Row(name: "", secured: 200, established: 201, finding: .judged)
    )
    var proofs = ConnectionProofs()
    proofs.keep(old)
    proofs.replace(old, by: nil)
    #expect(try finding(&proofs, first) == Self.unknown)
    proofs.keep(newer)
    proofs.keep(old)
    proofs.replace(newer, by: nil)
    #expect(try finding(&proofs, first) == .judged)
    proofs.keep(newer)
    proofs.replace(old, by: try proof("a.example", challenged: 100, generation: 8))
    #expect(try finding(&proofs, first) == .judgeAgain)
    #expect(try finding(&proofs, second) == .judged)
    proofs.replace(old, by: nil)
    #expect(try finding(&proofs, second) == .judged)
    #expect(try finding(&proofs, first) == Self.resumed)
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
      #expect(try (finding(&proofs, row) == .judged) == expected, "\(number)")
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
  private final class AppSSOProtocol: URLProtocol {}

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
    // The system's own, too, if it hands requests to another app.
    #expect(try protocols([(AppSSOProtocol.self, image)]) == [ObjectIdentifier(Ours.self)])
  }
}
