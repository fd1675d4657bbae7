import Foundation
import SslPinningRules
import TLSTools
import Testing

@testable import SslPinningPlatform

/// The drill's changes and attacks, and what Apple's systems have besides, on every system that the documents
/// leave possible.
@Suite("A pinned session of Apple's systems, simulated")
struct SessionScenarioTests {
  typealias Result = SimulatedResult
  static let host = "bank.example"
  static let other = "shop.example"

  /// One process under one system, with a client that pins two hosts.
  struct Scene {
    let system: SimulatedSystem
    let start = Int64(Date().timeIntervalSince1970)
    let authority: CertificateAuthority
    let bank: ServerIdentity
    let shop: ServerIdentity
    let judge: ScriptedJudge
    let transport: PinnedTransport
    let process: SimulatedProcess

    init(_ system: SimulatedSystem) throws {
      self.system = system
      authority = try CertificateAuthority.makeRoot(name: "Root")
      bank = try authority.issue(names: [host])
      shop = try authority.issue(names: [other])
      let trust = TrustMode.anchors([authority.root.der])
      judge = try ScriptedJudge([host: bank, other: shop], trust: trust)
      transport = try PinnedTransport(trust: trust, judge: judge, longestRefresh: 60)
      process = SimulatedProcess(system)
      process.servers = [
        host: SimulatedServer(identity: bank), other: SimulatedServer(identity: shop),
      ]
    }

    /// A man in the middle, with whatever certificate.
    func middleman(_ identity: ServerIdentity? = nil) throws -> SimulatedServer {
      SimulatedServer(identity: try identity ?? authority.issue(names: [host]), resumes: true)
    }

    func session(_ role: SessionRole? = SessionRole.pinned) -> SimulatedSession {
      SimulatedSession(process, role, transport, judge: judge)
    }

    func client() -> SimulatedClient { SimulatedClient(judge: judge) { session($0) } }

    func get(_ session: SimulatedSession, _ name: String = host) async throws -> Result {
      try await session.run("https://\(name)/")
    }
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    let expected: @Sendable (SimulatedSystem) -> Result
    let run: @Sendable (Scene) async throws -> Result

    init(
      _ name: String, _ way: Result.Way, _ told: String...,
      run: @escaping @Sendable (Scene) async throws -> Result
    ) {
      self.init(name, expected: { _ in Result(way: way, told: told) }, run: run)
    }

    init(
      _ name: String, expected: @escaping @Sendable (SimulatedSystem) -> Result,
      run: @escaping @Sendable (Scene) async throws -> Result
    ) {
      self.name = name
      self.expected = expected
      self.run = run
    }

    var testDescription: String { name }

    /// A server under another certificate at the listed host.
    static func attack(
      _ name: String, _ told: String,
      by identity: @escaping @Sendable (Scene) throws -> ServerIdentity
    ) -> Scenario {
      Scenario(name, .stopped, told) { scene in
        scene.process.servers[host] = try scene.middleman(identity(scene))
        return try await scene.get(scene.session())
      }
    }
  }

  static let served = Result(way: .answered, told: [])
  static let detected = Result(way: .answered, told: ["unjudged"])

  static let changes = [
    Scenario("a pinned key", .answered) { try await $0.get($0.session()) },
    Scenario("a redirect to another listed host", .answered) { scene in
      scene.process.servers[host]?.location = "https://\(other)/"
      return try await scene.get(scene.session())
    },
    Scenario("an announced key", .answered) { scene in
      let new = try scene.authority.issue(names: [host])
      let session = scene.session()
      #expect(try await scene.get(session) == served)
      try scene.judge.pin([host: new, other: scene.shop])
      scene.process.servers[host] = SimulatedServer(identity: new)
      session.lose()
      return try await scene.get(session)
    },
    Scenario("an unannounced key, listed by the time of the refresh", .answered) { scene in
      let new = try scene.authority.issue(names: [host])
      scene.process.servers[host] = SimulatedServer(identity: new)
      scene.judge.onRefresh { [shop = scene.shop] in try? $0.pin([host: new, other: shop]) }
      return try await scene.get(scene.session())
    },
    Scenario("a kept connection", .answered) { scene in
      let session = scene.session()
      #expect(try await scene.get(session) == served)
      return try await scene.get(session)
    },
    Scenario("pins that grow while a connection is kept", .answered) { scene in
      let session = scene.session()
      #expect(try await scene.get(session) == served)
      try scene.judge.pin([host: scene.bank, other: scene.shop, "new.example": scene.bank])
      return try await scene.get(session)
    },
    Scenario("an unlisted host on the client's session for these", .answered, "unlisted-host") {
      scene in
      try scene.judge.pin([host: scene.bank], unlisted: .systemTrust)
      return try await scene.get(scene.session(.unlisted), other)
    },
    Scenario("HTTP/2 between hosts without an entry", .answered) { scene in
      try scene.judge.pin([host: scene.bank], unlisted: .systemTrust)
      scene.process.servers[other]?.alsoServes = ["cdn.example"]
      let session = scene.session(.unlisted)
      #expect(try await scene.get(session, other).way == .answered)
      return try await scene.get(session, "cdn.example")
    },
  ]

