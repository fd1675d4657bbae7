import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `announce`: a key is on every list that apps get before a server shows it, and then a command puts it in use.
///
/// - The order is the point: the key is staged, each list is fetched and verified as an app does it, and only if all of
///   them have the key the command runs.
/// - What is begun is written down first, and forgotten when the command has ended with 0. So a step that fails is tried
///   again, in the same call or by `--resume`, also after the machine was down.
/// - The command runs until it has ended with 0, and again if this program dies while it runs. It must bear that.
/// - "Not yet" is said only of what is written down. What a call needs before that, such as its token, is its end.
enum AnnounceCommand {
  private static let file = Flag.text("--file", "NAME", "the document that the endpoint is in")
  private static let endpoint = Flag.text(
    "--endpoint", "HOST[:PORT]", "that will show the key; port 443 by default")
  private static let lists = Flag<[String]>.texts(
    "--list", "URL", "a list that apps get; its mirrors are looked at as well")
  private static let hosts = Flag<[String]>.texts(
    "--host", "NAME", "a host that apps call, if it is not that of --endpoint")
  private static let then = Flag.text(
    "--then", "COMMAND", "run this by /bin/sh once all of them have the key, such as a reload")
  private static let settle = Flag.seconds(
    "--settle", "wait so long between the last list and the command; 0 by default")
  private static let patience = Flag.seconds(
    "--patience", "exit with 3 after this, and leave the rest to --resume; 600 by default")
  private static let state = Flag.text(
    "--state", "DIR", "what is begun is kept here; else announce, where the server keeps its state")
  private static let resume = Flag("--resume", "go on with all that was begun, and nothing else")

  static let command = Command(
    "announce", "have a key on the lists before it is used, then run a command",
    argument: Argument(
      placeholder: "FILE",
      help: "the key: a private key, a CSR, a certificate or a public key, in PEM",
      count: .optional),
    flags: [
      file.description, endpoint.description, lists.description, hosts.description,
      then.description, settle.description, patience.description, state.description,
      resume.description,
      AdminCommands.why.description,
    ] + RegistryTrustArguments.flags + AdminCall.flags,
    notes: [
      "Of a private key, a request that it signs is sent, never the key: so a token of scope stage will do\n"
        + "(token --scope stage --host HOST). Files are read again by --resume, so they must stay.",
      "Exit code 0: the command ran, and ended with 0. 1: the server refuses the key or the token, or\n"
        + "nothing was begun. 3: not yet. What was begun goes on with announce --resume, which a timer should\n"
        + "call every few minutes. The command has no time-out: one that hangs keeps all that wait.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let folder = URL(
      filePath: invocation[state] ?? StorageConfiguration.dataDirectory() + "/announce"
    ).standardizedFileURL.path(percentEncoded: false)
    guard invocation[resume] else {
      let job = try AnnouncementJob(
        invocation.arguments, for: invocation[endpoint] ?? "", in: invocation[file] ?? "", folder,
        CommandLine.arguments)
      return try await carryOut(job, invocation, isNew: true)
    }
    guard invocation.arguments.isEmpty else {
      throw .usage("--resume takes no key; hint: it goes on with all that was begun")
    }
    var status = ExitStatus.yes
    for job in try AnnouncementJob.all(in: folder) {
      do throws(CommandFailure) {
        status = status.worse(try await carryOut(job, try job.invocation()))
      } catch {
        // With the file's name: whoever gives it up deletes that.
        Terminal.say("\(job.key) (\(job.path)): \(error.message)")
        status = status.worse(error.status)
      }
    }
    return status
  }

