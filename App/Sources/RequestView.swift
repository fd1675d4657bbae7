import SwiftUI

/// Where to send a request, and over which session.
struct RequestView: View {
  @ObservedObject var model: RequestModel

  var body: some View {
    TextField("https://host/path", text: $model.address)
      .disableAutocorrection(true)
    Toggle("Pinned session", isOn: $model.isPinned)
    Button("Send") { Task { await model.send() } }
      .disabled(!model.canSend)
  }
}
