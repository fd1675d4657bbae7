import FaultLab
import Foundation
import SslPinning
import SslPinningRules
import TLSTools

/// Attackers who make the app talk to another server, or in clear text.
enum ClearTextRows {
  private static let elsewhere = "news.localhost"

  static let all: [Row] = [
    .attack("redirect to an unlisted host") {
      let scene = try await Scenario()
      let attacker = try LocalTLSServer(identity: scene.stage.issue(elsewhere)) { _ in .text("read")
      }
      let away = try Site.url(elsewhere, attacker.port).absoluteString
      return try AttackOutcome(
        "the listed server sends the app to a host that a trusted CA vouches for",
        try await redirects(scene, to: away, attacker, "unlisted-host") { _ in
          scene.stage.control
        })
    },
    .attack("redirect to clear text") {
      let scene = try await Scenario()
      let attacker = try LocalHTTPServer { _ in .text("read") }
      let away = "http://\(scene.site.host):\(attacker.port)/account"
      return try AttackOutcome(
        "the listed server sends the app to its own name in clear text",
        try await redirects(scene, to: away, attacker, "clear-text") { status in
          let front = try LocalHTTPServer { _ in .redirect(to: away, status: status) }
          let first = URL(string: "http://127.0.0.1:\(front.port)/")
          return Dialer(name: "an ordinary session, redirected alike,") { url in
            defer { front.stop() }
            return await Dialer.ordinarySession(from: first).dial(url)
          }
        })
    },
    .attack("direct clear text") {
      let scene = try await Scenario()
      let attacker = try LocalHTTPServer { _ in .text("read") }
      guard let url = URL(string: "http://\(scene.site.host):\(attacker.port)/account") else {
        throw Inconclusive("no URL")
      }
      return AttackOutcome(
        "a listed host, asked over http",
        try await AttackTrial(
          url, attacker: attacker, control: .ordinarySession(), pinned: scene.app.dialers,
          .before("clear-text")))
    },
    .attack("registry over clear text") {
      let lines = try ProxyLines.installed.get()
      let scene = try await Scenario()
      let document = try scene.stage.registry.book.bytes()
      let attacker = try LocalHTTPServer { _ in HTTPResponse(body: document) }
      lines.clearText.redirect(to: .loopback(attacker.port))
      guard let url = URL(string: "http://registry.example/api/v1/app.json") else {
        throw Inconclusive("no URL")
      }
      let start = Dialer(name: "a first start") { url in
        do throws(SslPinningError) {
          _ = try await scene.stage.start {
            $0.endpointUrl = url.absoluteString
            $0.storage = .none
          }
          return .served("a client")
        } catch {
          guard case .clearTextURL = error else { return .failed("\(error)") }
          return .refused(rule: "clear-text", "\(error)")
        }
      }
      return AttackOutcome(
        "the attacker has the document at hand, and is not even asked for it",
        try await AttackTrial(
          url, attacker: attacker, control: .ordinarySession(), pinned: [start],
          .before("clear-text")))
    },
    .attack("registry redirected to clear text") {
      let scene = try await Scenario()
      let document = try scene.stage.registry.book.bytes()
      let attacker = try LocalHTTPServer { _ in HTTPResponse(body: document) }
      guard let url = URL(string: "http://127.0.0.1:\(attacker.port)/app.json") else {
        throw Inconclusive("no URL")
      }
      scene.stage.registry.respond(.redirect(to: url.absoluteString))
      let refresh = Dialer(name: "a refresh") { _ in
        do throws(SslPinningError) {
          try await scene.app.client.refresh()
          return .served("a registry")
        } catch {
          guard case .unreachable = error else { return .failed("\(error)") }
          return .refused(rule: "clear-text", "\(error)")
        }
      }
      return AttackOutcome(
        "the registry's server sends the app to clear text",
        try await AttackTrial(
          url, attacker: attacker, control: .ordinarySession(), pinned: [refresh],
          .before("clear-text")))
    },
    .attack("look-alike host") {
      let scene = try await Scenario(host: "bank.localhost")
      let names = [
        "bank.localhost.evil.localhost", "evil-bank.localhost", "bank-localhost.localhost",
        "banks.localhost", "www.bank.localhost", "xn--bnk-5cd.localhost", "ban\u{212A}.localhost",
        "BANK.LOCALHOST",
      ]
      let certified = names.filter { $0.utf8.allSatisfy { $0 < 128 } } + [scene.site.host]
      let identity = try scene.stage.authority.issue(
        names: certified,
        validity: Environment.validity(scene.stage.timeline.world, from: -1, to: 30))
      let attacker = try LocalTLSServer(identity: identity) { _ in .text("read") }
      var exhibits: [AttackTrial] = []
      for name in names {
        exhibits.append(
          try await AttackTrial(
            Site.url(name, attacker.port), attacker: attacker, control: scene.stage.control,
            pinned: scene.app.dialers,
            .either("unlisted-host", "leaf-pin", "unreadable-host")))
      }
      return try AttackOutcome(
        "\(names.count) names near a listed one, KELVIN SIGN for K among them, each with a valid"
          + " certificate", exhibits)
    },
  ]

