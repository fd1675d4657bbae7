import CanonicalJSON

@testable import RegistryServer

/// Answers of an administration in which every text is the same.
enum CannedAnswers {
  private static let pin = JSONValue.string(RegistryServerTests.pin(5).base64)

  /// By path.
  static func everything(saying text: JSONValue) -> [(String, String)] {
    let name = text.stringValue ?? ""
    let alert: JSONObject = [
      "file": text, "kind": text, "endpoint": text, "pin": text, "message": text,
      "since": .integer(1),
    ]
    let counts: JSONObject = [
      "observed": .integer(0), "held": .integer(1), "staged": .integer(1), "active": .integer(1),
      "retiring": .integer(0),
    ]
    let document: JSONObject = [
      "file": text, "published": .null, "endpoints": .integer(1), "counts": .object(counts),
      "alerts": .integer(1),
    ]
    let certificate: JSONObject = [
      "pin": text, "subject": text, "issuer": text, "notBefore": .integer(1),
      "notAfter": .integer(2),
    ]
    let candidate: JSONObject = [
      "pin": pin, "state": .string("held"), "firstSeen": .integer(1), "lastSeen": .integer(1),
      "probes": .integer(3),
      "reasons": .array([.object(["reason": text, "explanation": text])]),
      "vantages": .array([text]), "chain": .array([.object(certificate)]),
      "assent": text, "confirming": .bool(true), "isShown": .bool(false),
      "witnesses": .array([
        .object(["vantage": text, "probes": .integer(3), "lastSeen": .integer(1)])
      ]),
      "met": .object(["apps": .integer(3), "reports": .integer(4), "last": .integer(1)]),
    ]
    let key: JSONObject = [
      "pin": pin, "state": text, "denied": .bool(false), "firstSeen": .integer(1),
      "lastSeen": .integer(1), "missedSince": .null, "retiresAt": .null,
      "certificateExpires": .null,
      "staged": .object(["at": .integer(1), "by": text, "note": text]),
      "seenBy": .array([.object(["vantage": text, "address": text, "at": .integer(1)])]),
      "path": .array([.object(["pin": pin, "subject": text])]),
    ]
    let observation: JSONObject = [
      "vantage": text, "address": text, "keyType": text, "outcome": text, "reason": text,
      "presented": text,
      "chain": .array([.object(certificate)]),
    ]
    let summary: JSONObject = [
      "id": text, "fqdn": text, "port": .integer(443), "address": text,
      "patterns": .array([text]), "interval": text, "approval": text, "paused": .bool(false),
      "source": text, "health": text, "worstKeyState": text, "counts": .object(counts),
      "alerts": .integer(1), "certificateExpires": .null,
      "lastProbe": .object([
        "at": .integer(1), "outcome": text, "reason": text, "failures": .integer(0),
      ]),
    ]
    var endpoint = summary
    endpoint["keys"] = .array([.object(key)])
    endpoint["candidates"] = .array([.object(candidate)])
    endpoint["probe"] = .object([
      "at": .integer(1), "failures": .integer(0),
      "observations": .array([.object(observation)]),
    ])
    endpoint["terms"] = .object(["ca": .array([text]), "match": text, "enforce": text])
    endpoint["alertList"] = .array([.object(alert)])
    var detail = document
    detail["defaults"] = .object([
      "interval": text, "approval": text, "confirmations": .integer(3), "grace": .integer(9),
    ])
    detail["vantages"] = .array([text])
    detail["alertsAboutDocument"] = .array([.object(alert)])
    detail["page"] = page([.object(summary)])
    let entry: JSONObject = [
      "number": .integer(1), "time": .integer(1), "event": text, "endpoint": text, "pin": text,
      "why": text, "who": text,
    ]
    let answers: [(String, JSONObject)] = [
      ("session", ["name": text, "issued": .integer(1), "expires": .integer(9_999_999_999)]),
      ("overview", overview(text, document: document, alert: alert)),
      ("documents", ["documents": .array([.object(document), .object(document)])]),
      ("documents/\(name)", detail),
      ("documents/\(name)/endpoints/\(name)", endpoint),
      ("documents/\(name)/history", ["entries": .array([.object(entry)]), "next": .null]),
      (
        "pending",
        page(
          [true, false].map {
            .object([
              "file": text, "endpoint": text, "candidate": .object(candidate), "isShown": .bool($0),
              "isPaused": .bool(false),
            ])
          }
        ).objectValue ?? [:]
      ),
      (
        "pending/groups",
        [
          "time": .integer(1), "total": .integer(2), "byIssuer": .array([.object(group(text))]),
          "byCause": .array([.object(group(text))]),
        ]
      ),
      (
        "endings",
        [
          "time": .integer(1), "offset": .integer(0), "limit": .integer(100), "total": .integer(1),
          "items": .array([
            .object([
              "file": text, "endpoint": text, "kind": text, "pin": text, "at": .integer(1_000_000),
            ])
          ]),
        ]
      ),
      (
        "proposals",
        [
          "secondPerson": .bool(true),
          "proposals": .array([
            .object([
              "id": text, "what": text, "file": text, "endpoint": text, "pin": text, "why": text,
              "request": text, "who": text, "token": text, "at": .integer(1),
              "expires": .integer(2),
            ])
          ]),
        ]
      ),
      (
        "denials",
        [
          "denials": .array([
            .object([
              "pin": text, "at": .integer(1), "by": text, "why": text, "files": .array([text]),
            ])
          ])
        ]
      ),
      (
        "tombstones",
        [
          "tombstones": .array([
            .object([
              "file": text, "id": text, "configured": .bool(true), "at": .integer(1), "by": text,
              "why": text,
            ])
          ])
        ]
      ),
      ("keysets", keySets(text)), ("reports/summary", reports(text)),
    ]
    return answers.map {
      ($0, String(decoding: JSONValue.object($1).canonicalBytes, as: UTF8.self))
    }
  }

