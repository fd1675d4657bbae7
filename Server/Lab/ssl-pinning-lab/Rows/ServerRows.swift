import FaultLab
import Foundation
import HTTPServing
import RegistryCore
import RegistryServer
import SslPinning
import SslPinningRules
import TLSTools

/// The real registry server, which watches the endpoint; no change is announced to it.
enum ServerRows {
  /// Milliseconds between rounds of probes, and between the probes that confirm a new key.
  private static let (interval, confirmationInterval): (Int64, Int64) = (5000, 200)

  static let changes: [Row] = [
    .change("new key unannounced") { log in
      let stage = try Environment()
      let site = try stage.site()
      try await withService(stage, watching: [site]) { service in
        let app = try await start(stage, service)
        await log.get(try site.url(), app.dialers, expecting: site.body)
        try site.rotate(to: stage.issue(site.host, from: 0))
        log.changed()
        let bound = Double(interval) / 1000 + 10
        try await log.healing(
          site.url(), app.dialers, expecting: site.body, within: bound, pause: briefly)
      }
      return ChangeOutcome(
        "the real server probes every \(interval / 1000) s (60 s as shipped: bound 70 s)", log)
    }
  ]

  private static let briefly: @Sendable () async throws -> Void = {
    try await Task.sleep(nanoseconds: 20_000_000)
  }

  /// An app with the clocks of a real app.
  static func start(
    _ stage: Environment, _ service: RegistryService, clocks: Clocks = .system
  ) async throws -> App {
    var config = stage.config()
    config.rootKeys = []
    config.rootThreshold = nil
    config.signingKeyBase64 = service.publicKeyPEM
    config.endpointUrl = "http://\(service.address?.description ?? "")/api/v1/app.json"
    // Each app is on its own device.
    config.storage = .none
    return App(try await SslPinningClient(config: config, clocks: clocks))
  }

  /// Runs the registry server until `body` is over.
  static func withService(
    _ stage: Environment, watching sites: [Site],
    _ tls: TLSConfiguration = TLSConfiguration(
      interval: interval, confirmationInterval: confirmationInterval),
    clock: any ServerClock = SystemClock(), _ body: (RegistryService) async throws -> Void
  ) async throws {
    let directory = try stage.makeDirectory()
    let key = try SigningKey.generate(bits: 2048)
    try key.write(to: directory.appending(path: "prv.pem"))
    try key.writePublicKey(to: directory.appending(path: "pub.pem"))
    let anchors = directory.appending(path: "ca.pem")
    try stage.authority.root.pem.write(to: anchors, atomically: true, encoding: .utf8)
    let endpoints = try sites.map { site in
      WatchedEndpoint(
        fqdn: try HostName(site.host), port: site.server.port,
        address: IPAddress(bytes: [127, 0, 0, 1]), patterns: [.exact(try HostName(site.host))])
    }
    var tls = tls
    tls.directory = directory.path(percentEncoded: false)
    tls.anchors = anchors.path(percentEncoded: false)
    let service = try RegistryService(
      configuration: ServerConfiguration(
        documents: [DocumentConfiguration(file: "app.json", endpoints: endpoints)],
        listen: ListenAddress("127.0.0.1:0") ?? .standard, storage: .memory,
        tls: tls),
      clock: clock, log: .silent)
    try await service.start()
    do {
      // The first document may have only the sites that were probed first; wait for all of them.
      while !lists(service, sites) { try await briefly() }
      try await body(service)
      await service.stop()
    } catch {
      await service.stop()
      throw error
    }
  }

  private static func lists(_ service: RegistryService, _ sites: [Site]) -> Bool {
    let document = service.currentDocument("app.json")?.bytes ?? []
    let text = String(decoding: document, as: UTF8.self)
    return sites.allSatisfy { text.contains("\"\($0.host)\"") }
  }

  static let attacks: [Row] = [
    .attack("one host attacked in a loop while another rotates") {
      let stage = try Environment()
      let (site, victim) = (try stage.site(), try stage.site("bank.localhost"))
      let attacker = try LocalTLSServer(identity: stage.issue(victim.host)) { _ in .text("read") }
      let log = ChangeLog()
      var exhibits: [AttackTrial] = []
      try await withService(stage, watching: [site, victim]) { service in
        let app = try await start(stage, service)
        try await app.mustBeServed(by: site)
        try await app.mustBeServed(by: victim)
        victim.lead(to: attacker.port)
        try site.rotate(to: stage.issue(site.host, from: 0))
        log.changed()
        let bound = Double(interval) / 1000 + 10
        async let healed: Void = log.healing(
          site.url(), app.dialers, expecting: site.body, within: bound, pause: briefly)
        // Each attempt uses a new key, so that each can trigger a refresh.
        repeat {
          exhibits.append(
            try await AttackTrial(
              victim.url(), attacker: attacker, control: stage.control, pinned: app.dialers,
              .inHandshake("leaf-pin")))
          try attacker.replaceIdentity(stage.issue(victim.host), closingConnections: true)
          try await briefly()
        } while log.isHealing
        try await healed
      }
      let outcome = ChangeOutcome("", log)
      try show(outcome.lockOut == nil, outcome.lockOut ?? "")
      let seconds = (outcome.healing?.seconds ?? 0).inTenths
      return try AttackOutcome(
        "\(exhibits.count) attacks on one host; the other healed in \(seconds) s, refused"
          + " \(outcome.refused)", exhibits)
    }
  ]
}

/// The real registry server and real clients with their default settings, on a clock that the row moves.
enum ShippedRows {
  static let changes: [Row] = [
    .change("new key unannounced, at the settings as shipped") { log in
      try await asShipped(log)
    }
  ]

  /// The key changes right after a probe. Ten apps meet it, the first at once, the last 9 s later; each
  /// tries again every second.
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
        log.nextSecond()
      }
      log.healed(after: Double(time.seconds), bound: Double(bound))
      for app in apps { await log.get(url, app.dialers, expecting: body) }
    }
    return ChangeOutcome("ten apps, the last of them served", log)
  }
}