  static let attacks: [Scenario] = [
    .attack("CA-trusted man in the middle", "leaf-pin") { try $0.authority.issue(names: [host]) },
    .attack("other host's certificate", "host-name") { $0.shop },
    .attack("another listed host's key", "leaf-pin") {
      try $0.authority.issue(names: [host], key: $0.shop.key)
    },
    .attack("expired", "chain") {
      try $0.authority.issue(
        names: [host], key: $0.bank.key,
        validity: Validity(notBefore: $0.start - 90 * 86_400, notAfter: $0.start - 86_400))
    },
    .attack("self-signed, by the pinned key", "chain") {
      try .selfSigned(names: [host], key: $0.bank.key)
    },
    .attack("another CA, and the pinned key", "chain") {
      try CertificateAuthority.makeRoot(name: "Other").issue(names: [host], key: $0.bank.key)
    },
    Scenario("denied key", .stopped, "denied-key") { scene in
      try scene.judge.pin([host: scene.bank], denied: [scene.bank])
      return try await scene.get(scene.session())
    },
    Scenario(
      "an unlisted host, though the policy trusts the system with these", .stopped, "unlisted-host"
    ) {
      scene in
      try scene.judge.pin([host: scene.bank], unlisted: .systemTrust)
      return try await scene.get(scene.session(), other)
    },
    Scenario("a redirect to an unlisted host", .stopped, "unlisted-host") { scene in
      scene.process.servers["rogue.example"] = SimulatedServer(
        identity: try scene.authority.issue(names: ["rogue.example"]))
      scene.process.servers[host]?.location = "https://rogue.example/"
      return try await scene.get(scene.session())
    },
    Scenario("a host that is listed while its connection is made", .stopped, "unjudged") { scene in
      try scene.judge.pin([host: scene.bank], unlisted: .systemTrust)
      scene.process.servers[other]?.resumes = true
      let session = scene.session(.unlisted)
      try scene.judge.pin([host: scene.bank, other: scene.shop], unlisted: .systemTrust)
      return try await scene.get(session, other)
    },
    Scenario(
      "HTTP/2 to a host that is listed while its connection is kept",
      expected: { system in
        system.flushesInTime ? Result(way: .stopped, told: ["unjudged"]) : detected
      },
      run: { scene in
        try scene.judge.pin([:], unlisted: .systemTrust)
        scene.process.servers[host]?.alsoServes = [other]
        let session = scene.session(.unlisted)
        #expect(try await scene.get(session).way == .answered)
        try scene.judge.pin([other: scene.shop], unlisted: .systemTrust)
        return try await scene.get(session, other)
      }),
    // The pin is removed while a connection is kept: closed once `flush` has run, else told.
    Scenario(
      "a kept connection after a removal",
      expected: { system in
        // Without word of new tasks nobody has asked for a flush in time; here the app calls `pinsChanged`.
        system.flushesInTime
          ? Result(way: .stopped, told: ["leaf-pin"]) : detected
      },
      run: { scene in
        let session = scene.session()
        #expect(try await scene.get(session) == served)
        try scene.judge.pin([host: scene.shop, other: scene.shop])
        return try await scene.get(session)
      }),
    Scenario(
      "resumed session after removal",
      expected: { system in
        system.challengesResumed ? Result(way: .stopped, told: ["leaf-pin"]) : detected
      },
      run: { scene in
        scene.process.servers[host]?.resumes = true
        let session = scene.session()
        #expect(try await scene.get(session) == served)
        try scene.judge.pin([host: scene.shop, other: scene.shop])
        session.lose()
        return try await scene.get(session)
      }),
    // A plain session to a listed host, under a man in the middle whose CA the device trusts.
    Scenario(
      "a TLS session that a plain session made",
      expected: { system in
        system.sharesTickets && !system.challengesResumed
          ? detected : Result(way: .stopped, told: ["leaf-pin"])
      },
      run: { scene in
        scene.process.servers[host] = try scene.middleman()
        #expect(try await scene.get(scene.session(nil)) == served)
        return try await scene.get(scene.session())
      }),
    Scenario(
      "the same, where the pinned session had accepted the host before",
      expected: { system in
        system.sharesTickets && !system.challengesResumed
          ? detected : Result(way: .stopped, told: ["leaf-pin"])
      },
      run: { scene in
        let session = scene.session()
        #expect(try await scene.get(session) == served)
        session.lose()
        scene.process.servers[host] = try scene.middleman()
        #expect(try await scene.get(scene.session(nil)) == served)
        return try await scene.get(session)
      }),
    Scenario("HTTP/2 to a host that was never challenged", .answered, "unjudged") { scene in
      scene.process.servers[host]?.alsoServes = [other]
      let session = scene.session()
      #expect(try await scene.get(session) == served)
      return try await scene.get(session, other)
    },
    // What is told once and then goes on unseen would be as good as not told.
    Scenario(
      "the same, and the request after it",
      expected: { $0.flushesInTime ? served : detected },
      run: { scene in
        scene.process.servers[host]?.alsoServes = [other]
        let session = scene.session()
        #expect(try await scene.get(session) == served)
        #expect(try await scene.get(session, other) == detected)
        return try await scene.get(session, other)
      }),
    Scenario(
      "the requests after one over a resumed TLS session",
      expected: { system in
        system.sharesTickets && !system.challengesResumed
          ? detected : Result(way: .stopped, told: ["leaf-pin"])
      },
      run: { scene in
        let session = scene.session()
        #expect(try await scene.get(session) == served)
        session.lose()
        scene.process.servers[host] = try scene.middleman()
        #expect(try await scene.get(scene.session(nil)) == served)
        _ = try await scene.get(session)
        return try await scene.get(session)
      }),
    Scenario(
      "the request after one over a connection from before a removal",
      expected: { system in
        system.flushesInTime ? Result(way: .stopped, told: ["leaf-pin"]) : detected
      },
      run: { scene in
        let session = scene.session()
        #expect(try await scene.get(session) == served)
        try scene.judge.pin([host: scene.shop, other: scene.shop])
        _ = try await scene.get(session)
        return try await scene.get(session)
      }),
  ]