  /// The pages that show them: address and heading.
  static func pages(named name: String) -> [(String, String)] {
    let escaped = name.map { character in
      character.isLetter || character.isNumber
        ? "\(character)" : character.utf8.map { "%" + String($0, radix: 16) }.joined()
    }.joined()
    return [
      ("#/", "Overview"), ("#/endpoints", "Endpoints"), ("#/document/\(escaped)", name),
      ("#/endpoint/\(escaped)/\(escaped)", name), ("#/history/\(escaped)", "History of \(name)"),
      ("#/pending", "Pending approvals"), ("#/denied", "Denied keys"), ("#/key-sets", "Key sets"),
      ("#/reports", "Reports"), ("#/calendar", "Calendar"),
    ]
  }

  private static func group(_ text: JSONValue) -> JSONObject {
    [
      "issuer": pin, "cause": text, "name": text, "keys": .integer(2), "documents": .integer(1),
      "shown": .integer(1), "apps": .integer(3), "since": .integer(1),
      "causes": .array([.object(["reason": text, "explanation": text])]),
      "endpoints": .array([.object(["file": text, "endpoint": text])]),
      "gone": .array([.object(["file": text, "endpoint": text])]),
      "assent": .array([text]), "confirming": .integer(1),
      "before": .array([.object(["issuer": pin, "name": text, "keys": .integer(2)])]),
    ]
  }

  private static func page(_ items: [JSONValue]) -> JSONValue {
    .object([
      "offset": .integer(0), "limit": .integer(50), "total": .integer(Int64(items.count)),
      "items": .array(items),
    ])
  }

  private static func overview(
    _ text: JSONValue, document: JSONObject, alert: JSONObject
  ) -> JSONObject {
    [
      "version": text, "time": .integer(1), "leader": .bool(true),
      "readiness": .object(["ready": .bool(false), "reasons": .array([text])]),
      "clock": .object([
        "believed": .bool(false), "wall": .integer(1), "synchronized": .bool(false),
      ]),
      "documents": .array([.object(document)]),
      "refusing": .object([
        "total": .integer(6), "since": .integer(1), "endpoints": .array([.object(alert)]),
      ]), "alertsTotal": .integer(1),
      "alerts": .array([.object(alert)]), "expiriesTotal": .integer(1),
      "expiries": .array([
        .object([
          "file": text, "endpoint": text, "kind": text, "pin": text, "at": .integer(1_000_000),
        ])
      ]),
      "reports": .object([
        "collecting": .bool(true), "classes": .object(["interception": .integer(1)]),
        "hourly": .array([.integer(0), .integer(3)]),
      ]),
    ]
  }

  private static func keySets(_ text: JSONValue) -> JSONObject {
    let key: JSONObject = [
      "id": text, "algorithm": text, "held": .bool(true), "signed": .bool(false),
    ]
    let role: JSONObject = ["threshold": .integer(1), "keys": .array([.object(key)])]
    return [
      "statements": .bool(true), "signingKey": .object(key), "onlineKeys": .array([.object(key)]),
      "documents": .array([
        .object([
          "file": text, "problem": text, "epoch": .integer(1),
          "rootHeld": .bool(true),
          "sets": .array([
            .object([
              "epoch": .integer(1), "expires": .integer(5), "published": .bool(false),
              "complete": .bool(false), "root": .object(role), "online": .object(role),
              "required": .array([
                .object([
                  "root": .integer(1), "threshold": .integer(1), "signed": .array([]),
                  "missing": .integer(1),
                ])
              ]),
            ])
          ]),
        ])
      ]),
    ]
  }

  private static func reports(_ text: JSONValue) -> JSONObject {
    func sums(_ members: JSONObject) -> JSONValue {
      var row = members
      (row["reports"], row["hosts"], row["last"]) = (.integer(3), .integer(1), .integer(1))
      return .object([
        "top": .array([.object(row)]),
        "others": .object(["count": .integer(0), "reports": .integer(0)]),
      ])
    }
    return [
      "collecting": .bool(true), "since": .integer(0), "until": .integer(7200),
      "bucket": .string("hour"),
      "reports": .integer(3),
      "timeline": .array([
        .array([.integer(0), .integer(1)]), .array([.integer(3600), .integer(2)]),
      ]),
      "hosts": sums(["host": text]),
      "chains": sums([
        "leafPin": text, "chain": text, "subject": text, "issuer": text, "standing": text,
        "class": text, "why": text,
      ]),
      "classes": sums(["class": text]),
      "versions": .array([
        .object([
          "app": text, "version": text, "reports": .integer(3),
          "timeline": .array([.array([.integer(0), .integer(3)])]),
        ])
      ]),
      "apps": sums(["app": text, "version": text, "platform": text]),
      "results": sums(["result": .integer(1), "rule": text]),
      "groups": .array([]), "dropped": .object(["groups": .integer(0), "reports": .integer(0)]),
      "unlisted": .object(["reports": .integer(3), "hosts": sums(["host": text])]),
    ]
  }
}
