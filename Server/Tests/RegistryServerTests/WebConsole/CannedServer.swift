import CanonicalJSON
import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

/// The console over an administration that answers what a test says: for what no server shows in a
/// moment, and for what none should.
final class CannedServer: Sendable {
  private struct State {
    var answers: [String: (status: UInt32, body: String, gate: Gate?)] = [:]
    var requests: [String: Int] = [:]
  }

  private let state: Locked<State>
  private let server: HTTPServer

  /// Any token is good, and there is nothing to see.
  init() throws {
    let state = Locked(State())
    self.state = state
    let console = WebConsoleRoutes()
    let handler: HTTPHandler = { request in
      let condition = request.headers["If-None-Match"]
      if let file = console.answer(path: request.path, ifNoneMatch: condition) {
        return .now(file)
      }
      let path = String(request.path.dropFirst(AdministrationRouter.prefix.count))
      let answer = state.withLock { state in
        state.requests[path, default: 0] += 1
        return state.answers[path]
      }
      guard let answer else { return .now(HTTPRefusal.notFound) }
      let response = HTTPResponse(
        status: answer.status, headers: JSONHeaders.uncached, body: [UInt8](answer.body.utf8))
      guard let gate = answer.gate else { return .now(response) }
      return .later {
        await gate.wait()
        return response
      }
    }
    server = try HTTPServer(
      listen: try #require(ListenAddress("127.0.0.1:0")),
      routing: { _, _ in .body(limit: 65_536) }, handler: handler)
    answer("session", #"{"name":"alice","issued":0,"expires":9999999999}"#)
    answer("pending", #"{"offset":0,"limit":25,"total":0,"items":[]}"#)
    answer("pending/groups", #"{"time":1,"total":0,"byIssuer":[],"byCause":[]}"#)
    answer("proposals", #"{"secondPerson":false,"proposals":[]}"#)
    answer("tombstones", #"{"tombstones":[]}"#)
  }

  var origin: String { "http://\(server.address)" }

  /// What a path below `/api/v1/admin/` answers from now on.
  ///
  /// - Parameter gate: withholds each answer until it is open.
  func answer(_ path: String, _ body: String, status: UInt32 = 200, behind gate: Gate? = nil) {
    state.withLock { $0.answers[path] = (status, body, gate) }
  }

  /// How often a path was asked for.
  func requests(of path: String) -> Int { state.withLock { $0.requests[path, default: 0] } }

  func stop() async { await server.stop() }
}
