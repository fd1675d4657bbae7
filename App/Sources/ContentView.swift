import Foundation
import SwiftUI

/// The one screen: the registry's state, a request, the log.
struct ContentView: View {
  @StateObject private var model = RequestModel(
    config: BuildSettings.config(from: Bundle.main.infoDictionary))

  var body: some View {
    Form {
      Section("Registry") {
        ClientStateView(state: model.state) { await model.start() }
      }
      Section("Request") {
        RequestView(model: model)
      }
      Section("Log") {
        ForEach(model.log) { entry in
          LogEntryView(entry: entry)
        }
        if !model.log.isEmpty {
          Button("Clear", role: .destructive) { model.clearLog() }
        }
      }
    }
    .task { await model.start() }
  }
}
