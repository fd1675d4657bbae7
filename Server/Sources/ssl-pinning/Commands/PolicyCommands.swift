import CanonicalJSON
import Foundation
import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `export`: a pin list in the words of another pinning library or system.
enum ExportCommand {
  private static let to = Flag<PolicyFormat>(
    "--to", "FORMAT", PolicyFormat.writable.map(\.rawValue).joined(separator: ", "),
    isRequired: true
  ) { text throws(FlagValueError) in
    guard let format = PolicyFormat(rawValue: text.lowercased()),
      PolicyFormat.writable.contains(format)
    else {
      throw FlagValueError(wanted: PolicyFormat.writable.map(\.rawValue).joined(separator: ", "))
    }
    return format
  }
  private static let host = Flag.texts(
    "--host", "HOST[:PORT]", "pin the keys that this server shows now, at any address")
  private static let into = Flag.text(
    "--into", "INFO.plist", "put the pins into this file's text, and leave what else it says")
  private static let roles = Flag<PinEvaluation.PinRole>(
    "--roles", "leaf|ca", "what the pins of a format are that does not say (android, trustkit)"
  ) { text throws(FlagValueError) in
    switch text {
    case "leaf": return .leaf
    case "ca": return .ca
    default: throw FlagValueError(wanted: "leaf or ca")
    }
  }
  private static let strict = Flag(
    "--strict", "exit 1 where the format cannot say all of it, or an address is silent")

  static let command = Command(
    "export", "write a pin list for another library: Apple, Android, TrustKit, OkHttp, curl",
    argument: Argument(
      placeholder: "POLICY",
      help: "an Info.plist, a TrustKit or Android file, a payload; or --registry, or --host",
      count: .optional),
    flags: [to.description] + PolicyArguments.flags + [
      host.description, into.description, roles.description, OutputFile.flag.description,
      strict.description,
    ],
    notes: [
      "Each host is written with all pins that count for it, those of wider patterns included. What the format\n"
        + "cannot say is a warning with host and loss: depth of subdomains, leaf and CA apart, both demanded, pins\n"
        + "that end, report-only, addresses, denied keys. So is each host at which its clients let in or refuse other servers.\n"
        + "Nothing is written that ends the pinning on some day, and no pin that is denied or over.",
      "A host that would be refused there and is not refused here, or that the format would leave unpinned in\n"
        + "silence, is left out and told. If a wider entry would refuse it, it is exempt there, or the wider one is left\n"
        + "out. --strict makes each of these warnings exit code 1; the file is written. One on which no host is left\n"
        + "that it pins is not (exit code 1): it would let every server in, and TrustKit would end the app.",
      "curl holds one set of pins against every server of a run. Hosts with different ones are comments in its file, and\n"
        + "told; until the # of one is taken away, the file has every server refused.",
      "Over an Android file, --out tells what that said besides pins, such as base-config: it is lost. So are hosts that\n"
        + "were pinned there and are not any more, or were not refused and will be.",
      "A server of --host must be trusted (--ca names your own CA): its pin would be somebody else's otherwise.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let format = try invocation.require(to)
    let now = Int64(Date().timeIntervalSince1970)
    var policy = try await source(invocation, at: now)
    if let role = invocation[roles] { policy = policy.taking(role) }
    Terminal.warn(policy.remarks.map(\.description))
    // A list of suffixes without `com` is none.
    let suffixes = PublicSuffixes()
    var isSuffix: ((String) -> Bool)?
    if suffixes.contain("com") { isSuffix = { suffixes.contain($0) } }
    let written: PolicyExport?
    if let path = invocation[into] {
      let bytes = try InputFile.read(path, limit: PinPolicy.maximumBytes)
      do throws(PolicyFormatError) {
        written = try policy.merged(
          into: bytes, as: format, at: now, isPublicSuffix: isSuffix)
      } catch { throw .no("\(path): \(error)") }
    } else {
      written = policy.written(as: format, at: now, isPublicSuffix: isSuffix)
    }
    guard let written else {
      throw .usage(
        "--into is for nspinneddomains and trustkit; hint: --out writes a file of its own")
    }
    Terminal.warn(written.losses.map(\.description))
    guard !written.pinsNothing else {
      throw .no("no host is left that the file would pin: nothing is written")
    }
    var lost: [PolicyRemark] = []
    if format == .android, let old = OutputFile.existing(invocation),
      let bytes = try? InputFile.read(old.path, limit: PinPolicy.maximumBytes)
    {
      lost = policy.lost(byReplacing: bytes, with: written.text)
    }
    Terminal.warn(lost.map(\.description))
    try OutputFile.write(Array(written.text.utf8), invocation)
    return invocation[strict] && !(policy.remarks + written.losses + lost).losses.isEmpty
      ? .no : .yes
  }

  private static func source(
    _ invocation: Invocation, at now: Int64
  ) async throws(CommandFailure) -> PinPolicy {
    let hosts = invocation[host] ?? []
    let files = try PolicyArguments.files(invocation)
    let signed = try await PolicyArguments.signed(invocation, at: now)
    let lists = files + [signed].compactMap { $0 }
    guard lists.count + (hosts.isEmpty ? 0 : 1) == 1 else {
      throw .usage("one list is written at a time; hint: POLICY, --registry, or --host")
    }
    if let list = lists.first { return list.policy }
    let eyes = try EndpointEyes(
      trusting: try TrustArguments.authorities(invocation),
      seconds: invocation[PolicyArguments.timeout] ?? 10)
    var rules: [HostRule] = []
    var remarks: [PolicyRemark] = []
    for name in hosts {
      let (rule, unseen) = try await shown(name, eyes)
      rules.append(rule)
      remarks += unseen.map { PolicyRemark(.unclear, name, $0) }
    }
    return PinPolicy(format: .registry, rules: rules, overlap: .united, remarks: remarks)
  }

  /// What a live server shows, and what is to be said of addresses whose keys nobody saw. Clients that take another kind
  /// of key, or that are led to another address, must be let in, too.
  private static func shown(
    _ name: String, _ eyes: EndpointEyes
  ) async throws(CommandFailure) -> (rule: HostRule, unseen: [String]) {
    let target: ProbeTarget
    do throws(ProbeError) { target = try ProbeTarget(parsing: name) } catch {
      throw .usage("\(error)")
    }
    guard let server = await eyes.see(target) else { throw .usage("\(name) is no host") }
    let keys: [SeenEndpoint.Key]
    do throws(SeenEndpoint.Unreachable) { keys = try server.keys.get() } catch {
      throw .couldNotFindOut("\(name): \(error)")
    }
    var pins: [SPKIPin] = []
    for key in keys {
      guard key.complaint == nil, let pin = key.path.first else {
        throw .no(
          "\(name) is not trusted, and its key may be anybody's: \(key.complaint ?? "no pin")"
            + "; hint: --ca FILE names a CA of your own")
      }
      if !pins.contains(pin) { pins.append(pin) }
    }
    let entry = PolicyEntry(.exact(server.host), leaf: PinSet(pins.map { Pin($0) }))
    return (HostRule(entry), server.unseen)
  }
}

/// `import`: a list of another library as a payload that `sign` takes.
enum ImportCommand {
  private static let statement = Flag.text(
    "--statement", "FILE", "write here what a payload cannot hold, for sign --statement")
  private static let strict = Flag("--strict", "exit 1 where something is left behind")