  /// Requests without a session. Their sessions are the client's own: where the system closes no connection, the next
  /// request goes over another session.
  static let withoutSession = [
    Scenario("without a session: a kept connection after a removal", .stopped, "leaf-pin") {
      scene in
      let client = scene.client()
      #expect(try await client.get(host) == served)
      try scene.judge.pin([host: scene.shop, other: scene.shop])
      return try await client.get(host)
    },
    Scenario("without a session: a kept connection after a denial", .stopped, "denied-key") {
      scene in
      let client = scene.client()
      #expect(try await client.get(host) == served)
      try scene.judge.pin([host: scene.bank, other: scene.shop], denied: [scene.bank])
      return try await client.get(host)
    },
    Scenario(
      "without a session: HTTP/2 to a host that is listed while its connection is kept", .answered
    ) { scene in
      try scene.judge.pin([:], unlisted: .systemTrust)
      scene.process.servers[host]?.alsoServes = [other]
      let client = scene.client()
      #expect(try await client.get(host).way == .answered)
      try scene.judge.pin([other: scene.shop], unlisted: .systemTrust)
      return try await client.get(other)
    },
    Scenario(
      "without a session: the request after one over a resumed TLS session",
      expected: { $0.sharesTickets && !$0.challengesResumed ? detected : served },
      run: { scene in
        scene.process.servers[host]?.resumes = true
        let client = scene.client()
        #expect(try await client.get(host) == served)
        try client.session(to: host).lose()
        _ = try await client.get(host)
        return try await client.get(host)
      }),
  ]

