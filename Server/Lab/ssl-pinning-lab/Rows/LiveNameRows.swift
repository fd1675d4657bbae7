import SslPinning
import TLSTools

/// Names that the server's resolver answers, and names that it does not.
enum LiveNameRows {
  private static let goodNames = 10
  private static let silentNames = 1000
  /// Fewer than half: more at once are a mass change, which rows of their own are about.
  private static let rotated = 4

  static let all: [Row] = [
    .change("registry server: a thousand silent names beside ten good ones") { log in
      let stage = try Environment()
      let sites = try (0..<goodNames).map { try stage.site("good\($0).localhost") }
      var first: Int64 = 0
      try await LiveRegistry.run(stage, watching: sites, silentNames: silentNames) { registry in
        let start = registry.time.seconds
        while !sites.allSatisfy({ registry.lists($0.host) }) {
          try show(
            registry.time.seconds - start <= 70, "every good name is published within 70 s")
          // Each step waits as long as a lookup hangs, and a row has three minutes.
          try await registry.pass(seconds: 5, step: 5)
        }
        first = registry.time.seconds - start
        let app = try await registry.startApp { $0.trust = stage.trust([]) }
        for site in sites { try await app.mustBeServed(by: site) }
        let scene = LiveScene(stage: stage, site: sites[0], registry: registry, app: app)
        for site in sites.prefix(rotated) { try site.rotate(to: stage.issue(site.host)) }
        log.changed()
        try await scene.heal(log, [app], at: sites, within: LiveRotationRows.bound)
      }
      return ChangeOutcome(
        "all \(goodNames) published after \(first) s, \(rotated) rotated unannounced, beside"
          + " \(silentNames) names whose lookups hang", log)
    }
  ]
}
