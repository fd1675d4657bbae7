import Foundation
import SslPinningRules

/// Fetches signed documents: under the anchors of a trust mode, never under the pins that they
/// refresh. Not through a pinned `URLSession`, and on Linux through none: a refresh must not wait for
/// the queue that all of them share.
///
/// - The host name and the chain are checked; redirects are followed to `https` only, at most five.
/// - Bounded in size and time, so neither an endless nor a dripping body holds anybody up.
/// - No cookies, no credentials, no cache. Proxies are the system's (on Linux, the environment's),
///   save for clear text, which never leaves this machine.
public struct DocumentFetcher: Sendable {
  private let validator: ChainValidator

  /// A fetcher under `trust`; ``SslPinningRules/TrustMode/pinnedKeysOnly`` has no anchors, so the system's are used.
  ///
  /// - Throws: ``TrustError`` where an anchor cannot be read.
  public init(trust: TrustMode) throws(TrustError) {
    self.init(validator: try ChainValidator(anchorsOf: trust))
  }

  /// A fetcher under anchors that were read already.
  package init(validator: ChainValidator) { self.validator = validator }

  /// Fetches one document.
  ///
  /// - Throws: ``FetchError``.
  public func fetch(_ request: DocumentRequest) async throws(FetchError) -> FetchedDocument {
    try await answer(to: request).document
  }

  /// The same, and what the answer says to caches (`Cache-Control`, RFC 9111 §5.2).
  package func answer(
    to request: DocumentRequest
  ) async throws(FetchError) -> (document: FetchedDocument, cacheControl: String?) {
    let exchange = HTTPExchange(
      url: request.url, kind: .get,
      headers: [
        ("If-None-Match", request.etag),
        ("Cache-Control", request.bypassesCaches ? "no-cache" : nil),
      ],
      maximumBytes: request.maximumBytes, timeout: request.timeout, at: request.time)
    let answer = try await PlatformFetch.perform(exchange, validator: validator).get()
    switch answer.status {
    case 200: return (.fresh(answer.body, etag: answer.etag), answer.cacheControl)
    case 304 where request.etag != nil: return (.unchanged, answer.cacheControl)
    default:
      let wait = answer.retryAfter.flatMap {
        RetryAfter.seconds($0, at: request.time?.clock ?? Int64(Date().timeIntervalSince1970))
      }
      throw .status(answer.status, retryAfter: wait.map(Double.init))
    }
  }
}

/// A request for a whole document, bounded in size and time.
public struct DocumentRequest: Hashable, Sendable {
  /// The document's address.
  public let url: RegistryURL
  /// The entity tag of the document at hand, if any.
  public var etag: String?
  /// The most bytes that the body may have.
  public var maximumBytes: Int
  /// Seconds for the whole exchange, from the name look-up to the last byte. Counted in whole
  /// milliseconds from 1 to some 24 days, so zero and less are the shortest time, never none.
  public var timeout: Double
  /// Whether caches on the way must ask the origin (RFC 9111 §5.2.1.4).
  public var bypassesCaches: Bool
  /// The times that the dates of the server's chain are held to (`RegistryDates`); `nil` means the
  /// system's clock.
  public var time: TrustTime?

  /// A request.
  public init(
    url: RegistryURL, etag: String? = nil, maximumBytes: Int, timeout: Double,
    bypassesCaches: Bool = false, at time: TrustTime? = nil
  ) {
    self.url = url
    self.etag = etag
    self.maximumBytes = maximumBytes
    self.timeout = timeout
    self.bypassesCaches = bypassesCaches
    self.time = time
  }
}

/// What a conditional request for a document brought.
public enum FetchedDocument: Hashable, Sendable {
  /// A document, and the entity tag to ask with next time (RFC 9110 §8.8.3).
  case fresh([UInt8], etag: String?)
  /// The document is the one that the entity tag names (status 304).
  case unchanged
}