  private static func carryOut(
    _ job: AnnouncementJob, _ invocation: Invocation, isNew: Bool = false
  ) async throws(CommandFailure) -> ExitStatus {
    let deadline = ContinuousClock.now + .seconds(invocation[patience] ?? 600)
    let places = invocation[lists] ?? []
    guard !places.isEmpty else {
      throw .usage("missing --list URL; hint: the URL that apps have, once for each")
    }
    let path = try Self.path(invocation)
    let call: AdminCall
    let lock: Int32
    do throws(CommandFailure) {
      call = try AdminCall(invocation)
      lock = try await turn(job, isNew ? deadline : .now)
    } catch { throw isNew ? error.asNothingBegun : error }
    defer { close(lock) }
    // It ended meanwhile.
    guard isNew || job.isThere else { return .yes }
    var key: AnnouncementKey
    do throws(CommandFailure) {
      key = try AnnouncementKey(file: job.key)
      // Only now: nothing is begun that can never go on.
      if isNew { try job.write() }
    } catch { throw isNew ? error.asNothingBegun : error }
    var state = AnnouncementProgress()
    while true {
      let finding: AnnouncementProgress.Finding
      switch state.next {
      case .look: finding = await look(for: key.pin, places, invocation)
      case .stage:
        do throws(CommandFailure) {
          let answer = try await call.make(
            path, posting: .object(key.body(why: invocation[AdminCommands.why])),
            expecting: AdminCommands.changed)
          if let id = answer["proposal"]?.objectValue?["id"]?.stringValue {
            Terminal.say(
              "proposed: another person confirms it by ssl-pinning admin confirm \(id); hint: a token of"
                + " scope stage needs none")
          }
          finding = .staged
        } catch {
          // Staged already, by a call before, or in use: the lists tell. All else is the server's last word.
          guard case .no(let reason) = error else {
            finding = .failed(error.message)
            break
          }
          guard state.mayBeKnown(reason) else {
            // A token can be replaced, and keys revoked: until then --resume says so again.
            if reason.contains("is denied") { job.remove() }
            throw error
          }
          finding = .staged
        }
      case .settle:
        try? await Task.sleep(for: .seconds(invocation[settle] ?? 0))
        finding = .settled
      case .run:
        // Whoever renews writes over the file, and what is used must be what the lists have.
        let current = try AnnouncementKey(file: job.key)
        guard current.pin == key.pin else {
          (key, state) = (current, AnnouncementProgress())
          continue
        }
        finding = await execute(invocation[then])
      case .done:
        // Whoever renewed meanwhile may have had the new key put in use by the same command. One that moved the file
        // away is done with it.
        if let current = try? AnnouncementKey(file: job.key), current.pin != key.pin {
          (key, state) = (current, AnnouncementProgress())
          continue
        }
        job.remove()
        try call.say("\(key.pin.base64) is on \(places.count == 1 ? "the list" : "all lists")")
        return .yes
      }
      if let told = state.enter(finding) { Terminal.say(told) }
      guard let pause = state.pause else { continue }
      guard ContinuousClock.now + .seconds(pause) < deadline else {
        throw .couldNotFindOut("\(state.trouble); hint: announce --resume goes on")
      }
      try? await Task.sleep(for: .seconds(pause))
    }
  }

  /// The job's lock, once whoever has it is done; two at once would run the command twice.
  private static func turn(
    _ job: AnnouncementJob, _ deadline: ContinuousClock.Instant
  ) async throws(CommandFailure) -> Int32 {
    while true {
      if let lock = try job.lock() { return lock }
      guard ContinuousClock.now < deadline else {
        throw .couldNotFindOut("\(job.key) is being announced already; hint: once that has ended")
      }
      try? await Task.sleep(for: .seconds(0.5))
    }
  }

  private static func path(_ invocation: Invocation) throws(CommandFailure) -> [String] {
    var id = try invocation.require(endpoint)
    if id.hasSuffix("]") || !id.contains(":") { id += ":443" }
    return ["documents", try invocation.require(file), "endpoints", id, "stage"]
  }

