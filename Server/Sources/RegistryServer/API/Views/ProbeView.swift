import CanonicalJSON
import RegistryCore
import SslPinningRules

extension LastProbe {
  /// What came of it, in a word and the first reason.
  var summary: JSONValue {
    let outcomes = probe.observations.map(\.outcome)
    let words = Set(outcomes.map(\.word))
    return .object([
      "at": .integer(at),
      "outcome": .string(
        words.count > 1 ? "mixed" : words.first ?? ProbeObservation.Outcome.nobody),
      "reason": .nullable(outcomes.lazy.compactMap(\.reason).first),
      "failures": .count(failures),
    ])
  }

  /// Every observation.
  var shown: JSONValue {
    .object([
      "at": .integer(at), "failures": .count(failures),
      "observations": .array(probe.observations.map(\.shown)),
    ])
  }
}

extension ProbeObservation {
  fileprivate var shown: JSONValue {
    var chain: [SeenCertificate] = []
    if case .accepted(let seen) = outcome { chain = seen.path }
    return .object([
      "vantage": .string(vantage), "address": .string(address),
      "keyType": .nullable(keyType.isEmpty ? nil : keyType), "outcome": .string(outcome.word),
      "reason": .nullable(outcome.reason), "presented": .nullable(outcome.presented),
      "chain": .array(chain.map(\.shown)),
    ])
  }
}

extension ProbeObservation.Outcome {
  /// What a probe without an observation came to.
  fileprivate static let nobody = "unreachable"

  fileprivate var word: String {
    switch self {
    case .accepted: "accepted"
    case .refused: "refused"
    case .unreachable: Self.nobody
    }
  }

  fileprivate var reason: String? {
    switch self {
    case .accepted: nil
    case .refused(let reason, _), .unreachable(let reason): reason
    }
  }

  fileprivate var presented: SPKIPin? {
    switch self {
    case .accepted(let chain): chain.leaf.pin
    case .refused(_, let presented): presented
    case .unreachable: nil
    }
  }
}

extension HistoryEntry {
  /// As administrators see it.
  var shown: JSONObject {
    [
      "time": .integer(time), "event": .string(event),
      "endpoint": .nullable(endpoint.isEmpty ? nil : endpoint), "pin": .nullable(pin),
      "why": .string(why), "who": .string(who),
    ]
  }

  /// Whether it is about an endpoint, or about a key everywhere; of `nil` each is.
  func isAbout(_ id: String?) -> Bool {
    id == nil || endpoint == id || endpoint.isEmpty && pin != nil
  }

  /// A page of a history, and where the next one begins.
  static func page(
    _ entries: [(number: Int64, entry: HistoryEntry)], next: Int64?
  ) -> JSONObject {
    [
      "entries": .array(
        entries.map { number, entry in
          var json = entry.shown
          json["number"] = .integer(number)
          return .object(json)
        }),
      "next": .nullable(next),
    ]
  }
}

/// What people decided and have to decide, of all documents.
struct DecisionLists {
  let documents: [DocumentSnapshot]

  /// The denied keys, oldest first. Every document has its own list; as a rule they are the same.
  var denials: JSONObject {
    var first: [SPKIPin: DocumentState.Denial] = [:]
    var files: [SPKIPin: [String]] = [:]
    for document in documents {
      for denial in document.state.denied {
        files[denial.pin, default: []].append(document.file)
        if let known = first[denial.pin], known.at <= denial.at { continue }
        first[denial.pin] = denial
      }
    }
    let sorted = first.values.sorted { ($0.at, $0.pin) < ($1.at, $1.pin) }
    return [
      "denials": .array(
        sorted.map { denial in
          .object([
            "pin": .string(denial.pin.base64), "at": .integer(denial.at),
            "by": .string(denial.by), "why": .string(denial.why),
            "files": .texts(files[denial.pin] ?? []),
          ])
        })
    ]
  }

  /// The endpoints that were taken out, newest first.
  var tombstones: JSONObject {
    var list: [(file: String, id: String, isConfigured: Bool, DocumentState.Tombstone)] = []
    for document in documents where !document.state.tombstones.isEmpty {
      let configured = Set(document.settings.configuration.endpoints.map(\.id))
      for (id, tombstone) in document.state.tombstones {
        list.append((document.file, id, configured.contains(id), tombstone))
      }
    }
    list.sort { ($1.3.at, $0.file, $0.id) < ($0.3.at, $1.file, $1.id) }
    return [
      "tombstones": .array(
        list.map { file, id, isConfigured, tombstone in
          .object([
            "file": .string(file), "id": .string(id), "configured": .bool(isConfigured),
            "at": .integer(tombstone.at), "by": .string(tombstone.by),
            "why": .string(tombstone.why),
          ])
        })
    ]
  }
}
