import Foundation
import FoundationNetworking
import SslPinningRules
import Testing

@testable import SslPinningPlatform

/// What the system says of a task, what the reader says, and what comes from outside.
enum TransferEvent: CaseIterable, Sendable {
  case head, redirect, clearText, otherScheme, notHTTP, data, taken, cancel, late, brokenBody
  case ended, endedBadly, endedWithHead

  struct Broken: Error {}

  static let url = URL(string: "https://a.test/x")

  static func response(_ status: Int, to location: String? = nil) throws -> HTTPURLResponse {
    let url = try #require(url)
    let response = HTTPURLResponse(
      url: url, statusCode: status, httpVersion: "HTTP/1.1",
      headerFields: location.map { ["Location": $0] } ?? [:])
    return try #require(response)
  }

  /// Bytes that come, and are taken, at a time.
  static let chunk = 100

  func apply(to state: inout TransferState) throws -> [TransferState.Order] {
    switch self {
    case .head: state.head(try Self.response(200))
    case .redirect: state.head(try Self.response(302, to: "https://b.test/y"))
    case .clearText: state.head(try Self.response(302, to: "http://a.test/y"))
    case .otherScheme: state.head(try Self.response(302, to: "file:///y"))
    case .notHTTP:
      state.head(
        URLResponse(
          url: try #require(Self.url), mimeType: nil, expectedContentLength: 0,
          textEncodingName: nil))
    case .data: state.data(Data(repeating: 7, count: Self.chunk))
    case .taken: state.taken(Self.chunk)
    case .cancel: state.stop(.cancelled)
    case .late: state.stop(.late)
    case .brokenBody: state.stop(.body(Broken()))
    case .ended: state.ended(nil, response: nil)
    case .endedBadly: state.ended(URLError(.networkConnectionLost), response: nil)
    case .endedWithHead: state.ended(nil, response: try Self.response(204))
    }
  }
}

extension TransferState.Order {
  /// In a table's words.
  var text: String {
    switch self {
    case .suspend: "suspend"
    case .resume: "resume"
    case .cancel: "cancel"
    case .pass(let data): "pass \(data.count)"
    case .finish(nil): "finish"
    case .finish(let error?): "finish \(Self.name(error))"
    case .answer(.response(let response, let body)): "\(response.statusCode) with \(body.count)"
    case .answer(.redirect(let request)): "to \(request.url?.absoluteString ?? "nowhere")"
    case .answer(.refused(let evaluation)): "refused \(evaluation.outcome)"
    case .answer(.failed(let error)): "failed \(Self.name(error))"
    case .answer(.broken(let error)): "broken \(Self.name(error))"
    }
  }

  private static func name(_ error: any Error) -> String {
    switch error {
    case let error as URLError:
      "\(error.code.rawValue)\(error.failingURL == TransferEvent.url ? " here" : "")"
    default: "\(type(of: error))"
    }
  }
}