  /// Whether every list, and every mirror that a list names, has the key for the endpoint's host.
  private static func look(
    for pin: SPKIPin, _ places: [String], _ invocation: Invocation
  ) async -> AnnouncementProgress.Finding {
    // A mirror has another URL, and the same registry.
    var waiting = places.map { (place: $0, list: $0) }
    var seen: Set<String> = []
    do {
      let id = try invocation.require(endpoint)
      // An IPv6 address stands in brackets, and has colons.
      let name = id.hasPrefix("[") ? id.prefix { $0 != "]" } + "]" : id.prefix { $0 != ":" }
      let names = try (invocation[hosts] ?? [String(name)]).map { try HostName($0) }
      let trust = try TrustArguments.read(invocation)
      while let (place, list) = waiting.popLast() {
        guard seen.insert(place).inserted else { continue }
        let served = try ServedRegistry(place, trust: trust, timeout: 20)
        let bytes = try await served.document()
        let shipped = try RegistryTrustArguments(invocation, place: list)
        let trusted = try TrustedRegistry(
          accepting: bytes, under: try shipped.trust(for: bytes),
          at: Int64(Date().timeIntervalSince1970))
        let isListed = names.allSatisfy { host in
          trusted.registry.keys.contains { entry in
            entry.pattern.matches(host) && (try? entry.pin.get()) == pin
          }
        }
        guard isListed, trusted.statement?.denied.contains(pin) != true else {
          return .missing(at: place)
        }
        // Clients ask for the statement first.
        if let problem = await served.statementProblem(of: bytes, trusted) {
          return .failed(problem)
        }
        waiting += trusted.statement?.mirrors.map { ("\($0)", list) } ?? []
      }
      return .listed
    } catch let failure as CommandFailure {
      return .failed(failure.message)
    } catch {
      return .failed("\(error)")
    }
  }

  private static func execute(_ command: String?) async -> AnnouncementProgress.Finding {
    guard let command else { return .ran(0) }
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", command]
    process.standardInput = FileHandle.nullDevice
    do { try process.run() } catch { return .failed("cannot run /bin/sh: \(error)") }
    return await withCheckedContinuation { continuation in
      Thread {
        process.waitUntilExit()
        continuation.resume(returning: .ran(process.terminationStatus))
      }.start()
    }
  }
}

extension CommandFailure {
  /// The same before anything was written down: nobody goes on with it, so it is no "not yet".
  fileprivate var asNothingBegun: CommandFailure {
    guard case .couldNotFindOut(let reason) = self else { return self }
    return .no("nothing was begun: \(reason)")
  }
}

/// The key that is announced, as the server is told of it.
private struct AnnouncementKey {
  let pin: SPKIPin
  private let member: String
  private let text: String

  init(file path: String) throws(CommandFailure) {
    let pem = String(decoding: try InputFile.read(path, limit: 1 << 20), as: UTF8.self)
    do {
      if pem.contains("PRIVATE KEY-----") {
        let key = try PrivateKey(pem: pem)
        (member, text) = ("csr", try CertificateRequest.pem(signedBy: key))
        pin = try SPKIPin(subjectPublicKeyInfoDER: try key.publicKeyDER)
        return
      }
      guard let block = try PEMBlock.blocks(in: [UInt8](pem.utf8)).first else {
        throw CommandFailure.usage("\(path) is not PEM; hint: a key, a CSR or a certificate")
      }
      text = block.text
      switch block.label {
      case "CERTIFICATE":
        (member, pin) = ("certificate", try SPKIPin(certificateDER: block.bytes))
      case "PUBLIC KEY":
        (member, pin) = ("key", try SPKIPin(subjectPublicKeyInfoDER: block.bytes))
      case "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST":
        let request = try CertificateRequest(der: block.bytes)
        (member, pin) = ("csr", try SPKIPin(subjectPublicKeyInfoDER: request.publicKeyDER))
      case let label:
        throw CommandFailure.usage("\(path) holds a \(label); hint: a key, a CSR or a certificate")
      }
    } catch let failure as CommandFailure {
      throw failure
    } catch { throw .no("\(path): \(error)") }
  }

  func body(why: String?) -> JSONObject {
    var body: JSONObject = [member: .string(text)]
    body["note"] = why.map { .string($0) }
    return body
  }
}