/// Why a document could not be fetched.
public enum FetchError: Error, Hashable, Sendable {
  /// The task that asked was cancelled.
  case cancelled
  /// No answer: name, connection, TLS or time-out, in the transport's words.
  case unreachable(String)
  /// The server's certificate is not valid yet by the device's clock (Unix seconds), and no statement that
  /// the client believes vouches for a later time: most likely the clock is behind.
  case notYetValid(clock: Int64)
  /// An answer with this HTTP status; and the seconds after which the server wants to be asked
  /// again, where it said so (`Retry-After`, RFC 9110 §10.2.3).
  case status(Int, retryAfter: Double? = nil)
  /// The body is larger than the limit, in bytes.
  case tooLarge(limit: Int)
}

extension FetchError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .cancelled: "the request was cancelled"
    case .unreachable(let reason): "no answer: \(reason)"
    case .notYetValid(let clock):
      "the server's certificate is not valid yet, by a clock that says \(RFC3339.text(clock)); "
        + "hint: is the device's clock behind?"
    case .status(let code, _): "the server answered with status \(code)"
    case .tooLarge(let limit): "the body is larger than \(limit) bytes"
    }
  }
}

/// What one transfer of ``PlatformFetch`` over a task of the platform's session has come to, and what each event
/// means for it. Pure.
///
/// - Redirects of a fetch go to `https` only, at most ``mostRedirects``; any other redirect is the answer, by its head.
/// - The body is counted as it arrives; one byte too many ends the transfer.
struct FetchState {
  typealias Answer = Result<HTTPAnswer, FetchError>

  /// What follows an event.
  enum Step: Equatable {
    case goOn
    /// The transfer has its answer: the task is cancelled.
    case end(Answer)
  }

  static let mostRedirects = 5

  private let kind: HTTPExchange.Kind
  private let maximumBytes: Int
  private var answer: HTTPAnswer?
  private var redirects = 0
  /// Where its requests go: to these hosts a challenge is a server's, whatever else it says.
  private(set) var asked: [URL?]

  init(_ exchange: HTTPExchange) {
    kind = exchange.kind
    maximumBytes = exchange.maximumBytes
    asked = [URL(string: exchange.url.description)]
  }

  /// A redirect leads to `target`.
  ///
  /// - Parameter head: of the answer that leads there. Once a redirect was declined, some systems tell nothing more.
  mutating func redirect(to target: URL?, by head: HTTPAnswer) -> Step {
    guard case .get = kind else { return .end(.success(head)) }
    guard target?.scheme?.lowercased() == "https" else {
      return .end(.failure(.unreachable("a redirect to another scheme than https")))
    }
    redirects += 1
    guard redirects <= Self.mostRedirects else {
      return .end(.failure(.unreachable("more than \(Self.mostRedirects) redirects")))
    }
    asked.append(target)
    return .goOn
  }

  /// The head has come.
  ///
  /// - Parameters:
  ///   - head: `nil` where the answer is not HTTP.
  ///   - length: bytes that the body will have; negative: unknown.
  mutating func head(_ head: HTTPAnswer?, expecting length: Int64) -> Step {
    guard let head else { return .end(.failure(.unreachable("the answer is not HTTP"))) }
    answer = head
    return length > Int64(maximumBytes) ? .end(excess(head)) : .goOn
  }

  /// Bytes of the body have come.
  mutating func data(_ data: Data) -> Step {
    guard let head = answer else { return .end(.failure(.unreachable("a body without a head"))) }
    guard head.body.count + data.count <= maximumBytes else { return .end(excess(head)) }
    answer?.body.append(contentsOf: data)
    return .goOn
  }

  /// The task has ended.
  ///
  /// - Parameter reason: what went wrong, in the system's words; `nil`: nothing.
  func ended(_ reason: String?) -> Answer {
    if let reason {
      // Of a post's answer only the head counts, and that has come whole.
      if let answer, case .post = kind { return .success(answer) }
      return .failure(.unreachable(reason))
    }
    return answer.map { .success($0) } ?? .failure(.unreachable("the answer is not HTTP"))
  }

  /// What an answer is that has a longer body than is wanted.
  private func excess(_ head: HTTPAnswer) -> Answer {
    if case .post = kind { return .success(head) }
    return .failure(.tooLarge(limit: maximumBytes))
  }
}

extension RegistryDates {
  /// What a fetch is told of a chain that is not valid.
  static func error(for fault: ChainFault, at time: TrustTime?) -> FetchError {
    guard fault.isEarly, let time else { return .unreachable("\(fault)") }
    return .notYetValid(clock: time.clock)
  }
}
