import CSslPinningShims
import Foundation
import Testing

@testable import SslPinningPlatform

@Suite("Requests that libcurl lets wait for a connection")
struct FastHeldTests {
  enum State {
    case connected
    /// Opens a connection; `left`: others were taken from behind it.
    case dials, left
    /// Waits for one that somebody else opens; `moved`: not for the first time.
    case waits, moved
    /// Its connection died, and libcurl waits for another one to send it again, or opens that.
    case sentAgain, dialsAgain
    /// The same of what must not be sent twice.
    case postSentAgain
  }

  /// Who is there and since how many milliseconds, and which of them are begun anew.
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let requests: [(State, Int64)]
    let held: Set<Int>

    init(_ description: String, _ requests: [(State, Int64)], held: Set<Int>) {
      (testDescription, self.requests, self.held) = (description, requests, held)
    }
  }

  static let rows = [
    Row("wait for a dial that is young", [(.dials, 1900), (.waits, 1900)], held: []),
    Row("go on from behind one that hangs", [(.dials, 2000), (.waits, 1900)], held: [1]),
    Row(
      "go on from behind one that is made to send a request again",
      [(.dialsAgain, 2000), (.waits, 1900)], held: [1]),
    Row(
      "go on where they wait to be sent again", [(.dials, 2000), (.sentAgain, 100)], held: [1]),
    Row("are not sent twice that may not be", [(.dials, 2000), (.postSentAgain, 2000)], held: []),
    Row("go on where nobody dials", [(.waits, 200), (.waits, 100)], held: [0]),
    Row("go on as often as nobody dials", [(.moved, 2000), (.moved, 1900)], held: [0]),
    Row(
      "go on where a connection stands", [(.connected, 0), (.dials, 0), (.waits, 200)], held: [2]),
    Row(
      "go on as often as a connection stands",
      [(.connected, 0), (.dials, 0), (.moved, 2000), (.moved, 1900)], held: [2]),
    Row(
      "wait longer behind a second dial",
      [(.left, 9000), (.dials, 3900), (.waits, 3900)], held: []),
    Row(
      "go on from behind a second dial",
      [(.left, 9000), (.dials, 4000), (.waits, 3900)], held: [2]),
    Row(
      "wait eight seconds behind the fourth dial",
      [(.left, 30_000), (.left, 28_000), (.left, 24_000), (.dials, 7900), (.waits, 7900)], held: []),
    Row(
      "wait no more than eight seconds behind a later one",
      [
        (.left, 90_000), (.left, 88_000), (.left, 84_000), (.left, 76_000), (.left, 68_000),
        (.dials, 8000), (.waits, 7900),
      ], held: [6]),
  ]

  @Test("are begun anew once nothing comes of that", arguments: rows)
  func held(_ row: Row) throws {
    let target = try RequestTargets(settings: RequestSettings()).target(
      for: try #require(URL(string: "https://localhost/")))
    let now: Int64 = 1_000_000
    let exchanges = UnsafeMutablePointer<pp_exchange>.allocate(capacity: row.requests.count)
    defer { exchanges.deallocate() }
    let requests = row.requests.enumerated().map { index, entry in
      (exchanges + index).initialize(to: exchange(entry.0))
      let request = ClientRequest(
        target: target, place: target.origin.enter(streams: false),
        method: entry.0 == .postSentAgain ? "POST" : "GET", headers: [:], body: .none,
        timeout: 60_000, deadline: .max, feed: nil)
      request.slot = TransferSlot(exchanges + index)
      request.begunAt = now - entry.1
      request.isLeft = entry.0 == .left
      request.wasMoved = entry.0 == .moved
      return request
    }
    let held = ConnectionColours.held(among: requests, beside: [], at: now)
    #expect(Set(requests.indices.filter { i in held.contains { $0 === requests[i] } }) == row.held)
  }

  private func exchange(_ state: State) -> pp_exchange {
    var exchange = pp_exchange()
    switch state {
    case .connected:
      exchange.begun = true
      exchange.connection = OpaquePointer(bitPattern: 16)
    case .dials, .left: exchange.is_dialing = true
    case .waits, .moved: break
    case .sentAgain, .postSentAgain: exchange.begun = true
    case .dialsAgain: (exchange.begun, exchange.is_dialing) = (true, true)
    }
    return exchange
  }
}
