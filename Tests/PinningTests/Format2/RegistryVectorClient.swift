import CanonicalJSON
import Pinning
import TestSupport

/// A client that takes the documents of a vector, one after the other.
struct RegistryVectorClient {
  let trust: RegistryTrust
  var registry: TrustedRegistry?
  var learned = LearnedKeySets.none

  init(trust: RegistryTrust) { self.trust = trust }

  /// What becomes of a step's document: the specification's word, and the client's own.
  mutating func take(_ step: RegistryVector.Step) throws -> (outcome: String, text: String) {
    var bytes = try Vectors.bytes("registry/documents/\(step.document)")
    let json = (try? JSONValue(parsing: bytes))?.objectValue
    if let json, json["payload"] == nil, json["statement"] != nil {
      let payload = try step.payload.map { try Vectors.bytes("registry/documents/\($0)") }
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
    return try part?.document(payload: payload, completedBy: registry, limits: trust.limits)
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
}
