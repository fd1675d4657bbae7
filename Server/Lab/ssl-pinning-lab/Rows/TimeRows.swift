import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Statements from the future, and devices in the past. The registry uses TLS, and its certificate ends before
/// such times; apps send a request every second and refresh only by themselves.
enum TimeRows {
  private static let offsets: [Int64] = [61, 100, 300, 3650]

  static let changes: [Row] =
    offsets.map { days in
      .change("issued +\(days) days, by accident") { log in
        for begins in [false, true] { try await accident(days, healedByEpoch: begins, log) }
        return ChangeOutcome(
          "healed by the next version and by a new epoch, and after restarts", log)
      }
    }
    + offsets.map { days in
      .change("issued +\(days) days, by a thief of the online key") { log in
        for begins in [false, true] { _ = try await theft(days, healedByEpoch: begins, log) }
        return ChangeOutcome(
          "locked out by the thief until the operator signs the next version, and until the root keys begin an epoch; restarted"
            + " meanwhile and afterwards", log)
      }
    } + [
      .change("clock −400 days, the registry's certificate renewed") { log in
        let scene = try await SecureScene()
        let (site, stage) = (scene.site, scene.stage)
        try await scene.dial(log, [scene.app], seconds: 5)
        stage.timeline.setDeviceWrong(by: -400 * Timeline.day)
        log.changed()
        for _ in 0..<2 {
          stage.timeline.pass(days: 40)
          try scene.front.replaceIdentity(
            stage.issue("localhost", from: 0), closingConnections: true)
          let new = try stage.issue(site.host, from: 0)
          try stage.registry.publish { try $0.list(site.host, new) }
          try site.rotate(to: new)
          try await stage.mustNotBeValidYet(site)
          let restarted = try await scene.start()
          try await scene.dial(log, [scene.app, restarted], seconds: 65)
        }
        try await mustBlameItsClock(scene)
        return ChangeOutcome(
          "twice, with the site's key; a first start is told that its clock is the likely cause",
          log)
      },
      .change("clock +60 days, the registry's certificate renewed") { log in
        let scene = try await SecureScene()
        let (site, stage) = (scene.site, scene.stage)
        try await scene.dial(log, [scene.app], seconds: 5)
        stage.timeline.setDeviceWrong(by: 60 * Timeline.day)
        log.changed()
        for _ in 0..<2 {
          stage.timeline.pass(days: 20)
          // Already expired by the device's clock on the day on which it begins.
          try scene.front.replaceIdentity(
            stage.issue("localhost", from: 0, to: 46), closingConnections: true)
          let new = try stage.issue(site.host, from: 0, to: 46)
          try stage.registry.publish { try $0.list(site.host, new) }
          try site.rotate(to: new)
          try await scene.dial(log, [scene.app, try await scene.start()], seconds: 65)
        }
        return ChangeOutcome(
          "twice, with the site's key: both over by the device's clock when they begin", log)
      },
    ]

  static let attacks: [Row] = offsets.map { days in
    .attack("stolen online key, issued +\(days) days, after the new epoch") {
      let log = ChangeLog()
      let (scene, thief, identity) = try await theft(days, log)
      var exhibits: [AttackTrial] = []
      for app in [scene.app, try await scene.start()] {
        scene.site.lead(to: thief.port)
        exhibits.append(
          try await AttackTrial(
            scene.site.url(), attacker: thief, control: scene.stage.control, pinned: app.dialers,
            .inHandshake("leaf-pin")))
        scene.site.lead()
        try await app.mustBeServed(by: scene.site)
      }
      try show(
        scene.app.client.registryStamp.version?.epoch == 2, "the new epoch is not believed")
      withExtendedLifetime(identity) {}
      return try AttackOutcome("running and restarted: the thief's key is worth nothing", exhibits)
    }
  }

  /// A signer whose clock was ahead for one daily signing.
  private static func accident(
    _ days: Int64, healedByEpoch: Bool, _ log: ChangeLog
  ) async throws {
    let scene = try await SecureScene()
    let (site, stage) = (scene.site, scene.stage)
    try stage.registry.publish { $0.issued += days * Timeline.day }
    try await scene.dial(log, [scene.app], seconds: 65)
    try show(scene.app.client.registryStamp.version?.version == 2, "the accident is not believed")
    log.changed()
    let restarted = try await scene.start()
    try await scene.dial(log, [scene.app, restarted], seconds: 5)
    if healedByEpoch { try stage.registry.beginEpoch(online: .generate(.p256)) }
    let new = try stage.issue(site.host)
    try stage.registry.publish { try $0.list(site.host, new) }
    try site.rotate(to: new)
    try await scene.dial(log, [scene.app, restarted], seconds: 65)
    let number = stage.registry.book
    for app in [scene.app, restarted, try await scene.start()] {
      let believed = app.client.registryStamp.version
      try show(
        believed == .init(epoch: number.epoch, version: number.version), "the cure is not believed")
      try await scene.dial(log, [app], seconds: 2)
    }
  }

