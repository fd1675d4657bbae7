import CanonicalJSON
import Foundation
import SslPinningPlatform

/// Where an announcement stands, and what is next. A value: what was found out comes in.
///
/// - The lists are looked at first: who goes on with what was begun may find all done. And after staging, until all have
///   the key.
/// - The command runs only straight after all lists had the key. If that was a while ago, they are looked at again.
struct AnnouncementProgress {
  enum Step: Equatable { case look, stage, settle, run, done }

  enum Finding {
    case listed
    case missing(at: String)
    case staged
    case settled
    case ran(Int32)
    case failed(String)
  }

  private(set) var next = Step.look
  /// Seconds until the next step; `nil` if that is due.
  private(set) var pause: Double?
  /// Why it is not over.
  private(set) var trouble = "nothing was tried yet"
  private var isStaged = false
  private var isSettled = false
  private var failures = 0

  /// The longest pause, in seconds.
  static let longest = 60.0

  /// Takes in what came of the step.
  ///
  /// - Returns: what a person should be told, once for each trouble.
  mutating func enter(_ finding: Finding) -> String? {
    pause = nil
    switch (next, finding) {
    case (.look, .listed): next = isSettled ? .run : .settle
    case (.look, .missing) where !isStaged: next = .stage
    case (.look, .missing(let place)): return wait("\(place) does not have the key yet")
    case (.stage, .staged): (isStaged, next, failures) = (true, .look, 0)
    case (.settle, .settled): (isSettled, next) = (true, .look)
    case (.run, .ran(0)): next = .done
    case (.run, .ran(let code)):
      // What was listed then may be taken back by the next attempt.
      next = .look
      return wait("the command ended with \(code)")
    case (_, .failed(let reason)):
      if next == .run { next = .look }
      return wait(reason)
    default: return wait("unexpected")
    }
    return nil
  }

  private mutating func wait(_ reason: String) -> String? {
    pause = min(Self.longest, Double(1 << min(failures, 6)))
    failures += 1
    defer { trouble = reason }
    return reason == trouble ? nil : "\(reason); it is tried again"
  }

  /// Whether a refusal may mean that the server has the key already.
  func mayBeKnown(_ reason: String) -> Bool {
    !isStaged && reason.contains("is published already")
  }
}

/// An announcement that was begun, as a file that survives the machine: what was called, and where.
struct AnnouncementJob {
  /// The file with the key.
  let key: String
  /// Where it is kept.
  let path: String
  private let words: [String]
  private let directory: String

  /// - Parameters:
  ///   - endpoint: that will show the key.
  ///   - document: that it is in.
  ///   - folder: where it is kept.
  ///   - line: the whole command line.
  init(
    _ arguments: [String], for endpoint: String, in document: String, _ folder: String,
    _ line: [String]
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
    // A key that is announced again takes the place of what was begun for it, and not of what was begun for another
    // endpoint that will show it.
    let name = Digest.sha256([directory, file, document, endpoint].joined(separator: "\u{0}").utf8)
      .prefix(12)
      .map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    path = folder + "/\(name).json"
  }

  private init?(path: String) {
    guard let bytes = try? InputFile.read(path, limit: 1 << 20),
      let json = (try? JSONValue(parsing: bytes))?.objectValue,
      let directory = json["directory"]?.stringValue, let key = json["key"]?.stringValue,
      let words = json["words"]?.arrayValue?.compactMap(\.stringValue)
    else { return nil }
    (self.path, self.directory, self.key, self.words) = (path, directory, key, words)
  }

  /// All that were begun and are not over, in the order of their names.
  static func all(in folder: String) throws(CommandFailure) -> [AnnouncementJob] {
    guard InputFile.exists(folder) else { return [] }
    let names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: folder) } catch {
      throw .couldNotFindOut("cannot read \(folder); hint: resume as the user who announced")
    }
    var jobs: [AnnouncementJob] = []
    for name in names.sorted() where name.hasSuffix(".json") {
      guard let job = AnnouncementJob(path: "\(folder)/\(name)") else {
        Terminal.say("warning: \(folder)/\(name) is none of announce; it is passed over")
        continue
      }
      jobs.append(job)
    }
    return jobs
  }

  var isThere: Bool { InputFile.exists(path) }

  func write() throws(CommandFailure) {
    let json: JSONObject = [
      "directory": .string(directory), "key": .string(key),
      "words": .array(words.map { .string($0) }),
    ]
    try OutputFile.write(JSONValue.object(json).canonicalBytes, to: path)
  }

  func remove() { unlink(path) }

  /// Keeps others from the same announcement until it is closed; `nil` if somebody has it.
  ///
  /// - Throws: if nobody could have it.
  func lock() throws(CommandFailure) -> Int32? {
    let folder = (path as NSString).deletingLastPathComponent
    try? FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    // Beside it: the file itself is another one once it was written again.
    let descriptor = open(path + ".lock", O_RDONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw .couldNotFindOut("cannot write \(path).lock: \(Terminal.reason(errno))")
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      return nil
    }
    return descriptor
  }

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
