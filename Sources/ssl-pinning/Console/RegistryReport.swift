import CanonicalJSON
import Pinning

/// What a verified registry says at one moment, for people and for programs.
struct RegistryReport {
  private let trusted: TrustedRegistry
  private let now: Int64

  /// - Parameter now: Unix time in seconds, for the expiries.
  init(_ trusted: TrustedRegistry, at now: Int64) {
    self.trusted = trusted
    self.now = now
  }

  /// What in the registry clients cannot use.
  var problems: [String] {
    let keys = trusted.registry.keys
    let live = Set(keys.filter { isReadable($0) && counts($0) }.map(\.pattern))
    var told: Set<HostPattern> = []
    let dead = keys.map(\.pattern).filter { !live.contains($0) && told.insert($0).inserted }
    return trusted.registry.problems.map(\.description)
      + dead.map { "\($0) has no key that counts; clients refuse it" }
  }

  /// A line for each entry.
  var table: String {
    var table = TextTable(header: ["host", "pin", "expires", "state"])
    for key in trusted.registry.keys {
      table.add([
        key.pattern.description, (try? key.pin.get())?.base64 ?? "-",
        key.expires.map(dateText) ?? "never", state(key),
      ])
    }
    return table.text
  }

  /// Everything in one object.
  var json: JSONValue {
    let keys = trusted.registry.keys.map { key in
      JSONValue.members([
        "domainName": .string(key.pattern.description),
        "key": .optional((try? key.pin.get())?.base64),
        "expire": key.expires.map(JSONValue.integer) ?? .null,
        "state": .string(state(key)), "counts": .bool(isReadable(key) && counts(key)),
        "fqdn": .optional(key.fqdn),
      ])
    }
    return .members([
      "valid": .bool(true), "at": .integer(now), "keys": .array(keys),
      "payloadDigest": .string(trusted.stamp.payloadDigest),
      "problems": .array(problems.map(JSONValue.string)),
    ])
  }

  private func isReadable(_ key: RegistryKey) -> Bool { (try? key.pin.get()) != nil }

  private func counts(_ key: RegistryKey) -> Bool {
    guard let spki = try? key.pin.get() else { return false }
    return PinSet([Pin(spki, expires: key.expires)]).contains(spki, at: now)
  }

  private func state(_ key: RegistryKey) -> String {
    guard isReadable(key) else { return "unreadable" }
    return key.expires.map { now > $0 } == true ? "expired" : "ok"
  }
}
