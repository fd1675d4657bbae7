import CanonicalJSON
import Foundation
import SslPinningRules
import TestSupport

/// A client that takes the documents of a vector, one after the other.
struct RegistryVectorClient {
  let trust: RegistryTrust
  var registry: TrustedRegistry?
  var learned = LearnedKeySets.none
  /// Where the documents are.
  private let folder: URL

  init(trust: RegistryTrust, folder: URL = Vectors.root.appending(path: "registry/documents")) {
    self.trust = trust
    self.folder = folder
  }

  private func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: folder.appending(path: name)))
  }

  /// What becomes of a step's document: the specification's word, and the client's own.
  mutating func take(_ step: RegistryVector.Step) throws -> (outcome: String, text: String) {
    var bytes = try bytes(step.document)
    let json = (try? JSONValue(parsing: bytes))?.objectValue
    if let json, json["payload"] == nil, json["statement"] != nil {
      let payload = try step.payload.map(self.bytes)
      do throws(RegistryError) {
        guard let whole = try complete(bytes, payload) else { return ("incomplete", "incomplete") }
        bytes = whole
      } catch { return (RegistryVector.outcome(error), "\(error)") }
    }
    let refusal = judge(bytes, isHanded: step.handed ?? false, at: step.clock)
    return (RegistryVector.outcome(refusal), refusal?.description ?? "accepted")
  }

  private func complete(
    _ bytes: [UInt8], _ payload: [UInt8]?
  ) throws(RegistryError) -> [UInt8]? {
    guard let registry else { return nil }
    let part: StatementPart?
    do throws(RegistryError) {
      part = try StatementPart(parsing: bytes, limits: trust.limits)
    } catch .missingMember { return nil } catch { throw error }
    guard let part else { return nil }
    // What is believed comes first; nobody asks for what he has.
    if let whole = try part.document(completedBy: registry, limits: trust.limits) { return whole }
    guard let payload else { return nil }
    return try part.document(payload: payload, completedBy: registry, limits: trust.limits)
  }

  private mutating func judge(
    _ bytes: [UInt8], isHanded: Bool, at clock: Int64
  ) -> RegistryError? {
    if let before = registry {
      let update = before.update(
        with: bytes, under: trust, at: clock, by: isHanded ? .hand : .server)
      registry = update.registry
      return update.refusal
    }
    let first = TrustedRegistry.first(
      bytes, under: trust, knowing: learned, at: clock, by: isHanded ? .hand : .server)
    switch first {
    case .believed(let first):
      registry = first
      return nil
    case .refused(let error, let now):
      learned = now
      return error
    }
  }

  /// Stops the client and starts it again from what it stored.
  mutating func restart(at clock: Int64) throws {
    if let before = registry {
      registry = try TrustedRegistry(
        restoring: StoredState(decoding: before.state.encoded), under: trust, at: clock)
    } else {
      learned = LearnedKeySets(
        restoring: try StoredState(decoding: learned.state.encoded), under: trust)
    }
  }

  /// Where the client stands otherwise than the step says.
  func differences(from step: RegistryVector.Step) throws -> [String] {
    var found: [String] = []
    func expect<Value: Equatable>(_ what: String, _ actual: Value, _ expected: Value) {
      if actual != expected { found.append("\(what): \(actual), not \(expected)") }
    }
    let policy = try registry?.policy(whenExpired: .keepPinning)
    let time = registry?.time(at: step.clock)
    expect("keySet", registry?.keySetEpoch ?? learned.epoch, step.keySet)
    expect("number", registry?.stamp.version.map { [$0.epoch, $0.version] }, step.number)
    for (host, pins) in step.leaf {
      let leaf = policy?.entry(for: try HostName(host))?.leaf
      let live = leaf?.pins.map(\.spki).filter {
        leaf?.contains($0, at: time?.later ?? step.clock) ?? false
          && policy?.denied.contains($0) != true
      }
      expect("leaf of \(host)", live?.map(\.base64), pins)
    }
    for (host, pins) in step.ca ?? [:] {
      let ca = policy?.entry(for: try HostName(host))?.ca
      expect("ca of \(host)", ca?.pins.map(\.spki.base64), pins)
    }
    for (hosts, isRefused) in [(step.refused, true), (step.usable, false)] {
      for host in hosts ?? [] {
        guard let time, let policy else {
          found.append("\(host): no registry")
          continue
        }
        let refusal = policy.refusalOfAll(try HostName(host), at: time)
        expect("\(host) is refused", refusal != nil, isRefused)
      }
    }
    if let mirrors = step.mirrors {
      expect("mirrors", (registry?.mirrors ?? []).map(\.description), mirrors)
    }
    if let denied = step.denied {
      // By their bytes: base64 has another order.
      let own = (policy?.denied ?? []).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
      expect("denied", own.map(\.base64), denied)
    }
    return found
  }
}
