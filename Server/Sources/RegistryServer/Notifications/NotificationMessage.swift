import CanonicalJSON
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What a receiver gets: all that changed since the last delivery, in JSON.
struct NotificationMessage: Sendable {
  /// The form of the message; it changes if a field comes to mean something else.
  static let version: Int64 = 1

  let bytes: [UInt8]

  /// - Parameters:
  ///   - server: the name of the machine.
  ///   - now: when it is made, in Unix seconds.
  init(_ changes: [ConditionChange], from server: String, at now: Int64) {
    let object: JSONObject = [
      "version": .integer(Self.version), "server": .string(server), "sent": .integer(now),
      "refusing": .bool(changes.contains { $0.phase == .begun && $0.condition.isRefusing }),
      "changes": .array(changes.map { .object($0.json(from: server)) }),
    ]
    bytes = JSONValue.object(object).canonicalBytes
  }

  /// The headers by which a receiver knows that the message is from whoever has the secret, and is no old one: HMAC
  /// with SHA-256 (RFC 2104) over the time, a full stop and the body.
  func signature(by secret: Secret, at now: Int64) throws(CertificateError) -> [(
    name: String, value: String
  )] {
    let tag = try MessageAuthentication.tag(
      over: Array("\(now).".utf8) + bytes, key: Array(secret.revealed.utf8))
    return [
      ("X-SslPinning-Timestamp", "\(now)"),
      ("X-SslPinning-Signature", "sha256=" + hex(tag)),
    ]
  }
}

extension ConditionChange {
  /// The same for a repetition, on every server and after a restart, and where the condition begins again or comes to
  /// refuse apps. What each server sees for itself has an id for each: the end of one's trouble is not that of another's.
  func id(from server: String) -> String {
    let identity = condition.identity + (condition.isOfLeader ? "" : "\u{1f}" + server)
    return Base64URL.encode(Digest.sha256(identity.utf8).prefix(15))
      + (phase == .over ? ".over" : "")
  }

  func json(from server: String) -> JSONObject {
    var object: JSONObject = [
      "id": .string(id(from: server)), "phase": .string(phase.rawValue),
      "kind": .string(condition.kind.name),
      "severity": .string(condition.isRefusing ? "critical" : "warning"),
      "refusing": .bool(condition.isRefusing), "since": .integer(condition.since),
      "at": .integer(at), "message": .string(condition.message),
    ]
    if !condition.file.isEmpty { object["file"] = .string(condition.file) }
    if !condition.subject.isEmpty { object["subject"] = .string(condition.subject) }
    if let pin = condition.pin { object["pin"] = .string(pin.base64) }
    return object
  }
}