@Suite("The state of a transfer over a task of the platform's session")
struct TransferStateTests {
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var streams = false
    let events: [TransferEvent]
    let orders: [String]
  }

  static let rows = [
    Row(
      testDescription: "a whole answer is told at its end",
      events: [.head, .data, .data, .ended], orders: ["200 with 200"]),
    Row(
      testDescription: "a streamed one is told at its head",
      streams: true, events: [.head, .data, .ended],
      orders: ["200 with 0", "pass 100", "finish"]),
    Row(
      testDescription: "of a redirect the body is not waited for",
      events: [.redirect, .data, .endedBadly], orders: ["cancel", "to https://b.test/y"]),
    Row(
      testDescription: "a redirect to clear text is refused",
      events: [.clearText], orders: ["cancel", "refused clearText(scheme: \"http\")"]),
    Row(
      testDescription: "a redirect to another scheme fails",
      streams: true, events: [.otherScheme], orders: ["cancel", "failed -1002 here"]),
    Row(
      testDescription: "an answer that is not HTTP is none",
      events: [.notHTTP, .ended], orders: ["cancel", "failed -1011 here"]),
    Row(
      testDescription: "a body before its head is no answer",
      events: [.data, .head, .ended], orders: ["cancel", "failed -1011 here"]),
    Row(
      testDescription: "an end without a head is no answer",
      events: [.ended], orders: ["failed -1011 here"]),
    // Whether a head is always told before the end, no document says.
    Row(
      testDescription: "an end that brings the head itself is an answer",
      events: [.endedWithHead], orders: ["204 with 0"]),
    Row(
      testDescription: "and for a reader, too",
      streams: true, events: [.endedWithHead], orders: ["204 with 0", "finish"]),
    Row(
      testDescription: "the system's error is told as the system's",
      events: [.endedBadly], orders: ["broken -1005"]),
    Row(
      testDescription: "so is one that cuts the body",
      events: [.head, .data, .endedBadly], orders: ["broken -1005"]),
    Row(
      testDescription: "a reader is told of a cut body by the body's end",
      streams: true, events: [.head, .data, .endedBadly],
      orders: ["200 with 0", "pass 100", "finish -1005"]),
    Row(
      testDescription: "a cancel answers at once, and what the system then says is not looked at",
      events: [.cancel, .endedBadly], orders: ["cancel", "failed -999 here"]),
    Row(
      testDescription: "the end of the time likewise",
      events: [.head, .late, .endedBadly], orders: ["cancel", "failed -1001 here"]),
    Row(
      testDescription: "a reader's body ends with it",
      streams: true, events: [.head, .late, .data, .ended],
      orders: ["200 with 0", "cancel", "finish -1001 here"]),
    Row(
      testDescription:
        "a body of the app's that breaks off cancels the task and is told in the app's words",
      events: [.brokenBody, .head, .data, .ended], orders: ["cancel", "failed Broken"]),
    Row(
      testDescription: "it does so after the head, too, before the answer is whole",
      events: [.head, .data, .brokenBody, .ended], orders: ["cancel", "failed Broken"]),
    Row(
      testDescription: "after the answer it changes nothing",
      events: [.head, .ended, .brokenBody], orders: ["200 with 0"]),
    Row(
      testDescription:
        "what waits for the reader suspends the task once, and what comes all the same is passed on",
      streams: true, events: [.head, .data, .data, .data, .data],
      orders: ["200 with 0", "pass 100", "pass 100", "suspend", "pass 100", "pass 100"]),
    Row(
      testDescription: "at half of that it goes on",
      streams: true, events: [.head, .data, .data, .data, .taken, .taken, .data],
      orders: ["200 with 0", "pass 100", "pass 100", "suspend", "pass 100", "resume", "pass 100"]),
    Row(
      testDescription: "a cancel of a suspended task does not wait for the reader",
      streams: true, events: [.head, .data, .data, .data, .cancel, .taken, .taken],
      orders: [
        "200 with 0", "pass 100", "pass 100", "suspend", "pass 100", "cancel", "finish -999 here",
      ]),
    Row(
      testDescription: "a further head, between parts, changes nothing",
      events: [.head, .data, .redirect, .data, .ended], orders: ["200 with 200"]),
  ]

  /// Three chunks may wait.
  private static func state(streams: Bool) throws -> TransferState {
    let request = URLRequest(url: try #require(TransferEvent.url))
    return TransferState(Hop(request), limit: streams ? 3 * TransferEvent.chunk : nil)
  }

  @Test("orders what its events ask for", arguments: rows)
  func orders(_ row: Row) throws {
    var state = try Self.state(streams: row.streams)
    var orders: [String] = []
    for event in row.events { orders += try event.apply(to: &state).map(\.text) }
    #expect(orders == row.orders)
  }

  /// What must hold after any events in any order.
  private struct Books {
    var answers = 0
    var finishes = 0
    var streams = false
    var depth = 0
    var cancels = 0
    var hasEnded = false

    mutating func take(_ order: TransferState.Order) {
      switch order {
      case .suspend:
        #expect(depth == 0 && cancels == 0)
        depth += 1
      case .resume:
        #expect(depth == 1 && cancels == 0)
        depth -= 1
      case .cancel:
        #expect(!hasEnded)
        cancels += 1
      case .answer(.response):
        answers += 1
      case .answer:
        answers += 1
        streams = false
      case .pass: #expect(answers == 1 && finishes == 0)
      case .finish:
        #expect(answers == 1)
        finishes += 1
      }
      #expect(answers <= 1 && finishes <= 1 && cancels <= 1)
    }
  }

  @Test(
    "after any events in any order the caller was answered once and the reader's body ended once",
    arguments: [false, true])
  func anyOrder(streams: Bool) throws {
    func go(_ state: TransferState, _ books: Books, _ left: Int) throws {
      for event in TransferEvent.allCases {
        var (state, books) = (state, books)
        let isEnd = [.ended, .endedBadly, .endedWithHead].contains(event)
        let orders = try event.apply(to: &state)
        for order in orders { books.take(order) }
        if books.hasEnded { #expect(orders.isEmpty) }
        if isEnd || state.isOver {
          #expect(state.isOver && books.answers == 1)
          if !streams { #expect(books.finishes == 0) }
        }
        if isEnd { books.hasEnded = true }
        if left > 0 { try go(state, books, left - 1) }
      }
    }
    try go(try Self.state(streams: streams), Books(), 3)
  }
}
