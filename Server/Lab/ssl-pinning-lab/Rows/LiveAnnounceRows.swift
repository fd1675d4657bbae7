import CanonicalJSON
import FaultLab
import Foundation
import RegistryServer
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport

/// Renewals that `ssl-pinning announce` puts in use, and what a webhook is told of those that nobody announced. Real
/// processes, by the machine's clock; meanwhile an app sends requests all the time.
enum LiveAnnounceRows {
  static let changes: [Row] = [
    .change("registry server: new key put in use by announce, registry dead meanwhile") { log in
      let stage = try Environment()
      let site = try stage.site()
      let registry = try await LiveProcesses(stage, watching: site)
      try await registry.start()
      try await registry.lead()
      let (early, late) = (try await registry.startApp(), try await registry.startApp())
      for app in [early, late] { try await app.mustBeServed(by: site) }
      let isOver = Locked(false)
      defer { isOver.withLock { $0 = true } }
      let (url, dialers) = (try site.url(), early.dialers + late.dialers)
      let calls = Task {
        var refused: [String] = []
        while !isOver.withLock({ $0 }) {
          for dialer in dialers {
            let answer = await dialer.dial(url)
            if case .served = answer { continue }
            refused.append("\(dialer.name): \(answer.text)")
          }
          try? await Task.sleep(for: .seconds(1))
        }
        return refused
      }
      let new = try stage.issue(site.host)
      // What announce runs in the end.
      let control = try LocalHTTPServer { _ in
        do { try site.rotate(to: new) } catch { return .text("\(error)", status: 500) }
        return .text("in use")
      }
      let announcement = try await Announcement(new, of: site, at: registry, in: stage)
      try await registry.kill()
      log.changed()
      try show(
        try await announcement.begin("curl -fsS --noproxy '*' http://127.0.0.1:\(control.port)/")
          == 3,
        "announced without a registry")
      try show(try await announcement.resume() == 3, "went on without a registry")
      for app in [early, late] { await log.get(try site.url(), app.dialers, expecting: site.body) }
      let old = site.body
      try await registry.start()
      try await registry.lead()
      try show(try await announcement.resume() == 0, "did not go on with the registry back")
      try show(site.body != old, "the new key is not in use")
      for app in [early, late] { await log.get(try site.url(), app.dialers, expecting: site.body) }
      isOver.withLock { $0 = true }
      let refused = await calls.value
      try show(refused.isEmpty, "refused meanwhile: \(refused)")
      let outcome = ChangeOutcome(
        "announced while the registry was dead, in use only once it was back and listed the key",
        log)
      try show(outcome.refused == 0, "refused \(outcome.refused)")
      withExtendedLifetime(control) {}
      return outcome
    },
    .change("registry server: new CA, told by webhook and approved from there") { log in
      let stage = try Environment()
      let site = try stage.site()
      let other = try stage.otherRoot()
      let told = Locked<[(at: ContinuousClock.Instant, pin: String)]>([])
      let webhook = try LocalHTTPServer { request in
        let changes = (try? JSONValue(parsing: request.body))?.objectValue?["changes"]?.arrayValue
        for change in changes?.compactMap(\.objectValue) ?? []
        where change["kind"]?.stringValue == "key-held" && change["phase"]?.stringValue == "begun"
          && change["severity"]?.stringValue == "critical"
        {
          told.withLock { $0.append((.now, change["pin"]?.stringValue ?? "")) }
        }
        return .text("")
      }
      let registry = try await LiveProcesses(
        stage, watching: site, believing: [other],
        tls: ", dump_interval: 5s, confirmation_interval: 1s",
        "notify: {webhook: \"http://127.0.0.1:\(webhook.port)/\"}")
      try await registry.start()
      try await registry.lead()
      let app = try await registry.startApp(believing: [other])
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let new = try stage.issue(site.host, by: other)
      try site.rotate(to: new)
      log.changed()
      let event = ContinuousClock.now
      while told.withLock(\.isEmpty) {
        try show(.now - event < .seconds(bound), "nobody is told")
        for dialer in app.dialers {
          _ = await log.attempt(try site.url(), dialer, expecting: site.body)
        }
        try await Task.sleep(for: .seconds(1))
        log.nextSecond()
      }
      let (at, pin) = told.withLock { $0[0] }
      try show(pin == (try new.pin.base64), "told of another key")
      try await registry.administrator().approve(new, at: site.host)
      var waiting = app.dialers
      while !waiting.isEmpty, .now - event < .seconds(bound) {
        var refused: [Dialer] = []
        for dialer in waiting
        where try await !log.attempt(site.url(), dialer, expecting: site.body) {
          refused.append(dialer)
        }
        waiting = refused
        try await Task.sleep(for: .seconds(1))
        log.nextSecond()
      }
      log.healed(after: (.now - event) / .seconds(1), bound: Double(bound))
      await log.get(try site.url(), app.dialers, expecting: site.body)
      withExtendedLifetime(webhook) {}
      return ChangeOutcome(
        "\(((at - event) / .seconds(1)).inTenths) s from the new key to the webhook, at probes every 5 s",
        log)
    },
  ]

  /// Seconds within which somebody is told and the apps are served: far more than it takes.
  private static let bound = 120
}

/// A key that is announced with the operator's tool.
private struct Announcement {
  private let directory: URL
  private let arguments: [String]

  init(
    _ identity: ServerIdentity, of site: Site, at registry: LiveProcesses, in stage: Environment
  ) async throws {
    let directory = try stage.makeDirectory()
    self.directory = directory
    func write(_ text: String, _ name: String) throws -> String {
      let file = directory.appending(path: name)
      try Data(text.utf8).write(to: file)
      return file.path(percentEncoded: false)
    }
    let token = try await SslPinningTool.run([
      "token", "--config-file", registry.configurationFile, "--scope", "stage", "--host", site.host,
    ])
    arguments = [
      try write(identity.key.pem, "next.key"), "--file", LiveRegistry.file, "--endpoint",
      "\(site.host):\(site.server.port) at 127.0.0.1", "--list", registry.list, "--root-key",
      try write(registry.keys.shippedRoot, "root.pem"), "--server",
      String(registry.list.dropLast("/api/v1/\(LiveRegistry.file)".count)), "--token-file",
      try write(token, "token"), "--patience", "1", "--settle", "0",
    ]
  }

  private var state: [String] {
    ["--state", directory.appending(path: "jobs").path(percentEncoded: false)]
  }

  func begin(_ command: String) async throws -> Int32 {
    try await announce(arguments + ["--then", command])
  }

  func resume() async throws -> Int32 { try await announce(["--resume"]) }

  private func announce(_ arguments: [String]) async throws -> Int32 {
    let end = try await ChildProcess.run(
      try SslPinningTool.path(), ["announce"] + arguments + state)
    try show([0, 3].contains(end.exitCode), "announce: \(end.exitCode) \(end.stderr)")
    return end.exitCode
  }
}
