import Foundation
import SslPinningRules
import TLSTools
import Testing

@testable import SslPinningPlatform

/// How a system behaves where Apple's documents leave two readings open, or systems differ.
struct SimulatedSystem: Hashable, Sendable, CustomTestStringConvertible {
  enum Protocols: CaseIterable { case oursFirst, oursLast, never }

  /// Whether a delegate hears of new tasks: from iOS 16, macOS 13, tvOS 16 and watchOS 9 on.
  var tellsOfTasks = true
  /// When a session asks our protocol classes: `never` as watchOS may.
  var protocols = Protocols.oursFirst
  /// Which delegate method a server's trust goes to.
  var level = ChallengeRule.Level.session
  /// Whether a resumed TLS session brings a challenge.
  var challengesResumed = false
  /// Whether TLS sessions are shared by all sessions of a process.
  var sharesTickets = true
  /// Whether `flush` has closed all connections when the next task goes out; if not, it may never do so.
  var flushesInTime = true
  /// Whether the origin's own challenge says that a proxy asks.
  var marksProxies = false
  /// Whether a task is asked about each certificate once, whatever the host: the newer loader, which pinned sessions
  /// do not use.
  var asksOncePerCertificate = false

  static let all =
    unmarked
    + unmarked.filter(\.tellsOfTasks).filter { $0.protocols == .oursFirst }
    .map { system in
      var system = system
      system.marksProxies = true
      return system
    }

  private static let unmarked: [SimulatedSystem] = [true, false].flatMap { tells in
    Protocols.allCases.flatMap { protocols in
      ChallengeRule.Level.allCases.flatMap { level in
        [(true, true), (true, false), (false, true), (false, false)].flatMap { resumed, shares in
          [true, false].map { flushes in
            SimulatedSystem(
              tellsOfTasks: tells, protocols: protocols, level: level, challengesResumed: resumed,
              sharesTickets: shares, flushesInTime: flushes)
          }
        }
      }
    }
  }

  var testDescription: String {
    "\(tellsOfTasks ? "tells" : "no word") of tasks, protocols \(protocols), trust at the \(level), "
      + "resumed \(challengesResumed ? "challenged" : "not"), tickets "
      + "\(sharesTickets ? "shared" : "apart"), flush \(flushesInTime ? "in time" : "late")"
      + (marksProxies ? ", all said to be proxies" : "")
  }
}

/// A server that a host's name leads to.
struct SimulatedServer: Sendable {
  let identity: ServerIdentity
  /// The other hosts that its certificate covers, over the same HTTP/2 connection.
  var alsoServes: Set<String> = []
  var resumes = false
  /// Where it leads on.
  var location: String?
}

/// What came of a task.
struct SimulatedResult: Equatable, Sendable {
  enum Way: Equatable, Sendable {
    /// Ended before anything left.
    case stopped
    /// A server's answer came.
    case answered
    /// It left in clear text.
    case clear
  }

  var way: Way
  /// The rules of the verdicts that were told, in order.
  var told: [String]
}

/// The process, its network and what its `URLSession`s share.
final class SimulatedProcess {
  let system: SimulatedSystem
  var servers: [String: SimulatedServer] = [:]
  /// By the wall clock, in seconds; every request takes ten.
  var now = 1000.0
  fileprivate var tickets: [String: SPKIPin] = [:]

  init(_ system: SimulatedSystem) { self.system = system }
}

/// A `URLSession` as the documents describe it, with a ``SessionDoor`` where the delegate of a pinned session is; an
/// ordinary one without. App Transport Security is not there: it is the app's to switch off.
final class SimulatedSession {
  enum Kind: CaseIterable { case data, upload, download, webSocket, stream }

  private struct Connection {
    let server: SimulatedServer
    let host: String
    let secured: Double
  }

  private let process: SimulatedProcess
  private let door: SessionDoor?
  private let judge: ScriptedJudge
  private let refusesAll: Bool
  private var connections: [Connection] = []
  private var tickets: [String: SPKIPin] = [:]
  private var generation: UInt64
  /// Whether its door asked for its connections to be given up.
  private(set) var isGivenUp = false
  /// What the task at hand was asked about last, and accepted.
  private var accepted: SPKIPin?

  init(
    _ process: SimulatedProcess, _ role: SessionRole?, _ transport: PinnedTransport,
    judge: ScriptedJudge
  ) {
    self.process = process
    door = role.map { SessionDoor($0) { transport } }
    self.judge = judge
    if case .refusing = role { refusesAll = true } else { refusesAll = false }
    generation = judge.currentGeneration()
  }

  func run(_ url: String, by kind: Kind = .data) async throws -> SimulatedResult {
    let before = judge.recorded.count
    let way = try await way(kind, url)
    // What a session does with connections that it keeps, when its door has asked for a flush.
    generation = judge.currentGeneration()
    return SimulatedResult(
      way: way, told: judge.recorded.dropFirst(before).map(\.rule).filter { $0 != "matched" })
  }

