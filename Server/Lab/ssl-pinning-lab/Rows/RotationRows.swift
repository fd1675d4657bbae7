import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Announced changes of servers' keys and certificates.
enum RotationRows {
  static let all: [Row] = [
    .change("renewal with the same key") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let old = site.server.identity
      let renewed = try stage.issue(site.host, key: old.key, from: 0)
      try site.rotate(to: renewed)
      try show(renewed.leaf != old.leaf, "the certificate is the old one")
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      await log.get(try site.url(), try await stage.start().dialers, expecting: site.body)
      return ChangeOutcome("another certificate, no document published", log)
    },
    .change("new key announced") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let (old, new) = (site.server.identity, try stage.issue(site.host))
      try stage.registry.publish { try $0.list(site.host, old, new) }
      // One app refreshes in time. The other meets the new key first and then refreshes.
      let late = try await stage.start { $0.storage = .none }
      try await stage.hour(log, app, at: site)
      await log.get(try site.url(), app.dialers + late.dialers, expecting: site.body)
      try site.rotate(to: new)
      log.changed()
      await log.get(try site.url(), app.dialers + late.dialers, expecting: site.body)
      try stage.registry.publish { try $0.list(site.host, new) }
      try await stage.hour(log, app, at: site)
      await log.get(try site.url(), app.dialers + late.dialers, expecting: site.body)
      return ChangeOutcome("published, switched, old key withdrawn", log)
    },
    .change("new key published, client not refreshed") { log in
      let scene = try await Scenario()
      let (site, stage) = (scene.site, scene.stage)
      let new = try stage.issue(site.host)
      try stage.registry.publish { try $0.list(site.host, new) }
      try site.rotate(to: new)
      log.changed()
      await log.get(try site.url(), scene.app.dialers, expecting: site.body)
      return ChangeOutcome("the first mismatch fetches the pins and goes on", log)
    },
    .change("new CA") { log in
      let stage = try Environment()
      let now = stage.timeline.world
      let other = try CertificateAuthority.makeRoot(
        name: "Other root", validity: Environment.validity(now, from: -10, to: 3650))
      let site = try stage.site()
      let old = site.server.identity
      try stage.registry.publish {
        try $0.list(site.host, old)
        try $0.demand(site.host, stage.authority)
      }
      let app = try await stage.start {
        $0.trust = .anchors([stage.authority.root.der, other.root.der])
      }
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let new = try stage.issue(site.host, by: other, from: -1)
      try stage.registry.publish {
        try $0.list(site.host, old, new)
        try $0.demand(site.host, stage.authority, other)
      }
      try await stage.hour(log, app, at: site)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try site.rotate(to: new)
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try stage.registry.publish {
        try $0.list(site.host, new)
        try $0.demand(site.host, other)
      }
      try await stage.hour(log, app, at: site)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      return ChangeOutcome("another root and another key, leaf and CA both demanded", log)
    },
    .change("new intermediate") { log in
      let scene = try await Scenario(prepare: { try $1.demand(Environment.host, $0.authority) })
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let root = try CertificateAuthority(
        chain: [stage.authority.root], key: stage.rootKey)
      let other = try root.issueIntermediate(
        name: "Other intermediate",
        validity: Environment.validity(stage.timeline.world, from: -1, to: 1825))
      try stage.registry.publish { try $0.demand(site.host, stage.authority, other) }
      try await stage.hour(log, app, at: site)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try site.rotate(
        to: stage.issue(site.host, key: site.server.identity.key, by: other, from: -1))
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try stage.registry.publish { try $0.demand(site.host, other) }
      try await stage.hour(log, app, at: site)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      return ChangeOutcome("same key, below another intermediate whose pin is demanded", log)
    },
    .change("cross-signed CA") { log in
      let stage = try Environment()
      let validity = Environment.validity(stage.timeline.world, from: -10, to: 1825)
      let (pinned, other) = try (
        CertificateAuthority.makeRoot(name: "Pinned root", validity: validity),
        CertificateAuthority.makeRoot(name: "Other root", validity: validity)
      )
      let key = try PrivateKey.generate(.p256)
      let below = try pinned.issueIntermediate(name: "Issuer", key: key, validity: validity)
      let crossed = try other.issueIntermediate(name: "Issuer", key: key, validity: validity)
      let identity = try stage.issue(Environment.host, by: below, from: -1)
      let site = try Site(Environment.host, identity)
      try stage.registry.publish {
        try $0.list(site.host, identity)
        try $0.demand(site.host, pinned)
      }
      let app = try await stage.start { $0.trust = .anchors([pinned.root.der, other.root.der]) }
      await log.get(try site.url(), app.dialers, expecting: site.body)
      // In one of the two orders, the path that is found first ends at the other root.
      for issuers in [[crossed, below], [below, crossed]] {
        try site.rotate(
          to: ServerIdentity(
            certificates: [identity.leaf] + issuers.map(\.certificate), key: identity.key))
        log.changed()
        await log.get(try site.url(), app.dialers, expecting: site.body)
      }
      return ChangeOutcome("the server sends two paths, one of which has the pinned root", log)
    },
    .change("two keys on one fleet") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      let second = try Site(site.host, stage.issue(site.host))
      try stage.registry.publish {
        try $0.list(site.host, site.server.identity, second.server.identity)
      }
      try await stage.hour(log, app, at: site)
      log.changed()
      for _ in 0..<5 {
        site.lead(to: second.server.port)
        await log.get(try site.url(), app.dialers, expecting: second.body)
        site.lead()
        await log.get(try site.url(), app.dialers, expecting: site.body)
      }
      return ChangeOutcome("a second server with a key of its own, each answering in turn", log)
    },
    .change("rotation during keep-alive") { log in try await duringKeepAlive(log) },
    .change("rotation and back") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      let (a, b) = (site.server.identity, try stage.issue(site.host))
      await log.get(try site.url(), app.dialers, expecting: site.body)
      for (old, new) in [(a, b), (b, a), (a, b)] {
        try stage.registry.publish { try $0.list(site.host, old, new) }
        try await stage.hour(log, app, at: site)
        await log.get(try site.url(), app.dialers, expecting: site.body)
        try site.rotate(to: new)
        log.changed()
        await log.get(try site.url(), app.dialers, expecting: site.body)
        try stage.registry.publish { try $0.list(site.host, new) }
        try await stage.hour(log, app, at: site)
        await log.get(try site.url(), app.dialers, expecting: site.body)
      }
      return ChangeOutcome("A to B, back to A, and to B again, each withdrawn in between", log)
    },
    .change("wildcard host") { log in
      let (pattern, hosts) = ("*.fleet.localhost", ["a.fleet.localhost", "b.fleet.localhost"])
      let stage = try Environment()
      let (old, new) = (try stage.issue(pattern), try stage.issue(pattern))
      let sites = try hosts.map { try Site($0, old) }
      try stage.registry.publish { try $0.list(pattern, old) }
      let app = try await stage.start()
      for site in sites { await log.get(try site.url(), app.dialers, expecting: site.body) }
      try stage.registry.publish { try $0.list(pattern, old, new) }
      try await stage.hour(app)
      try sites.first?.rotate(to: new)
      log.changed()
      for site in sites { await log.get(try site.url(), app.dialers, expecting: site.body) }
      return ChangeOutcome("one of two hosts of a wildcard has its new key, both are served", log)
    },
  ]

  /// Four workers send requests continuously; each step waits for 40 more.
  private static func duringKeepAlive(_ log: ChangeLog) async throws -> ChangeOutcome {
    let stage = try Environment()
    let (old, new) = (try stage.issue(Environment.host), try stage.issue(Environment.host))
    let server = try LocalTLSServer(identity: old) { _ in .text("served") }
    try stage.registry.publish { try $0.list(Environment.host, old) }
    let app = try await stage.start()
    let url = try Site.url(Environment.host, server.port)
    let isOver = Locked(false)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          while !isOver.withLock({ $0 }) {
            await log.get(url, app.dialers, expecting: "served")
          }
        }
      }
      defer { isOver.withLock { $0 = true } }
      try await flow(server)
      try stage.registry.publish { try $0.list(Environment.host, old, new) }
      try await stage.hour(app)
      try await flow(server)
      try server.replaceIdentity(new)
      log.changed()
      try await flow(server)
      try stage.registry.publish { try $0.list(Environment.host, new) }
      try await stage.hour(app)
      try await flow(server)
    }
    let (requests, connections) = (server.requests.count, server.counts.connections)
    try show(connections * 4 < requests, "\(connections) connections for \(requests) requests")
    return ChangeOutcome(
      "server and registry switch under 4 busy workers, on \(connections) connections", log)
  }

  static func flow(_ server: LocalTLSServer) async throws {
    let goal = server.requests.count + 40
    for _ in 0..<10_000 where server.requests.count < goal {
      try await Task.sleep(nanoseconds: 2_000_000)
    }
    try show(server.requests.count >= goal, "the requests came to a halt")
  }
}
