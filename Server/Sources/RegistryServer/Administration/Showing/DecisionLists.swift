import CanonicalJSON
import RegistryCore
import SslPinningRules

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

  /// The held keys, those that wait longest first.
  func pending(_ range: PageRange) -> JSONObject {
    var list: [(file: String, id: String, CandidateKey)] = []
    for document in documents {
      for endpoint in document.endpoints {
        let id = endpoint.id
        for candidate in document.state.keysByEndpoint[id]?.held.values.map({ $0 }) ?? [] {
          list.append((document.file, id, candidate))
        }
      }
    }
    list.sort { ($0.2.firstSeen, $0.file, $0.id) < ($1.2.firstSeen, $1.file, $1.id) }
    return range.page(of: list) { file, id, candidate in
      .object([
        "file": .string(file), "endpoint": .string(id), "candidate": candidate.shown,
      ])
    }
  }
}
