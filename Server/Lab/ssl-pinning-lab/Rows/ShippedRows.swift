import RegistryServer
import SslPinningRules
import TLSTools

/// The real registry server and real clients at the settings that they are shipped with, by a clock
/// that the row moves.
enum ShippedRows {
  static let changes: [Row] = [
    .change("new key unannounced, at the settings as shipped") { log in
      try await asShipped(log)
    }
  ]

  /// The key changes right after a probe. Ten apps meet it, the first at once, the last 9 s later, and
  /// each tries again every second.
  private static func asShipped(_ log: ChangeLog) async throws -> ChangeOutcome {
    let (stage, time) = (try Environment(), VirtualTime())
    let site = try stage.site()
    let shipped = TLSConfiguration()
    try await ServerRows.withService(stage, watching: [site], shipped, clock: time) { service in
      try await time.untilAtRest(service)
      var apps: [App] = []
      for _ in 0..<10 {
        apps.append(try await ServerRows.start(stage, service, clocks: time.clocks))
      }
      for app in apps { await log.get(try site.url(), app.dialers, expecting: site.body) }
      try site.rotate(to: stage.issue(site.host, from: 0))
      log.changed()
      let (url, body) = (try site.url(), site.body)
      let bound = shipped.interval / 1000 + 10
      var waiting = Dictionary(uniqueKeysWithValues: apps.enumerated().map { ($0, $1) })
      while !waiting.isEmpty, time.seconds <= bound + 10 {
        for (delay, app) in waiting where time.seconds >= delay {
          var isServed = true
          for dialer in app.dialers where await !log.attempt(url, dialer, expecting: body) {
            isServed = false
          }
          if isServed { waiting[delay] = nil }
        }
        if waiting.isEmpty { break }
        try await time.advance(milliseconds: 1000, service)
      }
      log.healed(after: Double(time.seconds), bound: Double(bound))
      for app in apps { await log.get(url, app.dialers, expecting: body) }
    }
    return ChangeOutcome("ten apps, the last of them served", log)
  }
}
