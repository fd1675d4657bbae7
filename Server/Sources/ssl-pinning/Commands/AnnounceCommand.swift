import Foundation
import RegistryServer

/// `announce`: a key is on every list that apps get before a server shows it, and then a command puts it in use.
///
/// - The order is the point: the key is staged, each list is fetched and verified as an app does it, and only if all of
///   them have the key the command runs.
/// - What is begun is written down first, and forgotten when the command has ended with 0. So a step that fails is tried
///   again, in the same call or by `--resume`, also after the machine was down.
/// - "Not yet" is said only of what is written down. What a call needs before that, such as its token, is its end.
/// - The command runs until it has ended with 0, and again if this program dies while it runs. It must bear that.
enum AnnounceCommand {
  static let file = Flag.text("--file", "NAME", "the document that the endpoint is in")
  static let endpoint = Flag.text(
    "--endpoint", "HOST[:PORT]", "that will show the key; port 443 by default")
  static let lists = Flag<[String]>.texts(
    "--list", "URL", "a list that apps get; its mirrors are looked at as well")
  static let hosts = Flag<[String]>.texts(
    "--host", "NAME", "a host that apps call, if it is not that of --endpoint")
  static let then = Flag.text(
    "--then", "COMMAND", "run this by /bin/sh once all of them have the key, such as a reload")
  static let timeout = Flag.seconds(
    "--timeout", "end the command, and what it left behind, after this; 600 by default")
  static let settle = Flag.seconds(
    "--settle",
    "run it only once all lists had the key for so long; by default as long as caches may keep them, "
      + "and 65 at least", orNone: true)
  private static let patience = Flag.seconds(
    "--patience", "exit with 3 after this, and leave the rest to --resume; 600 by default")
  private static let wait = Flag(
    "--wait", "wait until all of them have the key: what it does by default, bounded by --patience")
  private static let name = Flag.text(
    "--as", "NAME",
    "takes the place of what was begun as NAME before; by default of FILE for the endpoint")
  private static let state = Flag.text(
    "--state", "DIR", "what is begun is kept here; else announce, where the server keeps its state")
  private static let resume = Flag(
    "--resume", "try all that was begun once more, and wait for nothing")

  static let command = Command(
    "announce", "have a key on the lists before it is used, then run a command",
    argument: Argument(
      placeholder: "FILE",
      help: "the key: a private key, a CSR, a certificate or a public key, in PEM",
      count: .optional),
    flags: [
      file.description, endpoint.description, lists.description, hosts.description,
      then.description, timeout.description, settle.description, wait.description,
      patience.description, name.description, state.description, resume.description,
      AdminCommands.why.description,
    ] + RegistryTrustArguments.flags + AdminCall.flags,
    notes: [
      "Of a private key, a request that it signs is sent, never the key: so a token of scope stage will do\n"
        + "(token --scope stage --host HOST). Files are read again by --resume, so they must stay.",
      "Exit code 0: the command ran, and ended with 0. 1: the server refuses the key or the token, a file\n"
        + "is gone, or nothing was begun. 3: not yet. What was begun goes on with announce --resume, which a\n"
        + "timer should call every minute.",
      "The command's output is not shown, but for the beginning of it where it fails. What it leaves in the\n"
        + "background is ended with it, unless that is a session of its own, as a daemon is.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let folder = URL(
      filePath: invocation[state] ?? StorageConfiguration.dataDirectory() + "/announce"
    ).standardizedFileURL.path
    guard invocation[resume] else {
      let place = (invocation[file] ?? "", invocation[endpoint] ?? "")
      let job = try AnnouncementJob(
        invocation.arguments, at: place, named: invocation[name], in: folder, CommandLine.arguments)
      var run: AnnouncementRun
      do throws(CommandFailure) {
        run = try AnnouncementRun(job, invocation)
        // Only now: nothing is begun that can never go on.
        try job.begin()
      } catch { throw error.asNothingBegun }
      guard let lock = job.lock() else { throw busy(job) }
      defer { withExtendedLifetime(lock) {} }
      return try await run.run(patience: invocation[patience] ?? 600) ?? .yes
    }
    guard invocation.arguments.isEmpty else {
      throw .usage("--resume takes no key; hint: it goes on with all that was begun")
    }
    guard !invocation[wait] else {
      throw .usage(
        "--wait and --resume exclude each other; hint: --resume tries once, and waits for nothing")
    }
    // Commands may take long, and who settles must be looked at meanwhile: all others first.
    let (all, unread) = try AnnouncementJob.all(in: folder)
    for path in unread {
      Terminal.say(
        "\(path) cannot be read as an announcement, and nothing goes on with it; hint: announce its key again, and delete"
          + " the file if it is still there")
    }
    let (silent, recent) = (SilentPlaces(), AnnouncementRun.Lists())
    var (status, ready) = (
      unread.isEmpty ? ExitStatus.yes : .couldNotFindOut, [AnnouncementJob]()
    )
    for begun in all {
      guard let own = await goOn(with: begun, beforeCommand: recent, silent) else {
        ready.append(begun)
        continue
      }
      status = status.told(beside: own)
    }
    var order = AnnouncementOrder(
      failed: ready.map(\.failed), at: Int64(Date().timeIntervalSince1970))
    let start = ContinuousClock.now
    while let next = order.next(after: (ContinuousClock.now - start) / .seconds(1)) {
      status = status.told(beside: await goOn(with: ready[next], silent) ?? .yes)
    }
    if order.left > 0 {
      Terminal.say(
        "\(order.left) more are left to the next call: commands took a minute, and lists are looked at before others"
      )
      status = status.told(beside: .couldNotFindOut)
    }
    return status
  }

