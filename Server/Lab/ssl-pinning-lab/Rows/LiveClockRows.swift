import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Devices whose clocks are behind, while the real registry server watches: nobody refreshes by hand.
enum LiveClockRows {
  /// How a site comes by a certificate that is newer than all that the device has heard of.
  private enum Renewal: String, CaseIterable {
    case announced, unannounced
    case sameKey = "with the same key"
  }

  static let all: [Row] = Renewal.allCases.map { renewal in
    .change("registry server: clock −30 h, new certificate \(renewal.rawValue)") { log in
      let stage = try Environment()
      let site = try stage.site()
      // Behind the machine's own time, by which the server judges chains.
      let time = VirtualTime(behind: 2 * Timeline.hour)
      try await LiveRegistry.run(stage, watching: [site], time: time) { registry in
        let app = try await registry.startApp(clockWrongBy: -30 * Timeline.hour)
        let scene = LiveScene(stage: stage, site: site, registry: registry, app: app)
        try await scene.get(log)
        let key = renewal == .sameKey ? site.server.identity.key : try PrivateKey.generate(.p256)
        func issue() throws -> ServerIdentity {
          try stage.authority.issue(
            names: [site.host], key: key,
            validity: Validity(notBefore: time.now() - 30, notAfter: time.now() + Timeline.day))
        }
        if renewal == .announced { try await scene.announce(issue()) }
        try await registry.pass(seconds: 600)
        let new = try issue()
        try site.rotate(to: new)
        log.changed()
        try await stage.mustNotBeValidYet(site, at: time.now() - 30 * Timeline.hour)
        try await scene.heal(log, [app], within: LiveRotationRows.bound)
      }
      return ChangeOutcome(
        "newer than the device's clock and than all that it was told; the server signs anew", log)
    }
  }
}
