import CanonicalJSON
import RegistryCore
import SslPinningRules
import TLSTools

extension KnownKey {
  /// As administrators see it.
  ///
  /// - Parameters:
  ///   - grace: how long it is kept after it was missed, in seconds.
  ///   - names: what certificates are called, as far as that is known.
  func shown(grace: Int64, isDenied: Bool, names: [SPKIPin: String]) -> JSONValue {
    .object([
      "pin": .string(pin.base64), "state": .string(state.rawValue), "denied": .bool(isDenied),
      "firstSeen": .integer(firstSeen), "lastSeen": .integer(lastSeen),
      "missedSince": .nullable(missedSince),
      "retiresAt": .nullable(missedSince.map { $0 + grace }),
      "certificateExpires": .nullable(certificateExpires),
      "staged": staged?.shown ?? .null,
      "seenBy": .array(
        seenAt.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { place, at in
          .object([
            "vantage": .string(place.vantage), "address": .string(place.address),
            "at": .integer(at),
          ])
        }),
      "path": .array(
        lastPath.map {
          .object(["pin": .string($0.base64), "subject": .nullable(names[$0])])
        }),
    ])
  }

  /// The validated path that showed it last, from its own key to the anchor; the key alone if none is known.
  var lastPath: [SPKIPin] {
    let newest = paths.max {
      (seenAt[$0.key] ?? 0, $0.key) < (seenAt[$1.key] ?? 0, $1.key)
    }
    return [pin] + (newest?.value ?? [])
  }
}

extension DocumentSnapshot {
  /// What the certificates of an endpoint's keys are called. Of published keys pins are kept, no names: what probes show
  /// anywhere in the document has them.
  func certificates() -> [SeenCertificate] {
    lastProbes.values.flatMap { last in
      last.leaves
        + last.probe.observations.flatMap { observation -> [SeenCertificate] in
          if case .accepted(let chain) = observation.outcome { chain.path } else { [] }
        }
    }
  }

  func names(of keys: EndpointKeys) -> [SPKIPin: String] {
    let wanted = Set(keys.keys.flatMap { $0.paths.values.joined() + [$0.pin] })
    let known = certificates() + keys.candidates.values.flatMap(\.chain.path)
    return Dictionary(
      known.lazy.filter { wanted.contains($0.pin) && !$0.subject.isEmpty }
        .map { ($0.pin, $0.subject) }, uniquingKeysWith: { first, _ in first })
  }
}

extension KnownKey.Staging {
  fileprivate var shown: JSONValue {
    .object(["at": .integer(at), "by": .string(by), "note": .string(note)])
  }
}

extension CandidateKey {
  /// As administrators see it.
  ///
  /// - Parameter met: how many apps meet it.
  func shown(met: ReportPicture.Meeting) -> JSONValue {
    .object([
      "pin": .string(chain.leaf.pin.base64), "state": .string(state.rawValue),
      "firstSeen": .integer(firstSeen), "lastSeen": .integer(lastSeen), "probes": .count(probes),
      "reasons": .array(reasons.map(\.shown)), "assent": .nullable(assent?.explanation),
      "confirming": .bool(isGainingVoices), "isShown": .bool(isShown),
      "vantages": .texts(vantages), "chain": .array(chain.path.map(\.shown)),
      "witnesses": .array(
        witnesses.sorted { ($1.value.lastSeen, $0.key) < ($0.value.lastSeen, $1.key) }.map {
          .object([
            "vantage": .string($0.key), "probes": .count($0.value.probes),
            "lastSeen": .integer($0.value.lastSeen),
          ])
        }),
      "met": met.shown,
    ])
  }
}

extension CandidateKey.HoldReason {
  var shown: JSONValue {
    .object(["reason": .string(rawValue), "explanation": .string(explanation)])
  }
}

extension SeenCertificate {
  /// As administrators see it.
  var shown: JSONValue {
    .object([
      "pin": .string(pin.base64), "subject": .string(subject), "issuer": .string(issuer),
      "notBefore": .nullable(notBefore == 0 ? nil : notBefore), "notAfter": .nullable(expiry),
    ])
  }
}

