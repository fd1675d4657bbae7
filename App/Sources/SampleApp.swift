import SwiftUI

/// Sends requests over a pinned or a plain session and shows what the pins made of them.
@main
struct SampleApp: SwiftUI.App {
  var body: some Scene {
    WindowGroup {
      ContentView()
    }
  }
}
