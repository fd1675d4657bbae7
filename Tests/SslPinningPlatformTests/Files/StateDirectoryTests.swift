import SslPinningPlatform
import Testing

@Suite("Where state is kept")
struct StateDirectoryTests {
  @Test(
    "follows the XDG Base Directory Specification",
    arguments: [
      (["XDG_STATE_HOME": "/x", "HOME": "/h"], "/x/app"),
      (["HOME": "/h"], "/h/.local/state/app"),
      // A relative path is invalid there and must be ignored.
      (["XDG_STATE_HOME": "x", "HOME": "/h"], "/h/.local/state/app"),
      (["XDG_STATE_HOME": "", "HOME": "/h"], "/h/.local/state/app"),
      (["HOME": "h"], nil),
      ([:], nil),
    ] as [([String: String], String?)])
  func places(environment: [String: String], path: String?) {
    #expect(StateDirectory.standard(app: "app", environment: environment) == path)
  }

  @Test("registries are kept whatever the program is called")
  func registries() {
    for name in ["app-1.0", "app-1.1"] {
      let place = StateDirectory.registries(of: name, environment: ["XDG_STATE_HOME": "/x"])
      #expect(place == "/x/SslPinning")
    }
    #expect(StateDirectory.registries(of: "app", environment: [:]) == nil)
  }

  @Test(
    "an app's name is one component of the path, whatever it says",
    arguments: [
      ("com.example.App-1_2", "com.example.App-1_2"), ("../../etc", "_._.._etc"), ("..", "_."),
      ("a/b c", "a_b_c"), ("", "_"), ("é", "__"),
    ])
  func names(app: String, component: String) {
    #expect(
      StateDirectory.standard(app: app, environment: ["XDG_STATE_HOME": "/x"]) == "/x/" + component)
  }
}
