import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules

/// A registry that is served, fetched as a client does.
struct ServedRegistry {
  private let place: String
  private let url: RegistryURL
  private let fetcher: DocumentFetcher
  private let timeout: Double
  private let begun = ContinuousClock.now
  private let kept = Locked<Int64>(0)

  /// For how many seconds a cache that many share may still hand out what was there before, as the answers so far say.
  var longestKept: Int64 { kept.withLock { $0 } }

  /// - Parameter timeout: seconds for all that is fetched.
  init(_ place: String, trust: TrustMode, timeout: Double) throws(CommandFailure) {
    (self.place, self.timeout) = (place, timeout)
    do throws(RegistryURL.Fault) { url = try RegistryURL(place) } catch {
      switch error {
      case .unreadable: throw .usage("\"\(place)\" is no URL of a registry")
      case .clearText: throw .usage("\"\(place)\" is clear text; hint: use https")
      case .scheme(let scheme): throw .usage("\(scheme) is not supported; hint: use https")
      }
    }
    do throws(TrustError) { fetcher = try DocumentFetcher(trust: trust) } catch {
      throw .no("--ca cannot be used: \(error)")
    }
  }

  /// The whole document.
  func document() async throws(CommandFailure) -> [UInt8] {
    do throws(FetchError) { return try await fetch(url) } catch {
      throw .couldNotFindOut("\(place): \(told(error))")
    }
  }

  /// Why clients that believe this document, or one before, would get no newer one: they ask for its statement
  /// alone, and for the document only where there is none.
  func statementProblem(of document: [UInt8], _ trusted: TrustedRegistry) async -> String? {
    // A path cannot go on behind a query: such a URL has no parts.
    guard let own = trusted.statement, !place.contains(where: { "?#".contains($0) }),
      let part = try? RegistryURL("\(place)/statement?epoch=\(trusted.keySetEpoch)")
    else { return nil }
    let name = "\(place)/statement"
    let bytes: [UInt8]
    do throws(FetchError) { bytes = try await fetch(part) } catch {
      switch error {
      // Those are for good, and clients ask for the document.
      case .status(let code, _) where (400..<500).contains(code) && ![408, 429].contains(code):
        return nil
      case .tooLarge: return nil
      default:
        return
          "\(name): \(told(error)): clients ask for it first, and get nothing newer while it fails; hint: 404"
          + " says that there is none"
      }
    }
    // What is no part, clients leave for the document.
    guard (try? StatementPart(parsing: bytes)) != nil, let served = Self.statement(of: bytes),
      served != own.json
    else { return nil }
    let number = (try? Statement(served, registry: own.registry))?.number
    // It may have been published after the document was fetched.
    if let number, number > own.number, let newer = try? await fetch(url),
      Self.statement(of: newer) == served
    {
      return nil
    }
    let which = number.map { "\($0.epoch).\($0.version)" } ?? "another one"
    return
      "\(name) has statement \(which), and the document \(own.number.epoch).\(own.number.version): clients"
      + " ask for the statement first, and go by that; hint: publish both, as sign --out does beside FILE.parts"
  }

  /// What clients would find at the mirrors of a statement that is in force, where the URL is silent.
  func mirrorProblems(
    of trusted: TrustedRegistry, under trust: RegistryTrust, at now: Int64
  ) async -> [String] {
    var problems: [String] = []
    for mirror in trusted.statement?.mirrors ?? [] {
      guard let url = try? RegistryURL("\(mirror)") else { continue }
      do {
        let copy = try TrustedRegistry(accepting: try await fetch(url), under: trust, at: now)
        guard copy.statement?.json != trusted.statement?.json else { continue }
        let which = copy.statement.map { "statement \($0.number.epoch).\($0.number.version)" }
        problems.append(
          "the mirror \(mirror) has \(which ?? "a document without a statement"), and \(Secrets.hidden(in: place)) another"
            + " one; hint: is it copied there each time?")
      } catch let error as FetchError {
        problems.append("the mirror \(mirror): \(told(error))")
      } catch {
        problems.append("the mirror \(mirror) has no document that clients believe: \(error)")
      }
    }
    return problems
  }

  private static func statement(of bytes: [UInt8]) -> JSONObject? {
    (try? JSONValue(parsing: bytes))?.objectValue?["statement"]?.objectValue
  }

  private func fetch(_ url: RegistryURL) async throws(FetchError) -> [UInt8] {
    let spent = Double((ContinuousClock.now - begun).components.seconds)
    let request = DocumentRequest(
      url: url, maximumBytes: RegistryLimits.standard.maximumBytes, timeout: max(1, timeout - spent)
    )
    let answer = try await fetcher.answer(to: request)
    guard case .fresh(let bytes, _) = answer.document else { throw .status(304) }
    kept.withLock { $0 = max($0, CacheControl.longestKept(answer.cacheControl ?? "")) }
    return bytes
  }