  /// One trial for each kind of redirect.
  private static func redirects(
    _ scene: Scenario, to away: String, _ attacker: some Attacker, _ rule: String,
    control: (Int) throws -> Dialer
  ) async throws -> [AttackTrial] {
    var exhibits: [AttackTrial] = []
    for status in [301, 302, 303, 307, 308] {
      let server = try LocalTLSServer(identity: scene.site.server.identity) { _ in
        .redirect(to: away, status: status)
      }
      exhibits.append(
        try await AttackTrial(
          Site.url(scene.site.host, server.port), attacker: attacker, control: control(status),
          pinned: scene.app.dialers, .either(rule)))
      try show(
        server.requests.count { $0.header("Authorization") != nil } == scene.app.dialers.count,
        "the app did not get as far as the redirect")
    }
    return exhibits
  }
}

/// Attackers in the registry's place whose answers never end.
enum BodyRows {
  static let all: [Row] = [
    .attack("endless registry body") {
      let space = [UInt8](repeating: 0x20, count: 100_000)
      return try await attack(
        HTTPResponse(body: space, delivery: .endless()), "the registry never ends: given up after"
      ) { if case .tooLarge(limit: 1_000_000, url: _) = $0 { "1 000 000 bytes" } else { nil } }
    },
    .attack("slow registry body") {
      let space = [UInt8](repeating: 0x20, count: 10_000)
      return try await attack(
        HTTPResponse(body: space, delivery: .drip(pieceBytes: 1, pauseMilliseconds: 50)),
        "the registry drips a byte at a time: given up after"
      ) { if case .unreachable = $0 { "one second" } else { nil } }
    },
  ]

  /// - Parameter given: the limit that made the client give up, if the row is about that.
  private static func attack(
    _ response: HTTPResponse, _ shown: String, given: @Sendable (SslPinningError) -> String?
  ) async throws -> AttackOutcome {
    let limit: (inout SslPinningConfig) -> Void = {
      $0.maximumRegistryBytes = 1_000_000
      $0.fetchTimeout = 1
    }
    let scene = try await Scenario(adjust: limit)
    scene.stage.registry.respond(response)
    var reason: String?
    do { try await scene.app.client.refresh() } catch { reason = given(error) }
    guard let reason else { throw Inconclusive("the refresh did not end as it must") }
    do {
      _ = try await scene.stage.start {
        limit(&$0)
        $0.storage = .none
      }
      throw Inconclusive("a first start brought a client")
    } catch let error as SslPinningError {
      try show(given(error) != nil, "the first start failed with \(error)")
    }
    try await scene.app.mustBeServed(by: scene.site)
    let (attacker, _) = try scene.middleman()
    let exhibits = try await scene.attack(
      by: attacker, at: attacker.port, .inHandshake("leaf-pin"))
    return try AttackOutcome("\(shown) \(reason), the real site served all the while", exhibits)
  }
}
