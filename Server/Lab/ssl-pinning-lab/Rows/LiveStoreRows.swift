import FaultLab
import Foundation
import RegistryServer
import SslPinning
import SslPinningRules
import TLSTools

/// Attackers who can write to the real registry server's store but have no key, and operators who change the
/// signing key. Meanwhile an app sends a request every second.
enum LiveStoreRows {
  static let changes: [Row] = [
    .change("registry server: signing key changed, two servers in the middle of it") { log in
      let stage = try Environment()
      let site = try stage.site()
      let registry = try await LiveProcesses(stage, watching: site)
      try await registry.start()
      try await registry.lead()
      let app = try await registry.startApp()
      func dial(seconds: Int) async throws {
        for _ in 0..<seconds {
          await log.get(try site.url(), app.dialers, expecting: site.body)
          try await Task.sleep(nanoseconds: 1_000_000_000)
        }
      }
      try await dial(seconds: 1)
      let id = try registry.replaceSigningKey()
      log.changed()
      // It has the new key while the store still expects the old one: it serves.
      try await registry.start()
      try await dial(seconds: 3)
      try await registry.adopt(id)
      try await dial(seconds: 3)
      // The server with the old key has stepped down.
      try await registry.kill()
      try await registry.lead()
      try await dial(seconds: 2)
      let new = try stage.issue(site.host)
      try await registry.administrator().stage(new, at: site.host)
      try site.rotate(to: new)
      log.changed()
      try await dial(seconds: 1)
      let outcome = ChangeOutcome(
        "one has the new prv.pem, one the old; keys adopt; then an announced rotation", log)
      try show(outcome.refused == 0, "refused \(outcome.refused)")
      return outcome
    }
  ]

  static let attacks: [Row] = [
    .attack("registry server: record edited in the store") {
      try await LiveAttackRows.live { scene in
        let thief = try scene.stage.issue(scene.site.host)
        let (own, his) = (try scene.site.server.identity.pin.base64, try thief.pin.base64)
        try await scene.registry.editRecord { bytes in
          let text = String(decoding: bytes, as: UTF8.self)
          let edited = text.replacing("\"pin\":\"\(own)\"", with: "\"pin\":\"\(his)\"")
          try show(edited != text, "the record has no such key")
          return [UInt8](edited.utf8)
        }
        return try await outcome(
          scene, thief, "leaf-pin", "his key put in the place of the site's, by one UPDATE")
      }
    },
    .attack("registry server: record played back") {
      try await LiveAttackRows.live { scene in
        let registry = scene.registry
        let stolen = scene.site.server.identity
        var old: [UInt8] = []
        try await registry.readRecord { old = $0 }
        try await LiveRegistryRows.rotate(scene, ChangeLog())
        try await registry.administrator.deny(stolen.pin)
        try await scene.hour()
        try await registry.editRecord { _ in old }
        return try await outcome(
          scene, stolen, "denied-key",
          "the row from before a key was denied, under the next version")
      }
    },
  ]

  /// An app sends a request every second for two minutes; then the thief acts, then the operator.
  private static func outcome(
    _ scene: LiveScene, _ thief: ServerIdentity, _ rule: String, _ what: String
  ) async throws -> AttackOutcome {
    let (registry, log) = (scene.registry, ChangeLog())
    let published = try registry.document.bytes
    log.changed()
    try await scene.dial(log, seconds: 120)
    try await scene.hour(log)
    try show(try registry.document.bytes == published, "something else was published")
    try show(try await registry.administrator.alerts() == ["seal-broken"], "nobody is told")
    let server = try LocalTLSServer(identity: thief) { _ in .text("read") }
    let exhibits = try await scene.attack(by: server, at: server.port, .inHandshake(rule))
    try await registry.resetRecord()
    try registry.mustList(thief, false)
    try await LiveRegistryRows.rotate(scene, log)
    let outcome = ChangeOutcome("", log)
    try show(outcome.lockOut == nil, outcome.lockOut ?? "")
    try show(outcome.refused == 0, "refused \(outcome.refused)")
    return try AttackOutcome("\(what): told, and never signed; the app was refused 0 s", exhibits)
  }
}