  /// A thief of the online key lists his own key in a statement from the future, for as long as possible; then
  /// the operator signs above it, or the root keys begin a new epoch.
  private static func theft(
    _ days: Int64, healedByEpoch: Bool = true, _ log: ChangeLog
  ) async throws -> (SecureScene, InterceptingProxy, ServerIdentity) {
    let scene = try await SecureScene(epoch: true)
    let (site, stage) = (scene.site, scene.stage)
    let thief = try InterceptingProxy.transparent(
      upstream: .loopback(site.server.port), authority: stage.authority)
    guard let identity = try thief.identity(for: site.host) else {
      throw Inconclusive("the thief has no certificate")
    }
    stage.registry.serve(
      try stage.registry.draft {
        $0.version = 1_000_000
        $0.issued += days * Timeline.day
        // The most that clients believe.
        $0.lifetime = 400 * Timeline.day
        try $0.list(site.host, identity)
      }.bytes())
    var isServed = true
    for _ in 0..<65 {
      try await stage.timeline.second()
      site.lead()
      isServed = try await scene.attempt(log)
    }
    try show(!isServed, "the theft locked nobody out")
    let apps = [scene.app, try await scene.start()]
    if healedByEpoch {
      try stage.registry.beginEpoch(online: .generate(.p256))
      try stage.registry.publish()
    } else {
      try stage.registry.publish { $0.version = 1_000_001 }
    }
    log.changed()
    // The client's own pause between two refreshes.
    var seconds = 0
    while try await !scene.attempt(log, apps), seconds < 20 {
      try await stage.timeline.second()
      seconds += 1
    }
    log.healed(after: Double(seconds), bound: 11)
    try await scene.dial(log, apps + [try await scene.start()], seconds: 5)
    return (scene, thief, identity)
  }

  private static func mustBlameItsClock(_ scene: SecureScene) async throws {
    do throws(SslPinningError) { _ = try await scene.start { $0.storage = .none } } catch {
      guard case .clockBehind = error else { throw Inconclusive("a first start says: \(error)") }
      return
    }
    throw Breach("a first start believes a certificate that is not valid yet")
  }
}

/// A stage with one site, an app on a device in the stage's time, and a registry over TLS.
struct SecureScene: Sendable {
  let stage: Environment
  let site: Site
  /// The registry's own server. Its certificate is valid for 47 days.
  let front: LocalTLSServer
  let app: App

  /// - Parameter epoch: whether a separate online key signs, which can then be stolen.
  init(epoch: Bool = false) async throws {
    stage = try Environment()
    site = try stage.site()
    front = try stage.registry.front(stage.issue("localhost", from: -1, to: 46))
    if epoch { try stage.registry.beginEpoch(online: .generate(.p256)) }
    let site = site
    try stage.registry.publish { try $0.list(site.host, site.server.identity) }
    app = try await Self.start(stage, front)
    try await app.mustBeServed(by: site)
  }

  /// Starts an app that finds the storage of earlier ones, and refreshes every minute.
  ///
  /// - Parameter document: handed over at the start.
  func start(
    accepting document: [UInt8]? = nil, _ adjust: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws(SslPinningError) -> App {
    try await Self.start(stage, front, accepting: document, adjust)
  }

  private static func start(
    _ stage: Environment, _ front: LocalTLSServer, accepting document: [UInt8]? = nil,
    _ adjust: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws(SslPinningError) -> App {
    var config = stage.config()
    config.endpointUrl = "https://localhost:\(front.port)/api/v1/app.json"
    config.refreshInterval = 60
    adjust(&config)
    return App(
      try await SslPinningClient(
        config: config, accepting: document.map { Data($0) },
        clocks: stage.timeline.livingClocks()))
  }

  /// Sends a request every second with every dialer of these apps; each must be served. Every tenth second
  /// connections are cut, so that new ones must be evaluated.
  func dial(_ log: ChangeLog, _ apps: [App], seconds: Int) async throws {
    for second in 0..<seconds {
      try await stage.timeline.second()
      if second % 10 == 0 { site.lead() }
      log.nextSecond()
      for app in apps { await log.get(try site.url(), app.dialers, expecting: site.body) }
    }
  }

  /// Sends a request with every dialer of these apps, and returns whether all were served.
  func attempt(_ log: ChangeLog, _ apps: [App]? = nil) async throws -> Bool {
    var areServed = true
    log.nextSecond()
    for dialer in (apps ?? [app]).flatMap(\.dialers) {
      let isServed = await log.attempt(try site.url(), dialer, expecting: site.body)
      areServed = areServed && isServed
    }
    return areServed
  }
}
