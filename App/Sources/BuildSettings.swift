import SslPinning

/// What `Config.xcconfig` says, as it arrives in the Info.plist.
enum BuildSettings {
  /// The configuration, or `nil` where a setting is empty: the app was built without the file.
  static func config(from info: [String: Any]?) -> SslPinningConfig? {
    guard let endpoint = text("SSL_PINNING_ENDPOINT", in: info),
      let key = text("SSL_PINNING_SIGNING_KEY_B64", in: info)
    else { return nil }
    return SslPinningConfig(endpointUrl: endpoint, signingKeyBase64: key)
  }

  private static func text(_ name: String, in info: [String: Any]?) -> String? {
    guard let text = info?[name] as? String, !text.isEmpty else { return nil }
    return text
  }
}
