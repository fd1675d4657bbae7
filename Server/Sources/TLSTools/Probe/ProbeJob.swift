import SslPinningRules

/// A job under way: what it found so far, and what is still open. Belongs to its loop's thread.
final class ProbeJob {
  let job: ProbeRequest
  /// The serials of its connections.
  var sessions: Set<UInt64> = []
  /// The lookups that have not been answered, by route, and until when they may take.
  var lookups: [Int: Deadline] = [:]
  /// The routes on which the addresses of an earlier lookup are dialled.
  var remembered: Set<Int> = []
  /// Whether more connections are about to be opened.
  var isDialling = false
  private var findings: [Int: [ProbeFinding?]] = [:]
  private var result: Result<ProbedServer, ProbeError>?

  init(_ job: ProbeRequest) { self.job = job }

  var isOver: Bool { !isDialling && sessions.isEmpty && lookups.isEmpty }

  /// So many findings will come of a route.
  func expect(_ count: Int, on route: Int) {
    findings[route] = Array(repeating: nil, count: count)
  }

  /// Enters a failure.
  func note(
    _ error: ProbeError, on route: Int, place: Int, at address: Endpoint?, blame: ProbeBlame
  ) {
    switch job.purpose {
    case .one: result = .failure(error)
    case .survey:
      var finding = ProbeFinding(route: route, address: address, outcome: .failure(error))
      finding.blame = blame
      enter(finding, place: place)
    }
  }

  /// Judges a finished handshake.
  func judge(
    _ session: OpaquePointer, on route: Int, place: Int, at endpoint: Endpoint, isTunnel: Bool
  ) {
    switch job.purpose {
    case .one(let target, let validator, let time, _):
      do throws(ProbeError) {
        result = .success(
          try ProbedServer(session, of: target, at: endpoint, by: validator, time: time))
      } catch { result = .failure(error) }
    case .survey(_, let reader, _):
      let outcome: Result<ProbeVerdict, ProbeError>
      do throws(ProbeError) {
        outcome = .success(try reader.read(session))
      } catch { outcome = .failure(error) }
      enter(
        ProbeFinding(route: route, address: isTunnel ? nil : endpoint, outcome: outcome),
        place: place)
    }
  }

  /// Tells whoever asked.
  func complete() {
    switch job.purpose {
    case .one(_, _, _, let complete): complete(result ?? .failure(.cancelled))
    case .survey(let routes, _, let complete):
      complete(
        routes.indices.flatMap { route in
          (findings[route] ?? []).map { finding in
            finding ?? ProbeFinding(route: route, address: nil, outcome: .failure(.cancelled))
          }
        })
    }
  }

  private func enter(_ finding: ProbeFinding, place: Int) {
    guard findings[finding.route]?.indices.contains(place) == true else { return }
    var finding = finding
    finding.isRemembered = remembered.contains(finding.route)
    findings[finding.route]?[place] = finding
  }
}
