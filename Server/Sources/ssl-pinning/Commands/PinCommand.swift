import CanonicalJSON
import SslPinningPlatform
import TLSTools

/// `pin`: which pins a file or a server has.
enum PinCommand {
  private static let json = Flag("--json", "one line of JSON: an array with an object per target")
  private static let timeout = Flag.seconds("--timeout", "for each server, in all; 10 by default")

  static let command = Command(
    "pin", "show the pins (SPKI-SHA256-BASE64) of certificates, keys and servers",
    argument: Argument(
      placeholder: "FILE|HOST[:PORT]",
      help:
        "PEM or DER, every certificate, CSR and key in it; or a server, port 443 by default; [::1]:443",
      count: .some),
    flags: [json.description, timeout.description, TrustArguments.ca.description],
    notes: [
      "Prints a line for each certificate: pin, role, subject. A name that is an existing file is a\n"
        + "file. Of a server it shows the validated path, or what was sent where none is valid.",
      "A server whose certificate is not trusted still has pins: they are shown, what is wrong with it\n"
        + "is told on standard error (--json: \"trusted\", \"complaint\"), and the exit code is 0, because\n"
        + "the question was which pins. With several targets the exit code is the worst of theirs.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let authorities = try TrustArguments.authorities(invocation)
    var status = ExitStatus.yes
    var reports: [JSONValue] = []
    for target in invocation.arguments {
      do throws(CommandFailure) {
        let report = try await report(
          on: target, trusting: authorities, seconds: invocation[timeout] ?? 10)
        if let warning = report.warning { Terminal.say("warning: \(warning)") }
        if invocation[json] {
          reports.append(report.json)
        } else {
          try Terminal.write(line: report.text)
        }
      } catch {
        Terminal.say(error.message)
        reports.append(
          .members([
            "target": .string(Secrets.hidden(in: target)),
            "error": .string(Secrets.hidden(in: error.message)),
          ]))
        status = status.worse(error.status)
      }
    }
    if invocation[json] { try Terminal.write(.array(reports)) }
    return status
  }

  private static func report(
    on target: String, trusting authorities: ChainValidator?, seconds: Double
  ) async throws(CommandFailure) -> PinReport {
    if target == InputFile.standardInput || InputFile.exists(target) || looksLikeFile(target) {
      return PinReport(file: target, keys: try PinFile.pins(inFile: target))
    }
    let server: ProbeTarget
    do throws(ProbeError) { server = try ProbeTarget(parsing: target) } catch {
      // `invalidTarget` quotes what was parsed, with the port added: the user's own words are better.
      if case .invalidTarget = error {
        let told = "no file of this name, and \(ProbeError.invalidTarget(target.shortened))"
        let isASCII = target.utf8.allSatisfy { $0 < 0x80 }
        throw .usage(isASCII ? told : told.addingHint("names with other letters begin with xn--"))
      }
      throw .usage("no file of this name, and \(error)")
    }
    do throws(ProbeError) {
      let probe = try TLSProbe(anchors: authorities)
      return PinReport(
        target: target, try await probe.probe(server, milliseconds: Int64(seconds * 1000)))
    } catch { throw .couldNotFindOut("\(target): \(error)") }
  }

  /// `cert.pem` could be a host, and never is: a slip in a file's name must not become a dial.
  private static func looksLikeFile(_ target: String) -> Bool {
    let endings = [
      ".pem", ".crt", ".cer", ".der", ".cert", ".csr", ".req", ".key", ".txt", ".json",
    ]
    return !target.contains("://")
      && (target.contains("/") || endings.contains { target.lowercased().hasSuffix($0) })
  }
}
