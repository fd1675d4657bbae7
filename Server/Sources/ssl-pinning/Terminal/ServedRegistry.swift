import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// A registry that is served, fetched as a client does.
struct ServedRegistry {
  private let place: String
  private let url: RegistryURL
  private let fetcher: DocumentFetcher
  private let timeout: Double
  private let begun = ContinuousClock.now

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
          "the mirror \(mirror) has \(which ?? "a document without a statement"), and \(place) another one; hint: is it"
            + " copied there each time?")
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
    guard case .fresh(let bytes, _) = try await fetcher.fetch(request) else { throw .status(304) }
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
