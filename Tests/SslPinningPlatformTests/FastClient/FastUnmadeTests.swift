import Foundation
import FoundationNetworking
import SslPinningRules
import Testing

@testable import SslPinningPlatform

@Suite("A connection that is still being made")
struct FastUnmadeTests {
  private let site: PinnedSite

  init() throws { site = try PinnedSite() }

  private func request(_ method: String = "GET") throws -> ClientRequest {
    let target = try RequestTargets(settings: RequestSettings()).target(for: try site.url())
    return ClientRequest(
      target: target, place: target.origin.enter(streams: false), method: method, headers: [:],
      body: .none, timeout: 60_000, deadline: .max, feed: nil)
  }

  @Test("takes no request, and nobody is told of a refusal")
  func takesNone() throws {
    let evaluator = ConnectionEvaluator(
      judge: site.judge,
      validator: try ChainValidator(trust: .anchors([site.authority.root.der])))
    let request = try request()
    #expect(!evaluator.confirm(request, nil))
    guard case .unmade = request.verdict else {
      Issue.record("the verdict is \(request.verdict)")
      return
    }
    #expect(site.judge.recorded.isEmpty)
  }

  @Test("has its request begin again a few times, and not for ever", arguments: ["GET", "POST"])
  func beginsAgain(method: String) throws {
    let request = try request(method)
    let tries = (1...ClientRequest.mostUnmade).map { _ in request.triesAgain() }
    #expect(tries == Array(repeating: true, count: ClientRequest.mostUnmade - 1) + [false])
    let error = TransferFailure.unmadeConnection(request)
    #expect(error.code == .networkConnectionLost)
    #expect(site.transport.refusal(for: error) == nil)
  }
}