  /// - Parameter recent: where what lists served is kept for the others; then the command is not run. It runs straight after a
  ///   look of its own.
  /// - Returns: what came of it, which is told; `nil` if its command is next, and is not to be run.
  private static func goOn(
    with begun: AnnouncementJob, beforeCommand recent: AnnouncementRun.Lists? = nil,
    _ silent: SilentPlaces
  ) async -> ExitStatus? {
    if let recent { await lookAgain(at: begun, recent, silent) }
    // What led it may have been carried out just now, and the end of that was its own, or left it to itself.
    guard let job = begun.current else { return .yes }
    do throws(CommandFailure) {
      if job.isAbandoned {
        throw .couldNotFindOut("what began it was given up; hint: delete this one as well")
      }
      guard !job.isLed else { return .yes }
      // Two at once would run the command twice.
      guard let lock = job.lock() else { throw busy(job) }
      defer { withExtendedLifetime(lock) {} }
      // It ended meanwhile, or the next call finds what took its place.
      guard job.isCurrent else { return .yes }
      var run: AnnouncementRun
      do throws(CommandFailure) {
        run = try AnnouncementRun(job, try job.invocation())
      } catch {
        // A file that is gone does not come back by itself.
        throw .no(error.message)
      }
      (run.silent, run.recent) = (silent, recent)
      return try await run.run(patience: nil, withCommand: recent == nil)
    } catch {
      // With the file's name: whoever gives it up deletes that.
      Terminal.say("\(job.key) (\(job.path)): \(error.message)")
      return error.status
    }
  }

  /// Looks at the lists of one that another one carries out: that one's turn may come several calls later, and time in which
  /// nobody looked is none to settle in. What is wrong with it, the other one tells.
  private static func lookAgain(
    at begun: AnnouncementJob, _ recent: AnnouncementRun.Lists, _ silent: SilentPlaces
  ) async {
    guard let job = begun.current, job.isLed, !job.isAbandoned, let lock = job.lock() else {
      return
    }
    defer { withExtendedLifetime(lock) {} }
    guard job.isCurrent, let invocation = try? job.invocation(),
      var run = try? AnnouncementRun(job, invocation)
    else { return }
    (run.silent, run.recent) = (silent, recent)
    await run.lookAgain()
  }

  private static func busy(_ job: AnnouncementJob) -> CommandFailure {
    .couldNotFindOut(
      "\(job.key) is being announced by another call; hint: announce --resume goes on afterwards")
  }
}

extension ExitStatus {
  /// Of two announcements' statuses the one to tell: what somebody must mend, though another one goes on by itself.
  fileprivate func told(beside other: ExitStatus) -> ExitStatus {
    [self, other].contains(.no) ? .no : worse(other)
  }
}

extension CommandFailure {
  /// The same before anything was written down: nobody goes on with it, so it is no "not yet".
  fileprivate var asNothingBegun: CommandFailure {
    guard case .couldNotFindOut(let reason) = self else { return self }
    return .no("nothing was begun: \(reason)")
  }
}
