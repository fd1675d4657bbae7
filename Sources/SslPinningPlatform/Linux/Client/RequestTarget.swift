#if os(Linux)
  import CSslPinningCurl
  import CSslPinningShims
  import Foundation
  import SslPinningRules
  import Synchronization

  /// Where a request goes, read once by the parser that dials it: what is judged and what libcurl
  /// connects to cannot be two hosts.
  ///
  /// Unchecked: everything is set in the initializer and only read afterwards, `origin` excepted,
  /// whose state belongs to the loop.
  final class RequestTarget: @unchecked Sendable {
    let url: URL
    /// libcurl's own parse, without a fragment.
    let parsed: OpaquePointer
    /// The host as the URL spells it, with its terminator.
    let spelling: UnsafePointer<CChar>
    let host: HostName
    let origin: RequestOrigin
    /// Bytes of the URL.
    let length: Int
    let responses = ResponseInterner()

    private init(
      url: URL, parsed: OpaquePointer, spelling: UnsafePointer<CChar>, host: HostName,
      origin: RequestOrigin, length: Int
    ) {
      self.url = url
      self.length = length
      self.parsed = parsed
      self.spelling = spelling
      self.host = host
      self.origin = origin
    }

    deinit {
      curl_url_cleanup(parsed)
      curl_free(UnsafeMutableRawPointer(mutating: spelling))
    }

    /// Why a URL is no target.
    enum Fault: Error {
      case refused(PinEvaluation)
      case unreadable
      case unsupported
    }

    static func read(
      _ url: URL, text: String, origin: (String) -> RequestOrigin
    ) throws(Fault) -> RequestTarget {
      guard let parsed = curl_url() else { throw .unreadable }
      var isTaken = false
      defer { if !isTaken { curl_url_cleanup(parsed) } }
      guard
        curl_url_set(parsed, CURLUPART_URL, text, UInt32(CURLU_NON_SUPPORT_SCHEME)) == CURLUE_OK,
        let scheme = part(parsed, CURLUPART_SCHEME)
      else { throw .unreadable }
      curl_url_set(parsed, CURLUPART_FRAGMENT, nil, 0)
      let name = part(parsed, CURLUPART_HOST)
      guard scheme == "https" else {
        guard RedirectRule.clearText.contains(scheme) else { throw .unsupported }
        throw .refused(
          PinEvaluation(
            host: name ?? "", outcome: .clearText(scheme: scheme), decision: .refuse))
      }
      // libcurl takes `https:/name` and `https:///name` for `https://name`; a URL without an authority
      // names no host (RFC 3986 section 3), and a session fails it.
      guard let name, !name.isEmpty, url.host?.isEmpty == false else { throw .unreadable }
      let host: HostName
      do throws(HostNameError) {
        host = try HostName(name)
        // libcurl reads `127.1` as an address; here that is no name (ADR 4).
        if let written = url.host { _ = try HostName(written) }
      } catch {
        throw .refused(
          PinEvaluation(host: name, outcome: .unreadableHost(error), decision: .refuse))
      }
      guard let port = part(parsed, CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)),
        let spelling = pp_url_part(parsed, CURLUPART_HOST, 0)
      else { throw .unreadable }
      isTaken = true
      return RequestTarget(
        url: url, parsed: parsed, spelling: UnsafePointer(spelling), host: host,
        origin: origin(name.lowercased() + ":" + port), length: text.utf8.count)
    }

    private static func part(
      _ url: OpaquePointer, _ part: CURLUPart, _ flags: UInt32 = 0
    ) -> String? {
      guard let text = pp_url_part(url, part, flags) else { return nil }
      defer { curl_free(text) }
      return String(cString: text)
    }
  }

  /// Reads each URL once, however often it is asked for. Bounded.
  final class RequestTargets: Sendable {
    private struct State {
      var targets: [String: RequestTarget] = [:]
      var origins: [String: RequestOrigin] = [:]
    }

    // Every request passes here: this lock spins before it sleeps.
    private let state = Mutex(State())
    private let settings: RequestSettings

    init(settings: RequestSettings) { self.settings = settings }

    func target(for url: URL) throws(RequestTarget.Fault) -> RequestTarget {
      let text = url.absoluteString
      if let known = state.withLock({ $0.targets[text] }) { return known }
      let target = try RequestTarget.read(url, text: text) { key in
        state.withLock { state in
          if let known = state.origins[key] { return known }
          if state.origins.count >= 4096 { state.origins.removeAll() }
          let made = RequestOrigin(settings: settings)
          state.origins[key] = made
          return made
        }
      }
      state.withLock { state in
        if state.targets.count >= 512 { state.targets.removeAll(keepingCapacity: true) }
        state.targets[text] = target
      }
      return target
    }
  }
#endif
