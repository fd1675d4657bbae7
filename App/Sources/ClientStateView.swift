import SwiftUI

/// Whether there is a client, and why not.
struct ClientStateView: View {
  let state: RequestModel.ClientState
  let retry: @MainActor () async -> Void

  var body: some View {
    switch state {
    case .starting:
      ProgressView("Fetching the registry")
    case .ready(let sessions):
      Label("The registry is verified", systemImage: "checkmark.shield")
      Text("SHA-256 \(sessions.client.registryStatus.stamp.payloadDigest)").font(.caption)
    case .failed(let reason):
      Label("No request can be sent", systemImage: "xmark.shield").foregroundColor(.red)
      Text(reason).font(.caption).textSelection(.enabled)
      Button("Try again") { Task { await retry() } }
    }
  }
}
