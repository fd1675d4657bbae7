import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// An announcement that was begun, as a file that survives the machine: what was called, and where.
///
/// - One name has one announcement. A later one takes the place of the one before, also while that is carried out: its
///   file is there from then on, and only who finds its own ends one.
/// - One that the command of another begins is led by that very one, which alone carries it out, for it looks at its own
///   lists before. What is over, replaced or given up begins nothing. If it is refused for good or replaced, those that
///   it leads end with it; if somebody deleted it, they wait to be deleted, too; if it is done, they go on by themselves.
///   None begins what leads it, or each would wait for the other.
/// - The file names a command to run, so it and its folder belong to root or to who runs it, and nobody else writes there.
struct AnnouncementJob {
  /// The file with the key.
  let key: String
  /// Where it is kept.
  let path: String
  private let words: [String]
  private let directory: String
  /// Tells it from others of the same name.
  private let id: String
  /// The one whose command begins this one.
  private var leader: Reference?
  /// The key that all lists have.
  private var listed: (pin: String, listing: AnnouncementProgress.Listing)?
  /// The key that waits for a second person, and since when, in Unix seconds.
  private var proposed: (pin: String, since: Int64)?
  /// When its command failed last, in Unix seconds, and whether that took it long.
  private(set) var failed: (at: Int64, isSlow: Bool)?

  /// An announcement, and not one that took its place: as a command is told it, and as it is kept.
  private struct Reference: Equatable {
    let id: String
    let path: String

    /// The announcement, if it is not over.
    var job: AnnouncementJob? { AnnouncementJob(path: path).flatMap { $0.id == id ? $0 : nil } }
    var text: String { "\(id) \(path)" }

    init(_ job: AnnouncementJob) { (id, path) = (job.id, job.path) }

    init?(_ text: String) {
      let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { return nil }
      (id, path) = (parts[0], parts[1])
    }

    /// The one whose command this program is run by.
    ///
    /// - Throws: if that one was replaced or given up while its command runs, or is over: a daemon that such a command once
    ///   started has the variable still, and which of them it is nobody can tell.
    static func found() throws(CommandFailure) -> Reference? {
      let said = ProcessInfo.processInfo.environment[AnnouncementJob.leaderVariable]
      guard let leader = said.flatMap(Reference.init) else { return nil }
      guard leader.job == nil else { return leader }
      throw .no(
        "nothing was begun: what begins this was replaced or given up, or is over; hint: unset"
          + " \(AnnouncementJob.leaderVariable) where nothing began it")
    }
  }

  /// - Parameters:
  ///   - place: the document and the endpoint that will show the key.
  ///   - name: what others take the place of it by; `nil`: the file with the key, for this endpoint.
  ///   - folder: where it is kept.
  ///   - line: the whole command line.
  init(
    _ arguments: [String], at place: (document: String, endpoint: String), named name: String?,
    in folder: String, _ line: [String]
  ) throws(CommandFailure) {
    guard let file = arguments.first, file != InputFile.standardInput else {
      throw .usage("missing FILE: the key; hint: or --resume, to go on with what was begun")
    }
    directory = FileManager.default.currentDirectoryPath
    key = file
    words = Array(line.dropFirst())
    guard !words.contains(where: { $0 == "-" || $0.hasSuffix("=-") }) else {
      throw .usage("--resume has no standard input to read again; hint: name a file")
    }
    id = UUID().uuidString
    leader = try Reference.found()
    let digest = Digest.sha256(
      (name ?? [directory, file, place.document, place.endpoint].joined(separator: "\u{0}")).utf8
    ).prefix(12)
    path = "\(folder)/\(hex(digest)).json"
    // The same call again, as of one announcement that is the command of another: what settles goes on settling.
    if let before = AnnouncementJob(path: path), before.words == words,
      before.directory == directory
    {
      // A person who calls again proposes again: the proposal may have been taken back.
      (listed, proposed) = (before.listed, leader == nil ? nil : before.proposed)
      failed = before.failed
    }
  }

  private init?(path: String) {
    guard let bytes = try? InputFile.read(path, limit: 1 << 20),
      let json = (try? JSONValue(parsing: bytes))?.objectValue,
      let directory = json["directory"]?.stringValue, let key = json["key"]?.stringValue,
      let words = json["words"]?.arrayValue?.compactMap(\.stringValue),
      let id = json["id"]?.stringValue
    else { return nil }
    (self.path, self.directory, self.key, self.words, self.id) = (path, directory, key, words, id)
    leader = json["leader"]?.stringValue.flatMap(Reference.init)
    if let pin = json["listed"]?.stringValue, let since = json["since"]?.integerValue {
      listed = (
        pin,
        .init(
          since: max(0, since), seen: max(0, json["seen"]?.integerValue ?? since),
          kept: max(0, json["kept"]?.integerValue ?? 0), isBlind: json["blind"]?.boolValue ?? false,
          lost: max(0, json["lost"]?.integerValue ?? 0), reason: json["reason"]?.stringValue)
      )
    }
    failed = json["failed"]?.integerValue.map { ($0, json["slow"]?.boolValue ?? false) }
    if let pin = json["proposed"]?.stringValue, let since = json["proposedSince"]?.integerValue {
      proposed = (pin, since)
    }
  }