  static let command = Command(
    "import", "make a registry's payload of an Info.plist, a TrustKit or an Android configuration",
    argument: Argument(placeholder: "POLICY", help: "the file; - is standard input", count: .one),
    flags: [
      PolicyArguments.from.description, statement.description, OutputFile.flag.description,
      strict.description,
    ],
    notes: [
      "Prints {\"keys\": …} for sign. CA pins, and that a leaf or a CA pin is enough, stand in the statement:\n"
        + "--statement FILE writes them as sign --statement takes them.",
      "TrustKit and Android do not say whether a pin is a server's or a CA's. Each is taken as both, with match\n"
        + "any, which lets in the same servers.",
      "  import Info.plist --out payload.json --statement statement.json\n"
        + "  sign --first --key prv.pem --online-key prv.pem --registry-name app.json \\\n"
        + "    --statement statement.json payload.json --out app.json",
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    guard let source = try PolicyArguments.files(invocation).first else { return .couldNotFindOut }
    let payload = source.policy.payload
    Terminal.warn((source.policy.remarks + payload.losses).map(\.description))
    if let path = invocation[statement] {
      if let out = invocation[OutputFile.flag],
        OutputFile.resolved(out) == OutputFile.resolved(path)
      {
        throw .usage("--out and --statement are one file; hint: another --statement")
      }
      try OutputFile.write(payload.statement.canonicalBytes + [UInt8(ascii: "\n")], to: path)
    } else if payload.needsStatement {
      throw .usage(
        "\(source.place) has pins that a payload cannot hold; hint: --statement FILE, for sign --statement"
      )
    }
    try OutputFile.write(payload.payload, invocation)
    let left = (source.policy.remarks + payload.losses).losses
    return invocation[strict] && !left.isEmpty ? .no : .yes
  }
}

extension [PolicyRemark] {
  /// Those of which something was left behind. One pin twice is left behind once, what TrustKit does on macOS by itself is
  /// no part of the list, and what is refused now lets nobody in.
  fileprivate var losses: [PolicyRemark] {
    filter { ![.duplicate, .unpinnedOnMacOS, .stricter].contains($0.kind) }
  }
}
