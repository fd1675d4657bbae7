import CanonicalJSON

extension Browser {
  /// What a person set for all pages.
  public enum ColorScheme: String, Sendable, CaseIterable {
    case light
    case dark
  }

  /// The size of the page in CSS pixels.
  public func setSize(width: Int64, height: Int64) async throws {
    try await sendToDevTools(
      "Emulation.setDeviceMetricsOverride",
      [
        "width": Self.number(width), "height": Self.number(height),
        "deviceScaleFactor": Self.number(1), "mobile": .bool(false),
      ])
  }

  /// What `prefers-color-scheme` and `prefers-reduced-motion` say.
  public func prefer(_ scheme: ColorScheme, reducedMotion: Bool = true) async throws {
    let features: [JSONValue] = [
      ("prefers-color-scheme", scheme.rawValue),
      ("prefers-reduced-motion", reducedMotion ? "reduce" : "no-preference"),
    ].map { .object(["name": .string($0), "value": .string($1)]) }
    try await sendToDevTools("Emulation.setEmulatedMedia", ["features": .array(features)])
  }

  /// Runs a script in every page before its own, until ``runNoMore(_:)``.
  public func runOnNewPages(_ script: String) async throws -> String {
    let answer = try await sendToDevTools(
      "Page.addScriptToEvaluateOnNewDocument", ["source": .string(script)])
    return answer.objectValue?["identifier"]?.stringValue ?? ""
  }

  public func runNoMore(_ identifier: String) async throws {
    try await sendToDevTools(
      "Page.removeScriptToEvaluateOnNewDocument", ["identifier": .string(identifier)])
  }

  /// Leaves nothing of the test before: an empty page, no storage of `origin`, no log.
  public func reset(origin: String) async throws {
    try await open("about:blank")
    try await sendToDevTools(
      "Storage.clearDataForOrigin", ["origin": .string(origin), "storageTypes": .string("all")])
    try await setSize(width: 1280, height: 900)
    try await prefer(.light)
    try await setTimeZone("UTC")
    _ = try await takeLog()
  }

  private static func number(_ value: Int64) -> JSONValue {
    .number(JSONNumber(exactly: value) ?? 0)
  }
}
