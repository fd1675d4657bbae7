import FaultLab
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Keys and certificates change while the real registry server watches.
enum LiveRotationRows {
  /// After how many seconds every app that met an unannounced key is served again: a round of probes, and the
  /// client's pause between two fetches.
  static let bound: Int64 = 70

  static let all: [Row] = [
    .change("registry server: renewal with the same key") { log in
      try await LiveScene.run { scene in
        let (site, stage) = (scene.site, scene.stage)
        let (old, version) = (site.server.identity, try scene.registry.document.number)
        try await scene.get(log)
        try site.rotate(to: stage.issue(site.host, key: old.key, from: 0))
        log.changed()
        try await scene.get(log, scene.app, scene.registry.startApp())
        try await scene.dial(log, seconds: 120)
        try show(try scene.registry.document.number == version, "a document was published")
        try await scene.get(log)
      }
      return ChangeOutcome("another certificate, and nothing is published", log)
    },
    .change("registry server: new key announced") { log in
      var ways: [String] = []
      for announcement in LiveAdministrator.Announcement.allCases {
        try await LiveScene.run { scene in try await announced(scene, announcement, log) }
        ways.append(announcement.rawValue)
      }
      return ChangeOutcome(
        "staged as \(ways.joined(separator: ", ")), switched, and withdrawn by the server after"
          + " 7 days", log)
    },
    .change("registry server: new key published, client not refreshed") { log in
      try await LiveScene.run { scene in
        let new = try scene.stage.issue(scene.site.host)
        try await scene.announce(new)
        try scene.site.rotate(to: new)
        log.changed()
        try await scene.get(log)
      }
      return ChangeOutcome("the first mismatch fetches the pins and goes on", log)
    },
    .change("registry server: new key unannounced") { log in
      try await LiveScene.run { scene in
        let late = try await scene.registry.startApp()
        try await scene.get(log, scene.app, late)
        try scene.site.rotate(to: scene.stage.issue(scene.site.host, from: 0))
        log.changed()
        try await scene.heal(log, [scene.app, late], within: bound)
      }
      return ChangeOutcome("three probes it, at the settings as shipped", log)
    },
    .change("registry server: new intermediate") { log in
      try await LiveScene.run { scene in
        let (site, stage) = (scene.site, scene.stage)
        let root = try CertificateAuthority(chain: [stage.authority.root], key: stage.rootKey)
        let other = try root.issueIntermediate(
          name: "Other intermediate",
          validity: Environment.validity(stage.timeline.world, from: -1, to: 1825))
        try site.rotate(
          to: stage.issue(site.host, key: site.server.identity.key, by: other, from: -1))
        log.changed()
        try await scene.get(log, scene.app, scene.registry.startApp())
        // A new key as well, below a third one.
        let third = try root.issueIntermediate(
          name: "Third intermediate",
          validity: Environment.validity(stage.timeline.world, from: -1, to: 1825))
        try site.rotate(to: stage.issue(site.host, by: third, from: -1))
        log.changed()
        try await scene.heal(log, [scene.app], within: bound)
      }
      return ChangeOutcome(
        "the same key, and then another unannounced one, each below a new intermediate", log)
    },
    .change("registry server: two keys on one fleet") { log in
      try await LiveScene.run { scene in
        let (site, stage, registry) = (scene.site, scene.stage, scene.registry)
        let second = try Site(site.host, stage.issue(site.host))
        // Its address is known before the first user is sent there.
        registry.lead(site.host, to: site.server.port, second.server.port)
        try await registry.pass(seconds: bound)
        try await scene.hour(log)
        log.changed()
        for _ in 0..<5 {
          site.lead(to: second.server.port)
          await log.get(try site.url(), scene.app.dialers, expecting: second.body)
          site.lead()
          try await scene.get(log)
        }
        try await registry.passGrace()
        try registry.mustList(site.server.identity)
        try registry.mustList(second.server.identity)
      }
      return ChangeOutcome("two addresses of one name, both keys still listed after 8 days", log)
    },
    .change("registry server: rotation during keep-alive") { log in
      try await duringKeepAlive(log)
    },
    .change("registry server: rotation and back") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let (a, b) = (site.server.identity, try scene.stage.issue(site.host))
        try await scene.announce(b)
        try await scene.hour(log)
        // Rolled back within the grace time: the old key is still listed, without being staged.
        for identity in [b, a, b] {
          try site.rotate(to: identity)
          log.changed()
          try await scene.get(log)
          try await registry.pass(days: 3)
          try await scene.app.client.refresh()
          try await scene.get(log)
        }
        try await registry.pass(days: 5)
        try registry.mustList(a, false)
        try await scene.app.client.refresh()
        try await scene.announce(a)
        try site.rotate(to: a)
        log.changed()
        try await scene.get(log)
      }
      return ChangeOutcome(
        "A to B, back to A after 3 days, to B again; A withdrawn, and announced anew", log)
    },
  ]

  private static func announced(
    _ scene: LiveScene, _ announcement: LiveAdministrator.Announcement, _ log: ChangeLog
  ) async throws {
    let (site, registry) = (scene.site, scene.registry)
    try await scene.get(log)
    let (old, new) = (site.server.identity, try scene.stage.issue(site.host))
    // One app refreshes in time. The other meets the new key first and then refreshes.
    let late = try await registry.startApp()
    try await scene.announce(new, as: announcement)
    try await scene.hour(log)
    try await scene.get(log, scene.app, late)
    try site.rotate(to: new)
    log.changed()
    try await scene.get(log, scene.app, late)
    guard announcement == .certificate else { return }
    try await registry.pass(days: 6)
    try registry.mustList(old)
    try await registry.pass(days: 2)
    try registry.mustList(old, false)
    try await scene.app.client.refresh()
    try await scene.get(log, scene.app, late)
  }

  /// Four workers send requests continuously; each step waits for 40 more.
  private static func duringKeepAlive(_ log: ChangeLog) async throws -> ChangeOutcome {
    var connections = 0
    try await LiveScene.run { scene in
      let (registry, server) = (scene.registry, scene.site.server)
      // Its body does not change with its key.
      let steady = try LocalTLSServer(identity: server.identity) { _ in .text("served") }
      registry.lead(scene.site.host, to: steady.port)
      let url = try Site.url(scene.site.host, steady.port)
      let (old, new) = (server.identity, try scene.stage.issue(scene.site.host))
      let isOver = Locked(false)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask {
            while !isOver.withLock({ $0 }) {
              await log.get(url, scene.app.dialers, expecting: "served")
            }
          }
        }
        defer { isOver.withLock { $0 = true } }
        try await RotationRows.flow(steady)
        try await scene.announce(new)
        try await scene.hour()
        try await RotationRows.flow(steady)
        try steady.replaceIdentity(new)
        log.changed()
        try await RotationRows.flow(steady)
        try await registry.passGrace()
        try registry.mustList(old, false)
        try await scene.app.client.refresh()
        try await RotationRows.flow(steady)
      }
      connections = steady.counts.connections
      let requests = steady.requests.count
      try show(connections * 4 < requests, "\(connections) connections for \(requests) requests")
    }
    return ChangeOutcome(
      "server and registry switch under 4 busy workers, on \(connections) connections", log)
  }
}
