import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A pin list and what messages call it.
struct NamedPolicy {
  let place: String
  let policy: PinPolicy
  /// Unix seconds at which clients refuse the whole list; `nil` if it has no end.
  var ends: Int64?
  /// Unix seconds at which it was signed; `nil` if it does not say.
  var issued: Int64?
  /// Its key set, and Unix seconds from which clients take no newer list under it; `nil` if that has no end.
  var keySetEnd: (epoch: Int64, time: Int64)?
  /// Its pins as they were signed; `nil` if it is no signed registry.
  var pins: PinStates?
  /// What clients would find at its mirrors; empty unless they were asked.
  var mirrorProblems: [String] = []
}

/// The pin lists of a command line: files of any format, a signed registry, live servers.
enum PolicyArguments {
  static let registry = Flag.text(
    "--registry", "FILE|URL", "a signed registry; --key or --root-key goes with it")
  static let from = Flag<PolicyFormat>(
    "--from", "FORMAT",
    "the format of POLICY, where a file holds two: "
      + PolicyFormat.readable.map(\.rawValue).joined(separator: ", ")
  ) { text throws(FlagValueError) in
    guard let format = PolicyFormat(rawValue: text.lowercased()),
      PolicyFormat.readable.contains(format)
    else {
      throw FlagValueError(wanted: PolicyFormat.readable.map(\.rawValue).joined(separator: ", "))
    }
    return format
  }
  static let timeout = Flag.seconds("--timeout", "for the registry and each server; 10 by default")

  static let flags =
    [registry.description] + RegistryTrustArguments.flags + [
      from.description, TrustArguments.ca.description, timeout.description,
    ]

  /// The policies in files.
  static func files(_ invocation: Invocation) throws(CommandFailure) -> [NamedPolicy] {
    var policies: [NamedPolicy] = []
    for path in invocation.arguments { policies.append(try file(path, invocation)) }
    return policies
  }

  /// The policy in a file.
  static func file(_ path: String, _ invocation: Invocation) throws(CommandFailure) -> NamedPolicy {
    let bytes = try InputFile.read(path, limit: PinPolicy.maximumBytes)
    let name = InputFile.name(of: path)
    do throws(PolicyFormatError) {
      return NamedPolicy(place: name, policy: try PinPolicy(reading: bytes, as: invocation[from]))
    } catch { throw .no("\(name): \(error)") }
  }

  /// The registry of `--registry`, believed as an app that starts for the first time believes it.
  ///
  /// - Parameters:
  ///   - evenIfOver: whether one that clients refuse because it ended is read all the same.
  ///   - askingMirrors: whether the mirrors of a registry that is served are compared with it.
  static func signed(
    _ invocation: Invocation, at now: Int64, evenIfOver: Bool = false, askingMirrors: Bool = false
  ) async throws(CommandFailure) -> NamedPolicy? {
    guard let place = invocation[registry] else { return nil }
    let arguments = try RegistryTrustArguments(invocation, place: place)
    let bytes: [UInt8]
    var served: ServedRegistry?
    if place.contains("://") {
      let site = try ServedRegistry(
        place, trust: try TrustArguments.read(invocation), timeout: invocation[timeout] ?? 10)
      bytes = try await site.document()
      served = askingMirrors ? site : nil
    } else {
      bytes = try InputFile.read(place, limit: RegistryLimits.standard.maximumBytes)
    }
    let registryTrust = try arguments.trust(for: bytes)
    let trusted: TrustedRegistry
    do throws(RegistryError) {
      trusted =
        evenIfOver
        ? try TrustedRegistry(bundled: bytes, under: registryTrust, at: now)
        : try TrustedRegistry(accepting: bytes, under: registryTrust, at: now)
    } catch { throw .no("\(InputFile.name(of: place)) is not valid: \(error.toldToOperators)") }
    let policy = PinPolicy(trusted)
    return NamedPolicy(
      place: place.contains("://") ? Secrets.hidden(in: place) : InputFile.name(of: place),
      policy: policy, ends: trusted.statement?.expires,
      issued: trusted.statement?.issued,
      keySetEnd: trusted.keySetExpires.map { (trusted.keySetEpoch, $0) },
      pins: PinStates(
        registry: trusted.registry, statement: trusted.statement, denied: policy.denied,
        time: trusted.time(at: now)),
      mirrorProblems: await served?.mirrorProblems(of: trusted, under: registryTrust, at: now) ?? []
    )
  }
}
