import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningRules
import TLSTools

/// The registry's host is gone for 100 days, and the list comes by other roads. The signer still signs every ten
/// days, and the site's key rotates. On the days shown, apps send a request every second.
enum RoadRows {
  static let changes: [Row] = [
    .change("registry host dead 100 days, a mirror stands") { log in
      let scene = try await SecureScene()
      let (site, stage) = (scene.site, scene.stage)
      let mirror = try stage.registry.mirror(stage.issue("mirror.localhost"))
      let url = "https://mirror.localhost:\(mirror.port)/copies/app.json"
      try stage.registry.publish { $0.mirrors = [try RegistryMirror(url)] }
      try await scene.dial(log, [scene.app], seconds: 65)
      scene.front.stop()
      log.changed()
      var states: [RegistryStatus] = []
      for _ in 0..<10 {
        stage.timeline.pass(days: 10)
        let new = try stage.issue(site.host)
        try stage.registry.publish { try $0.list(site.host, new) }
        try site.rotate(to: new)
        // Connections are cut, and the app has slept for ten days: it refreshes before it refuses.
        let apps = [scene.app, try await scene.start()]
        try await scene.dial(log, apps, seconds: 10)
        // They share a cache: what one fetched from the mirror, the other may find there.
        states = apps.map(\.client.registryStatus)
      }
      try show(
        states.contains { $0.origin == .mirror } && !states.contains(where: \.isStale),
        "it was not the mirror: \(states)")
      let paths = mirror.requests.map(\.target)
      try show(paths.contains { $0.contains("/statement?epoch=0") }, "no part was asked for")
      try show(paths.contains { $0.contains("/payload/") }, "no payload was asked for")
      return ChangeOutcome("ten rotations, running and restarted; fetched in parts", log)
    },
    .change("registry host dead 100 days, healed by push") { log in
      let (scene, new) = try await beyondTheEnd(log)
      // What a push handler does: the app is awake and has the bytes.
      try await scene.app.client.accept(document: Data(new))
      log.healed(after: 0, bound: 1)
      try await scene.dial(log, [scene.app, try await scene.start()], seconds: 10)
      // From then on a statement alone is enough, about 1 KiB.
      for _ in 0..<2 {
        scene.stage.timeline.pass(days: 60)
        let part = try scene.stage.registry.statementPart(
          of: scene.stage.registry.publish())
        try await scene.app.client.accept(document: Data(part))
        try await scene.dial(log, [scene.app, try await scene.start()], seconds: 10)
      }
      return ChangeOutcome(
        "refused once the statement had ended; a document by push, then two statements", log)
    },
    .change("registry host dead 100 days, healed by a file") { log in
      let (scene, new) = try await beyondTheEnd(log)
      let book = scene.stage.registry.book
      // An administrator puts the document beside the app, which is then restarted.
      let restarted = try await scene.start(accepting: new)
      log.healed(after: 0, bound: 1)
      let installed = try await scene.start(accepting: new) {
        $0.storage = .none
        $0.minimumRegistry = RegistryMinimum(epoch: book.epoch, issued: book.issued)
      }
      try await scene.dial(log, [restarted, installed], seconds: 10)
      let status = installed.client.registryStatus
      try show(status.origin == .handed, "it was not the file: \(status)")
      return ChangeOutcome(
        "refused once the statement had ended; restarted with it, and installed with it", log)
    },
  ]

  static let attacks: [Row] = [
    .attack("lists handed over by somebody else") {
      let scene = try await Scenario()
      let (site, registry) = (scene.site, scene.stage.registry)
      let (attacker, identity) = try scene.middleman()
      let stolen = site.server.identity
      let older = try registry.book.bytes()
      try await scene.rotate()
      let forged = try registry.draft { try $0.list(site.host, identity) }
      var tampered = try forged.signed()
      tampered["statement"] = try registry.draft().signed()["statement"]
      var others = forged
      others.name = "other.json"
      var unsigned = forged
      unsigned.online = [try .generate(.ed25519)]
      let thief = try LocalTLSServer(identity: stolen) { _ in .text("read") }
      var exhibits: [AttackTrial] = []
      for (name, document) in [
        ("tampered with", JSONValue.object(tampered).canonicalBytes),
        ("another app's", try others.bytes()), ("signed by somebody else", try unsigned.bytes()),
        ("its statement alone", try registry.statementPart(of: unsigned.bytes())),
      ] {
        try await scene.app.mustNotTake(document, name)
        exhibits += try await scene.attack(
          by: attacker, at: attacker.port, .inHandshake("leaf-pin"))
        try await scene.app.mustBeServed(by: site)
      }
      try await scene.app.mustNotTake(older, "older")
      let restarted = try await scene.stage.start(accepting: older)
      exhibits += try await scene.attack(
        by: thief, at: thief.port, .inHandshake("leaf-pin"), with: scene.app, restarted)
      // A device that knows nothing and ships no minimum cannot tell old from new, so it accepts no document
      // that is handed over.
      registry.respond(HTTPResponse(delivery: .hangUp))
      do throws(SslPinningError) {
        _ = try await scene.stage.start(accepting: older) { $0.storage = .none }
        throw SslPinningError.cancelled
      } catch {
        if case .cancelled = error { throw Breach("an old list is a first list") }
      }
      // The control: a genuine document is accepted.
      let genuine = try registry.publish()
      registry.respond(HTTPResponse(delivery: .hangUp))
      try await scene.app.client.accept(document: Data(genuine))
      try await scene.app.mustBeServed(by: site)
      return try AttackOutcome(
        "tampered with, another app's, signed by another key, older; at a start, too", exhibits)
    }
  ]

  /// A registry that has been gone for 100 days, and an app whose statement has expired, so that it refuses
  /// everything. Returns also the document that the signer has signed since, with the site's current key.
  private static func beyondTheEnd(_ log: ChangeLog) async throws -> (SecureScene, [UInt8]) {
    let scene = try await SecureScene()
    let (site, stage) = (scene.site, scene.stage)
    try await scene.dial(log, [scene.app], seconds: 65)
    scene.front.stop()
    log.changed()
    for _ in 0..<2 {
      stage.timeline.pass(days: 40)
      try await scene.dial(log, [scene.app], seconds: 10)
    }
    stage.timeline.pass(days: 20)
    let new = try stage.issue(site.host)
    let document = try stage.registry.publish { try $0.list(site.host, new) }
    try site.rotate(to: new)
    for _ in 0..<10 {
      try await stage.timeline.second()
      site.lead()
      try show(try await !scene.attempt(log), "served beyond the statement's end")
    }
    return (scene, document)
  }
}

extension App {
  /// Checks that a document which is handed over is not believed.
  fileprivate func mustNotTake(_ document: [UInt8], _ name: String) async throws {
    let before = client.registryStamp
    do throws(SslPinningError) { try await client.accept(document: Data(document)) } catch {
      return try show(client.registryStamp.version == before.version, "\(name): \(error)")
    }
    throw Breach("a list that is \(name) was believed")
  }
}
