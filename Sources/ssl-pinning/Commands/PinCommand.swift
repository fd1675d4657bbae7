import CanonicalJSON
import Pinning

/// `pin`: which pins a file or a server has.
enum PinCommand {
  private static let json = Flag("--json", "one line of JSON: an array with an object per target")
  private static let timeout = Flag.seconds("--timeout", "for each server, in all; 10 by default")

  static let command = Command(
    "pin", "show the pins (SPKI-SHA256-BASE64) of certificates, keys and servers",
    argument: Argument(
      placeholder: "FILE|HOST[:PORT]",
      help: "PEM or DER, every certificate in it; or a server, port 443 by default; [::1]:443",
      count: .some),
    flags: [json.description, timeout.description, TrustArguments.ca.description],
    notes: [
      "Prints a line for each certificate: pin, role, subject. A name that is an existing file is a\n"
        + "file. A server whose certificate is not trusted still has pins: they are shown, what is wrong\n"
        + "with it is told, and the exit code is 0, because the question was which pins. With several\n"
        + "targets the exit code is the worst of theirs."
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    var status = ExitStatus.yes
    var reports: [JSONValue] = []
    for target in invocation.arguments {
      do throws(CommandFailure) {
        let pins = try PinFile.pins(inFile: target)
        if invocation[json] {
          reports.append(
            .members([
              "target": .string(target), "kind": .string("file"),
              "certificates": .array(pins.map(\.json)),
            ]))
        } else {
          try Console.write(line: text(pins))
        }
      } catch {
        Console.say(error.message)
        reports.append(
          .members(["target": .string(target), "error": .string(error.message)]))
        if error.status.rawValue > status.rawValue { status = error.status }
      }
    }
    if invocation[json] { try Console.write(.array(reports)) }
    return status
  }

  private static func text(_ pins: [PinnedKey]) -> String {
    var table = TextTable()
    for key in pins { table.add([key.pin.base64, key.role.rawValue, key.subject]) }
    return table.text
  }
}