  @Test(
    "serves every change and stops every attack, or tells of it", arguments: SimulatedSystem.all)
  func table(system: SimulatedSystem) async throws {
    for scenario in Self.changes + Self.attacks + Self.withoutSession {
      let result = try await scenario.run(Scene(system))
      #expect(result == scenario.expected(system), "\(scenario.name)")
    }
  }

  @Test(
    "asks about every host, or tells of the one that a redirect led to unasked",
    arguments: [true, false])
  func sameCertificate(asksOnce: Bool) async throws {
    var system = SimulatedSystem()
    system.asksOncePerCertificate = asksOnce
    let scene = try Scene(system)
    // The operator of one listed host, whose certificate covers the other's name as well.
    let both = try scene.authority.issue(names: [Self.host, Self.other], key: scene.bank.key)
    scene.process.servers[Self.host] = SimulatedServer(
      identity: both, location: "https://\(Self.other)/")
    scene.process.servers[Self.other] = SimulatedServer(identity: both)
    let expected = asksOnce ? Self.detected : Result(way: .stopped, told: ["leaf-pin"])
    #expect(try await scene.get(scene.session()) == expected)
    // Without a session each hop is a task of its own.
    scene.process.servers[Self.host]?.location = nil
    let client = scene.client()
    #expect(try await client.get(Self.host) == Self.served)
    #expect(try await client.get(Self.other) == Result(way: .stopped, told: ["leaf-pin"]))
  }

  @Test("lets no clear text out where tasks are told of", arguments: SimulatedSystem.all)
  func clearText(system: SimulatedSystem) async throws {
    let scene = try Scene(system)
    for (kind, url, isFirst) in [
      (SimulatedSession.Kind.data, "http://\(Self.host)/", true),
      (.upload, "http://\(Self.host)/", true), (.download, "ftp://\(Self.host)/", true),
      (.webSocket, "ws://\(Self.host)/", true), (.stream, "", true),
      (.data, "https://\(Self.host)/", false),
    ] {
      scene.process.servers[Self.host]?.location = isFirst ? nil : "http://\(Self.host)/"
      let result = try await scene.session().run(url, by: kind)
      // Redirects are always the delegate's. Before iOS 16 the rest is up to the protocol classes, which neither
      // WebSockets nor stream tasks ask, and to App Transport Security.
      let isClosed =
        !isFirst || system.tellsOfTasks
        || (kind != .webSocket && kind != .stream && system.protocols == .oursFirst)
      #expect(result.way == (isClosed ? .stopped : .clear), "\(kind) \(url)")
      if !isFirst || system.tellsOfTasks {
        #expect(result.told == ["clear-text"], "\(kind) \(url)")
      }
    }
  }

  @Test("of a background configuration lets nothing out", arguments: SimulatedSystem.all)
  func background(system: SimulatedSystem) async throws {
    let scene = try Scene(system)
    // The worst case: a TLS session at hand that brings no challenge.
    scene.process.servers[Self.host]?.resumes = true
    #expect(try await scene.get(scene.session(nil)) == Self.served)
    for kind in SimulatedSession.Kind.allCases {
      let scheme = kind == .webSocket ? "wss" : "https"
      let session = scene.session(.refusing(reason: "why"))
      let result = try await session.run("\(scheme)://\(Self.host)/", by: kind)
      let isTaken = kind != .webSocket && kind != .stream && system.protocols == .oursFirst
      let isChallenged =
        kind != .stream && (system.challengesResumed || !system.sharesTickets)
      guard !system.tellsOfTasks, !isTaken, !isChallenged else {
        #expect(result.way == .stopped, "\(kind)")
        if system.tellsOfTasks { #expect(result.told == ["unjudged"], "\(kind)") }
        continue
      }
      // Before iOS 16: a stream task is open, and a resumed TLS session is told.
      #expect(
        result == (kind == .stream ? Result(way: .clear, told: []) : Self.detected), "\(kind)")
    }
  }
}
