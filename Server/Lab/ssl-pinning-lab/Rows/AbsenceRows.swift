import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Clients, registries and endpoints that are offline, moved, or answer nonsense.
enum AbsenceRows {
  static let all: [Row] = [
    .change("client offline 60 days") { log in
      let scene = try await Scenario()
      let (site, stage, asleep) = (scene.site, scene.stage, scene.app)
      await log.get(try site.url(), asleep.dialers, expecting: site.body)
      for _ in 0..<3 {
        stage.timeline.pass(days: 20)
        let new = try stage.issue(site.host)
        try stage.registry.publish { try $0.list(site.host, new) }
        try site.rotate(to: new)
      }
      log.changed()
      // One app stayed in memory, the other starts from its stored registry.
      await log.get(try site.url(), asleep.dialers, expecting: site.body)
      await log.get(try site.url(), try await stage.start().dialers, expecting: site.body)
      return ChangeOutcome("three rotations meanwhile; asleep in memory, and restarted", log)
    },
    .change("signing keys rotated three times while offline") { log in
      let scene = try await Scenario()
      let (site, stage, asleep) = (scene.site, scene.stage, scene.app)
      try stage.registry.beginEpoch(online: .generate(.p256))
      try stage.registry.publish()
      try await stage.hour(log, asleep, at: site)
      try show(asleep.client.registryStamp.version?.epoch == 1, "key set 1 is not believed")
      await log.get(try site.url(), asleep.dialers, expecting: site.body)
      for kind in [TrustSigningKey.Kind.ed25519, .rsa(bits: 2048), .p256] {
        stage.timeline.pass(days: 20)
        try stage.registry.beginEpoch(online: .generate(kind))
        let new = try stage.issue(site.host)
        try stage.registry.publish { try $0.list(site.host, new) }
        try site.rotate(to: new)
      }
      log.changed()
      let restarted = try await stage.start()
      await log.get(try site.url(), asleep.dialers + restarted.dialers, expecting: site.body)
      for app in [asleep, restarted] {
        try show(app.client.registryStamp.version?.epoch == 4, "the chain was not walked")
      }
      return ChangeOutcome("key set 1 on disk, 4 in force", log)
    },
    .change("registry down 80 days") { log in
      let scene = try await Scenario()
      let (site, stage, asleep) = (scene.site, scene.stage, scene.app)
      await log.get(try site.url(), asleep.dialers, expecting: site.body)
      stage.registry.server.stop()
      stage.timeline.pass(days: 80)
      log.changed()
      let restarted = try await stage.start()
      for app in [asleep, restarted] {
        let verdict = FirstVerdict(app.client)
        // A kept connection would need no verdict.
        site.lead()
        await log.get(try site.url(), app.dialers, expecting: site.body)
        let isStale = await verdict.isStale
        try show(isStale == true && app.client.registryStatus.isStale, "a verdict hides its age")
      }
      try show(restarted.client.registryStatus.origin == .cache, "it was not from storage")
      return ChangeOutcome("restarted from storage on day 80, verdicts say stale", log)
    },
    .change("registry down 120 days, pinning kept") { log in
      let scene = try await Scenario(adjust: { $0.whenExpired = .keepPinning })
      let (site, stage) = (scene.site, scene.stage)
      stage.registry.server.stop()
      stage.timeline.pass(days: 120)
      site.lead()
      log.changed()
      let restarted = try await stage.start { $0.whenExpired = .keepPinning }
      await log.get(
        try site.url(), scene.app.dialers + restarted.dialers, expecting: site.body)
      return ChangeOutcome("beyond the statement's end, for apps that chose it", log)
    },
    .change("registry answers garbage") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      let good = try stage.registry.publish()
      let answers = garbage(good)
      log.changed()
      for answer in answers {
        stage.registry.respond(answer)
        site.lead()
        do {
          try await app.client.refresh()
          throw Inconclusive("status \(answer.status) was no garbage")
        } catch is SslPinningError {}
        await log.get(
          try site.url(), app.dialers + (try await stage.start().dialers), expecting: site.body)
      }
      return ChangeOutcome("\(answers.count) kinds of it, each met running and at a start", log)
    },
    .change("endpoint moved") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      let elsewhere = try Site(site.host, stage.issue(site.host))
      try stage.registry.publish {
        try $0.list(site.host, site.server.identity, elsewhere.server.identity)
      }
      try await stage.hour(log, app, at: site)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      // The address leads to another machine; then the host is on another port, too.
      site.lead(to: elsewhere.server.port)
      site.server.stop()
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: elsewhere.body)
      await log.get(try elsewhere.url(), app.dialers, expecting: elsewhere.body)
      return ChangeOutcome("to another machine with a listed key, and to another port", log)
    },
    .change("registry moved") { log in
      let stage = try Environment()
      let (site, next) = (try stage.site(), Locked<HTTPResponse?>(nil))
      let first = try stage.registry.publish { try $0.list(site.host, site.server.identity) }
      let here = try LocalTLSServer(identity: stage.issue("registry.localhost")) { _ in
        next.withLock { $0 } ?? HTTPResponse(body: first)
      }
      let url = try Site.url("registry.localhost", here.port, "/app.json").absoluteString
      let app = try await stage.start { $0.endpointUrl = url }
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let new = try stage.issue(site.host)
      let second = try stage.registry.publish { try $0.list(site.host, new) }
      let there = try LocalTLSServer(identity: stage.issue("pins.localhost")) { _ in
        HTTPResponse(body: second)
      }
      let moved = try Site.url("pins.localhost", there.port, "/elsewhere/pins").absoluteString
      next.withLock { $0 = .redirect(to: moved, status: 308) }
      try site.rotate(to: new)
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let restarted = try await stage.start { $0.endpointUrl = url }
      await log.get(try site.url(), restarted.dialers, expecting: site.body)
      try show(!there.requests.isEmpty, "nobody asked at the new place")
      return ChangeOutcome("its server redirects to another host and path, over https", log)
    },
    .change("host missing from a newer document") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      let other = try stage.site("bank.localhost")
      try stage.registry.publish {
        $0.keys = []
        try $0.list(other.host, other.server.identity)
      }
      try await stage.hour(log, app, at: site)
      log.changed()
      let restarted = try await stage.start()
      for app in [app, restarted] {
        await log.get(try site.url(), app.dialers, expecting: site.body)
        await log.get(try other.url(), app.dialers, expecting: other.body)
        try show(!app.client.registryProblems.isEmpty, "the missing host is not reported")
      }
      return ChangeOutcome("its last pins stay, and it is reported", log)
    },
    .change("first start without a network") { log in
      let stage = try Environment()
      let site = try stage.site()
      let bundled = Data(
        try stage.registry.publish { try $0.list(site.host, site.server.identity) })
      stage.timeline.pass(days: 60)
      stage.registry.respond(HTTPResponse(delivery: .hangUp))
      log.changed()
      let app = try await stage.start { $0.bundledRegistry = bundled }
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try show(app.client.registryStatus.origin == .bundle, "it was not the bundled registry")
      return ChangeOutcome("the registry in the app stands in, 60 days old", log)
    },
  ]

  /// Answers of broken registries.
  private static func garbage(_ good: [UInt8]) -> [HTTPResponse] {
    let empty = JSONValue.object(["payload": .object(["keys": .array([])])]).canonicalBytes
    return [
      .text("<html>Log in to this network</html>", type: "text/html"), .text(""),
      .text("not found", status: 404), .text("sorry", status: 503), .text("{}"), .text("null"),
      HTTPResponse(body: Array(good.dropLast(20))), HTTPResponse(body: good + good),
      HTTPResponse(body: empty), HTTPResponse(body: [UInt8](repeating: 0xff, count: 4096)),
      HTTPResponse(body: good, delivery: .cutOff(afterBytes: 100)),
      HTTPResponse(delivery: .hangUp), .redirect(to: "http://portal.example/login"),
      HTTPResponse(body: Array("SSH-2.0-OpenSSH_9.2\r\n".utf8), delivery: .verbatim),
    ]
  }
}

/// The next verdict of a client.
private final class FirstVerdict: Sendable {
  private let verdict: Task<PinEvaluation?, Never>

  init(_ client: SslPinningClient) {
    let evaluations = client.evaluations
    verdict = Task {
      for await evaluation in evaluations { return evaluation }
      return nil
    }
  }

  var isStale: Bool? { get async { await verdict.value?.isStale } }
}