  private func way(_ kind: Kind, _ first: String) async throws -> SimulatedResult.Way {
    var url = kind == .stream ? nil : URL(string: first)
    if process.system.tellsOfTasks, let door {
      guard door.admits(kind == .stream ? .stream : .request, to: url) else { return .stopped }
    }
    if judge.currentGeneration() != generation, process.system.flushesInTime { connections = [] }
    guard kind != .stream else { return .clear }
    accepted = nil
    var answered: [TransactionFacts] = []
    defer {
      if door?.finished(answered, at: Int64(process.now)) == true {
        isGivenUp = true
        if process.system.flushesInTime { connections = [] }
      }
    }
    while let next = url, let host = next.host, let scheme = next.scheme {
      guard !isTaken(next, kind) else { return .stopped }
      guard ["https", "wss"].contains(scheme) else { return .clear }
      guard let facts = try await request(next, host) else {
        answered.append(nothingLeft(next))
        return .stopped
      }
      answered.append(facts)
      guard let location = process.servers[host]?.location else { break }
      url = URL(string: location)
      if let door, !door.follows(to: url, from: next) { return .stopped }
    }
    return .answered
  }

  /// Whether a protocol class of ours takes the request and fails it.
  private func isTaken(_ url: URL, _ kind: Kind) -> Bool {
    guard door != nil, kind != .webSocket, process.system.protocols != .never else { return false }
    // The system's own take these before one that is asked last.
    if process.system.protocols == .oursLast, ["http", "https", "ftp"].contains(url.scheme) {
      return false
    }
    return refusesAll || !TaskRule.allows(url)
  }

  /// One request over a connection at hand or a new one; `nil` if the handshake was refused.
  private func request(_ url: URL, _ host: String) async throws -> TransactionFacts? {
    process.now += 10
    if let old = connections.first(where: {
      $0.host == host || $0.server.alsoServes.contains(host)
    }) {
      return facts(url, isReused: true, old.secured)
    }
    guard let server = process.servers[host] else { return nil }
    let secured = process.now
    let pin = try SPKIPin(certificateDER: server.identity.leaf.der)
    let ticket = process.system.sharesTickets ? process.tickets[host] : tickets[host]
    let isResumed = server.resumes && ticket == pin
    let isKnown = process.system.asksOncePerCertificate && accepted == pin
    if !isKnown, !isResumed || process.system.challengesResumed {
      guard await isAccepted(server, url, host) else { return nil }
      accepted = pin
    }
    if server.resumes {
      tickets[host] = pin
      process.tickets[host] = pin
    }
    connections.append(Connection(server: server, host: host, secured: secured))
    return facts(url, isReused: false, secured)
  }

  private func facts(_ url: URL, isReused: Bool, _ secured: Double) -> TransactionFacts {
    TransactionFacts(
      url: url, isReused: isReused, secured: Date(timeIntervalSince1970: secured),
      established: Date(timeIntervalSince1970: secured + 0.5),
      begun: Date(timeIntervalSince1970: process.now + 1))
  }

  /// What a system says of a request that had no connection: all times unset, which may be no numbers.
  private func nothingLeft(_ url: URL) -> TransactionFacts {
    let unset = Date(timeIntervalSince1970: .nan)
    return TransactionFacts(
      url: url, isReused: true, secured: unset, established: unset, begun: unset, isAnswered: false)
  }

  private func isAccepted(
    _ server: SimulatedServer, _ url: URL, _ host: String
  ) async -> Bool {
    guard let door else { return true }
    let challenge = ChallengeRule.Challenge(
      level: process.system.level, method: .serverTrust, host: host,
      isProxy: process.system.marksProxies, hasTrust: true)
    var step = door.step(
      about: challenge, requests: process.system.level == .task ? [url] : nil)
    if step == .lookUp { step = door.step(about: challenge, requests: [url]) }
    // The system's own judgement: the attacker has a CA that the device trusts.
    if step == .leaveToSystem { return true }
    guard step == .judge else { return false }
    let chain = ([server.identity.leaf] + server.identity.intermediates).map(\.der)
    return await door.accepts(host: host, port: 443, challenged: process.now + 0.1) {
      (
        $0.store.evidence(presented: chain, host: $1, at: $2), chain
      )
    }
  }

  /// The server ends every connection.
  func lose() { connections = [] }
}

/// Requests without a session, over those that a ``RouteTable`` gives.
final class SimulatedClient {
  private let judge: ScriptedJudge
  private let make: (SessionRole) -> SimulatedSession
  private var routes = RouteTable<SimulatedSession>()

  init(judge: ScriptedJudge, make: @escaping (SessionRole) -> SimulatedSession) {
    (self.judge, self.make) = (judge, make)
  }

  func session(to name: String) throws -> SimulatedSession {
    let host = try HostName(name)
    let isListed = judge.lists(host)
    return routes.route(to: host, isListed: isListed, generation: judge.currentGeneration()) {
      make(isListed ? .pinned : .unlisted)
    }
  }

  func get(_ name: String) async throws -> SimulatedResult {
    let session = try session(to: name)
    let result = try await session.run("https://\(name)/")
    if session.isGivenUp { routes.drop { $0 === session } }
    return result
  }
}