/// Who may sign each document: public facts alone. Reads the files with the key sets, so it blocks.
struct KeySetsView {
  let signer: DocumentSigner
  /// Unix time in seconds.
  let now: Int64

  private var held: [TrustSigningKey] { signer.statements?.keys ?? [] }

  /// - Parameter documents: each file, and the document that is published in it.
  func json(of documents: [(file: String, published: [UInt8])]) -> JSONObject {
    [
      "statements": .bool(signer.statements != nil),
      "signingKey": Self.publicKey(signer.key.trustKey.roleKey),
      "onlineKeys": .array(held.map { Self.publicKey($0.roleKey) }),
      "documents": .array(documents.map { .object(document($0.file, $0.published)) }),
    ]
  }

  private func document(_ file: String, _ document: [UInt8]) -> JSONObject {
    let published = StatementSigner.published(in: document)
    var sets = published
    var (problem, epoch): (String?, Int64) = (nil, Int64(published.count))
    if let statements = signer.statements {
      do throws(SigningProblem) {
        let complete = try statements.keySets(of: file, published: published)
        epoch = Int64(complete.count)
        let stored = try statements.storedKeySets(of: file)?.sets ?? []
        sets = stored.count > complete.count ? stored : complete
        _ = try statements.onlineKeys(for: complete, at: now)
        problem = try statements.problem(of: file, behind: complete, at: now).map { "\($0)" }
      } catch { problem = "\(error)" }
    }
    // Without a set, the key that apps ship signs the first.
    let own = Set(held.map(\.roleKey.id)).union([signer.key.trustKey.roleKey.id])
    let isRootHeld =
      epoch == 0
      || sets.first { $0.keySet.epoch == epoch }?.keySet.root.keys.contains { own.contains($0.id) }
        == true
    return [
      "file": .string(file), "problem": .nullable(problem), "epoch": .integer(epoch),
      "rootHeld": .bool(isRootHeld),
      "sets": .array(
        sets.indices.map { index in
          .object(
            keySet(
              sets[index], after: index > 0 ? sets[index - 1] : nil,
              isPublished: index < published.count))
        }),
    ]
  }

  private func keySet(
    _ set: SignedKeySet, after previous: SignedKeySet?, isPublished: Bool
  ) -> JSONObject {
    let demanding = [previous, set].compactMap { $0 }.map { demanding in
      let root = demanding.keySet.root
      return (demanding.keySet.epoch, root.threshold, set.signers(of: root).map(\.id))
    }
    return [
      "epoch": .integer(set.keySet.epoch), "expires": .nullable(set.keySet.expires),
      "published": .bool(isPublished),
      "complete": .bool(demanding.allSatisfy { $0.2.count >= $0.1 }),
      "root": role(set.keySet.root, in: set), "online": role(set.keySet.online, in: set),
      "required": .array(
        demanding.map { epoch, threshold, signed in
          .object([
            "root": .integer(epoch), "threshold": .count(threshold),
            "signed": .texts(signed.map(\.base64)),
            "missing": .count(max(0, threshold - signed.count)),
          ])
        }),
    ]
  }

  private func role(_ role: KeyRole, in set: SignedKeySet) -> JSONValue {
    let signers = Set(set.signers(of: role).map(\.id))
    let own = Set(held.map(\.roleKey.id))
    return .object([
      "threshold": .count(role.threshold),
      "keys": .array(
        role.keys.map { key in
          .object([
            "id": .string(key.id.base64), "algorithm": .string(key.algorithm),
            "held": .bool(own.contains(key.id)), "signed": .bool(signers.contains(key.id)),
          ])
        }),
    ])
  }

  private static func publicKey(_ key: RoleKey) -> JSONValue {
    .object(["id": .string(key.id.base64), "algorithm": .string(key.algorithm)])
  }
}
