import Foundation
import RegistryServer

/// The lab program, which is never installed: it demonstrates the main job, and breaks things on purpose.
///
/// All of its traffic stays on loopback, and nothing that its commands start outlives them.
@main
enum Main {
  private static let help = """
    usage: ssl-pinning-lab COMMAND

      demo [--once]             run the main job on loopback, one line for each thing proved
      drill [--list] [--filter NAME]
                                prove that no change locks anybody out and no attack gets in
      lab list                  list the situations that any HTTPS client can be put into
      lab up [SCENARIO…]        put servers into them, and leave them up
      lab run [--client 'COMMAND {url}']… [SCENARIO…]
                                drive clients through them: who is locked out, who lets an attacker in
      lab proxy [--listen ADDRESS:PORT] [--mode MODE] [--host PATTERN]… [--must-refuse PATTERN]… [--for TIME]
                                step between a device's apps and their servers: who lets the attacker in
      drill kill                prove that what a store acknowledged survives kill -9
      drill replicas            prove that replicas on one database go on, whatever fails
      drill acme                prove that nobody notices renewals of an ACME client, whatever fails

    Exit status: 0 everything held, 1 something did not, 2 wrong usage.
    """

  static func main() async {
    // Writing to a closed socket or pipe must be an error and not end the process.
    signal(SIGPIPE, SIG_IGN)
    let arguments = Array(CommandLine.arguments.dropFirst())
    let rest = Array(arguments.dropFirst())
    switch arguments.first {
    case "demo": exit(await DemoCommand.run(rest, say: Terminal.say))
    case "lab": exit(await ClientCommands.run(rest, say: Terminal.say))
    case "drill":
      switch rest.first {
      case "kill": exit(await KillCommand.run(Array(rest.dropFirst()), say: Terminal.say))
      case "replicas": exit(await ReplicasCommand.run(Array(rest.dropFirst()), say: Terminal.say))
      case "acme": exit(await AcmeCommand.run(Array(rest.dropFirst()), say: Terminal.say))
      default: exit(await DrillCommand.run(rest, of: Table.rows, say: Terminal.say))
      }
    case let worker? where ["store-writer", "store-leader"].contains(worker):
      exit(await StoreWorker.run(worker, rest))
    case "help", "--help", "-h": Terminal.say(help)
    case let other:
      Terminal.complain(other.map { "unknown command \($0)" } ?? "no command")
      exit(2)
    }
  }
}

/// All rows, in the order of the output.
enum Table {
  static let rows = changes + attacks
  static let changes =
    RotationRows.all + ServerRows.changes + ShippedRows.changes + AbsenceRows.all + ClockRows.all
    + TimeRows.changes + RoadRows.changes
    + LiveRotationRows.all + LiveRegistryRows.all + LiveOutageRows.all + LiveMishapRows.all
    + LiveClockRows.all
    + LiveCrowdRows.changes + LiveMomentRows.changes + LiveNameRows.all
    + LiveStoreRows.changes + LiveTermsRows.changes + LiveVantageRows.changes
    + LiveAnnounceRows.changes
  static let attacks =
    MiddlemanRows.all + TimeRows.attacks + ClearTextRows.all + RegistryAttackRows.all
    + TamperingRows.all
    + BodyRows.all + RoadRows.attacks
    + ServerRows.attacks + LiveAttackRows.all + LiveForgeryRows.all
    + LiveCrowdRows.attacks + LiveMomentRows.attacks + LiveStoreRows.attacks
    + LiveTermsRows.attacks + LiveVantageRows.attacks
}