  private func told(_ error: FetchError) -> String {
    if case .status(404, _) = error {
      return "\(error)".addingHint(
        "the URL is that of one document, as https://host/api/v1/app.json")
    }
    guard case .unreachable(let reason) = error else { return "\(error)" }
    return "no answer: \(TransportReason.text(reason, at: place))"
  }
}

/// What an answer says to caches (RFC 9111 §5.2.2).
enum CacheControl {
  /// A day, in seconds: as long as `--settle` may be.
  private static let most: Int64 = 86_400

  /// For how many seconds a shared cache may hand out an answer with this field, a day at most. Its `Age` does not count:
  /// another cache may have asked a moment before the list changed.
  static func longestKept(_ field: String) -> Int64 {
    var seconds: [String: Int64] = [:]
    for part in field.lowercased().split(separator: ",") {
      let words = part.split(separator: "=").map {
        $0.trimmingCharacters(in: CharacterSet(charactersIn: " \t\""))
      }
      guard words.count == 2, !words[1].isEmpty,
        words[1].allSatisfy({ $0.isASCII && $0.isNumber })
      else { continue }
      // What is no Int64 is a number beyond it.
      seconds[words[0]] = max(seconds[words[0]] ?? 0, min(Int64(words[1]) ?? most, most))
    }
    let fresh = max(seconds["max-age"] ?? 0, seconds["s-maxage"] ?? 0)
    return min(fresh + (seconds["stale-while-revalidate"] ?? 0), most)
  }
}

/// A document, and what a registry server has published beside it: `.parts`, whose statement clients ask for first,
/// and `.gz`, which web servers take instead. Where they stand, they are written with the document: left as they
/// are, nobody would ever see the new one.
///
/// - A web server may serve the document by a link, and what stands beside that: each place is looked at.
/// - The names beside are made up here, so a link in a file's place is replaced, and never followed.
enum ServedFiles {
  /// Writes all beside their places before one is moved into its own: a full disk leaves everything as it was. The
  /// statements are the last, after the payload that they name and after the document that the next one goes on
  /// from.
  ///
  /// - Parameters:
  ///   - places: of the document: where it is named, each link on the way, and in the end the file.
  ///   - name: what messages call it.
  static func replace(
    _ places: [String], with document: JSONObject, _ bytes: [UInt8], called name: String
  ) throws(CommandFailure) {
    guard let path = places.last else { return }
    let files = FilesBeside(document)
    let named = places.map { ($0, $0 == path || places.count == 1 ? name : $0) }
    let withParts = named.filter { kind(of: $0.0 + ".parts") == S_IFDIR }
    var wanted: [(path: String, bytes: [UInt8], name: String)] = []
    for (place, name) in withParts {
      let payloads = place + ".parts/payload"
      if mkdir(payloads, 0o755) == 0 { chmod(payloads, 0o755) }
      let own = ".parts/payload/" + files.digest
      wanted.append((place + own, files.payload, name + own))
    }
    for (place, name) in named where kind(of: place + ".gz") == S_IFREG {
      guard let compressed = FilesBeside.compressed(bytes) else {
        throw StagedFile.unwritable(name + ".gz", ENOMEM)
      }
      wanted.append((place + ".gz", compressed, name + ".gz"))
    }
    wanted.append((path, bytes, name))
    if let statement = files.statement {
      wanted += withParts.map { ($0 + ".parts/statement", statement, $1 + ".parts/statement") }
    }
    try replaceAll(wanted)
    for (place, name) in withParts {
      // Clients that find none take the whole document.
      if files.statement == nil, unlink(place + ".parts/statement") != 0, errno != ENOENT {
        throw .couldNotFindOut(
          "cannot remove \(name).parts/statement: \(Terminal.reason(errno))")
      }
      files.removeOld(in: place + ".parts/payload")
    }
  }

  private static func replaceAll(
    _ wanted: [(path: String, bytes: [UInt8], name: String)]
  ) throws(CommandFailure) {
    var staged: [StagedFile] = []
    do throws(CommandFailure) {
      for (path, bytes, name) in wanted {
        staged.append(try StagedFile(path, with: bytes, called: name))
      }
      while let next = staged.first {
        staged.removeFirst()
        try next.takePlace()
      }
    } catch {
      for file in staged { file.giveUp() }
      throw error
    }
  }

  private static func kind(of path: String) -> mode_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
  }
}
