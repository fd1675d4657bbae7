import CanonicalJSON
import SslPinningRules

/// A policy as a registry's payload and the terms of its statement.
public struct PolicyPayload: Hashable, Sendable {
  /// `{"keys": […]}`.
  public let payload: JSONValue
  /// `{"hosts": […]}`: CA pins, and that a leaf or a CA pin is enough.
  public let statement: JSONValue
  /// Whether the payload alone would say something else.
  public let needsStatement: Bool
  /// What a registry cannot say.
  public let losses: [PolicyRemark]
}

extension PinPolicy {
  /// What `sign` makes a registry of.
  public var payload: PolicyPayload {
    var losses = anchorLosses
    let listed = rules.filter { rule in
      let name = rule.entry.pattern.description
      if rule.isExempt {
        losses.append(
          .init(name, "is not pinned there; a registry cannot take hosts out: left out"))
        return false
      }
      if rule.unpinnedFrom != nil {
        losses.append(.init(name, "is pinned until a date there; a registry's list stays in force"))
      }
      if rule.entry.enforcement == .reportOnly {
        losses.append(
          .init(name, "only reports there; that is the app's own setting (enforcement)"))
      }
      if rule.entry.pins.isEmpty {
        losses.append(.init(name, "has no readable pin: left out"))
        return false
      }
      for (role, pins, what) in [
        (PinEvaluation.PinRole.leaf, rule.entry.leaf, "leaf"), (.ca, rule.entry.ca, "CA"),
      ] where rule.entry.match == .all && pins.isEmpty && rule.entry.demands(role) {
        losses.append(
          .init(
            name,
            "demands a \(what) pin there, and none is readable: a registry goes by its other pins alone"
          ))
      }
      return true
    }
    if overlap == .mostSpecific {
      for rule in listed {
        let wider = listed.first { other in
          other.entry.pattern != rule.entry.pattern
            && other.entry.pattern.matches(rule.entry.pattern.base)
        }
        guard let wider else { continue }
        losses.append(
          .init(
            rule.entry.pattern.description,
            "gets the pins of \(wider.entry.pattern) as well: a registry unites all entries of a host"
          ))
      }
    }
    let keys = listed.flatMap { rule in
      rule.entry.leaf.pins.map { pin in
        var key = JSONObject([
          ("domainName", .string(rule.entry.pattern.description)),
          ("key", .string(pin.spki.base64)),
        ])
        if let end = pin.expires.flatMap({ JSONNumber(exactly: $0) }) {
          key["expire"] = .number(end)
        }
        return JSONValue.object(key)
      }
    }
    let hosts = listed.filter { $0.entry.demands(.ca) }.map { rule in
      JSONValue.object(
        JSONObject([
          ("domainName", .string(rule.entry.pattern.description)),
          ("ca", .array(rule.entry.ca.pins.map { .string($0.spki.base64) })),
          ("match", .string(rule.entry.match == .any ? "any" : "all")),
        ]))
    }
    return PolicyPayload(
      payload: .object(JSONObject([("keys", .array(keys))])),
      statement: .object(JSONObject([("hosts", .array(hosts))])), needsStatement: !hosts.isEmpty,
      losses: losses)
  }
}
