import Foundation
import SslPinning
import SwiftUI

/// What the screen shows, and what its buttons do.
@MainActor
final class RequestModel: ObservableObject {
  /// How far the client is.
  enum ClientState {
    case starting
    case ready(Sessions)
    case failed(reason: String)
  }

  @Published private(set) var state = ClientState.starting
  /// Newest first.
  @Published private(set) var log: [LogEntry] = []
  @Published private(set) var isSending = false
  @Published var address = "https://"
  @Published var isPinned = true

  private let config: SslPinningConfig?
  private var sent = 0

  init(config: SslPinningConfig?) {
    self.config = config
  }

  var canSend: Bool {
    if case .ready = state { !isSending && url != nil } else { false }
  }

  /// Fetches and verifies the registry.
  func start() async {
    guard let config else {
      state = .failed(
        reason: "no registry is configured; hint: copy Config.xcconfig.example to Config.xcconfig")
      return
    }
    state = .starting
    switch await SslPinningClient.initialize(config: config) {
    case .success(let client): state = .ready(Sessions(client: client))
    case .failure(let error): state = .failed(reason: "\(error)")
    }
  }

  /// Sends one request over the chosen session and logs what became of it.
  func send() async {
    guard canSend, case .ready(let sessions) = state, let url else { return }
    let kind: SessionKind = isPinned ? .pinned : .plain
    isSending = true
    let result = await sessions.send(to: url, over: kind)
    isSending = false
    sent += 1
    log.insert(LogEntry(id: sent, date: Date(), url: url, session: kind, result: result), at: 0)
  }

  func clearLog() {
    log = []
  }

  private var url: URL? {
    let url = URL(string: address.trimmingCharacters(in: .whitespacesAndNewlines))
    return url?.host == nil ? nil : url
  }
}