  /// All that were begun and are not over, in the order of their names, and the files that say nothing: cut or emptied by a
  /// full disk, say. Nobody goes on with what they said.
  static func all(
    in folder: String
  ) throws(CommandFailure) -> (jobs: [AnnouncementJob], unread: [String]) {
    guard InputFile.exists(folder) else { return ([], []) }
    let names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: folder) } catch {
      throw .couldNotFindOut("cannot read \(folder); hint: resume as the user who announced")
    }
    try check(folder)
    var (jobs, unread) = ([AnnouncementJob](), [String]())
    for name in names.sorted() where name.hasSuffix(".json") {
      let path = "\(folder)/\(name)"
      if let refusal = FileKeepers.refusal(of: path) {
        // Another call may have ended it just now.
        guard InputFile.exists(path) else { continue }
        throw .no("\(path): \(refusal)")
      }
      guard let job = AnnouncementJob(path: path) else {
        // Or now.
        if InputFile.exists(path) { unread.append(path) }
        continue
      }
      jobs.append(job)
    }
    return (jobs, unread)
  }

  /// - Throws: if others could have what is written there carried out.
  private static func check(_ folder: String) throws(CommandFailure) {
    if let refusal = FileKeepers.refusal(of: folder) ?? FileKeepers.refusal(above: folder) {
      throw .no("\(folder): \(refusal)")
    }
  }

  /// Whether another one carries it out.
  var isLed: Bool { leader != nil }

  /// Whether the one that would carry it out is not there any more.
  var isAbandoned: Bool { leader.map { $0.job == nil } ?? false }

  /// The call that goes on with it.
  var resumption: String { "announce --resume --state \(folder)" }

  /// What its command is told in ``leaderVariable``.
  var reference: String { Reference(self).text }

  /// What its command is told it by. Not a name of the server's own variables: those no program gets.
  static let leaderVariable = "PINNING_ANNOUNCEMENT"

  /// As it is written down by now; `nil` if it is over, or another one took its place.
  var current: AnnouncementJob? { AnnouncementJob(path: path).flatMap { $0.id == id ? $0 : nil } }

  /// Whether it is not over, and no other one took its place.
  var isCurrent: Bool { current != nil }

  /// Writes it down, in place of another one of its name.
  func begin() throws(CommandFailure) {
    try FileLock.holding(folder) { () throws(CommandFailure) in
      // --resume would carry out nothing of it.
      try Self.check(folder)
      guard !isLeadingItself else {
        throw .no(
          "\(key) is announced by what it would begin; hint: each call of a chain, and each chain, has a name of its own (--as)"
        )
      }
      let before = AnnouncementJob(path: path)
      // The same call again goes on with what it leads.
      let isSame = before?.words == words && before?.directory == directory
      // Taken out of its chain, its key would be used though a list that comes before it may lack that key.
      if isSame, leader == nil, let first = before?.leader?.job {
        throw .no(
          "\(key) is announced by the command of another one, which goes on with it; hint: call that one again, with \(first.key)"
        )
      }
      let led = before?.led ?? []
      try write()
      for var job in led {
        guard isSame else {
          unlink(job.path)
          job.endThoseLed()
          continue
        }
        job.leader = Reference(self)
        try job.write()
      }
    }
  }

  /// Forgets it, if it is current. What it leads is on its own from then on.
  func end() throws(CommandFailure) {
    try FileLock.holding(folder) { () throws(CommandFailure) in
      guard isCurrent else { return }
      for var job in led {
        job.leader = nil
        try job.write()
      }
      unlink(path)
    }
  }

  /// Forgets it for good, if it is current: what it leads could put in use what it may not.
  func giveUp() throws(CommandFailure) {
    try FileLock.holding(folder) {
      guard isCurrent else { return }
      endThoseLed()
      unlink(path)
    }
  }

  private var led: [AnnouncementJob] {
    ((try? Self.all(in: folder))?.jobs ?? []).filter { $0.leader == Reference(self) }
  }

  private func endThoseLed() {
    for job in led {
      unlink(job.path)
      job.endThoseLed()
    }
  }

  /// Whether what leads it, at any distance, is another one of its name.
  private var isLeadingItself: Bool {
    var (above, met) = (leader, Set<String>())
    while let next = above, met.insert(next.path).inserted {
      if next.path == path { return true }
      above = next.job?.leader
    }
    return false
  }

  /// That all lists have this key, as far as it is known.
  func listing(of pin: SPKIPin) -> AnnouncementProgress.Listing? {
    listed.flatMap { $0.pin == pin.base64 ? $0.listing : nil }
  }

  /// Whether the one that leads it found another key in the same file on its lists. What is used must be what those have.
  func isAheadOfLeader(_ pin: SPKIPin) -> Bool {
    guard let leader = leader?.job, leader.keyPath == keyPath
    else { return false }
    return leader.listing(of: pin) == nil
  }

  private var keyPath: String { key.hasPrefix("/") ? key : "\(directory)/\(key)" }

  /// Remembers whether all lists have this key.
  mutating func note(
    _ pin: SPKIPin, _ listing: AnnouncementProgress.Listing?
  ) throws(CommandFailure) {
    guard listing != self.listing(of: pin) else { return }
    listed = listing.map { (pin.base64, $0) }
    try keep()
  }

  /// Remembers how its command failed, or that it did not.
  mutating func note(failed: (at: Int64, isSlow: Bool)?) throws(CommandFailure) {
    self.failed = failed
    try keep()
  }

  /// Whether this key waits for a second person, as far as it is known. Each request for it may be another text, and
  /// would be another proposal: so many that nobody of this name could propose anything else.
  func isProposed(_ pin: SPKIPin, at now: Int64) -> Bool {
    // For a day: then a proposal is over, whatever the token that it was made with.
    proposed.map { $0.pin == pin.base64 && (0..<86_400).contains(now - $0.since) } ?? false
  }

  /// Remembers that this key was proposed.
  mutating func note(_ pin: SPKIPin, proposedAt now: Int64) throws(CommandFailure) {
    proposed = (pin.base64, now)
    try keep()
  }

  /// Writes it down, unless it is over. What led it may have ended meanwhile, and left it to itself.
  private mutating func keep() throws(CommandFailure) {
    var kept = self
    try FileLock.holding(folder) { () throws(CommandFailure) in
      guard let now = current else { return }
      kept.leader = now.leader
      try kept.write()
    }
    self = kept
  }

  private func write() throws(CommandFailure) {
    var json: JSONObject = [
      "directory": .string(directory), "key": .string(key), "id": .string(id),
      "words": .array(words.map { .string($0) }),
    ]
    json["leader"] = leader.map { .string($0.text) }
    if let (pin, listing) = listed {
      (json["listed"], json["since"]) = (.string(pin), .integer(listing.since))
      (json["seen"], json["blind"]) = (.integer(listing.seen), .bool(listing.isBlind))
      (json["lost"], json["kept"]) = (.integer(listing.lost), .integer(listing.kept))
      json["reason"] = listing.reason.map { .string($0) }
    }
    if let failed { (json["failed"], json["slow"]) = (.integer(failed.at), .bool(failed.isSlow)) }
    if let proposed {
      (json["proposed"], json["proposedSince"]) = (
        .string(proposed.pin), .integer(proposed.since)
      )
    }
    try OutputFile.write(JSONValue.object(json).canonicalBytes, to: path)
    // Whatever the umask: --resume runs nothing that others could have written.
    chmod(path, 0o600)
  }

  /// Keeps others from carrying it out; `nil` if somebody does.
  func lock() -> FileLock? {
    // Beside it: the file itself is another one once it was written again.
    FileLock(path + ".lock")
  }

  private var folder: String { (path as NSString).deletingLastPathComponent }

  /// The call as it was made, where it was made: its paths mean the same again.
  func invocation() throws(CommandFailure) -> Invocation {
    guard FileManager.default.changeCurrentDirectoryPath(directory) else {
      throw .couldNotFindOut("\(directory) is not there any more")
    }
    do throws(UsageError) {
      let parser = ArgumentParser(commands: Command.all, leading: ServerArguments.leading)
      guard case .run(_, let invocation) = try parser.parse(words) else {
        throw UsageError.noCommand
      }
      return invocation
    } catch { throw .no("\(path) has another call than announce; hint: delete it") }
  }
}

/// A lock that the system releases when its holder ends (flock(2)).
struct FileLock: ~Copyable {
  private let descriptor: Int32

  /// - Returns: `nil` if somebody has it, or the file cannot be made.
  init?(_ path: String) {
    let descriptor = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      return nil
    }
    self.descriptor = descriptor
  }

  private init(waitingFor folder: String) throws(CommandFailure) {
    try? FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw .couldNotFindOut("cannot open \(folder): \(Terminal.reason(errno))")
    }
    // Whoever may read it may lock it, for ever.
    var tries = 100
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK || errno == EINTR {
      tries -= 1
      guard tries > 0 else {
        close(descriptor)
        throw .couldNotFindOut("somebody keeps \(folder) locked; hint: fuser \(folder)")
      }
      usleep(100_000)
    }
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// Does something for a moment in which nobody else does the like in this folder, which is made if need be.
  static func holding(
    _ folder: String, _ body: () throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    let lock = try FileLock(waitingFor: folder)
    defer { withExtendedLifetime(lock) {} }
    try body()
  }
}
