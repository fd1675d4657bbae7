extension ServerLog {
  /// Writes what is in effect, secrets masked, as one event; warnings follow as events of their own.
  ///
  /// Of thousands of endpoints the number is enough here; `config check` lists them.
  public func event(_ effective: EffectiveConfiguration) {
    let fields = effective.values.map { value in
      let documents = effective.configuration.documents
      let text =
        value.setting == .keys
        ? "endpoints: \(documents.reduce(0) { $0 + $1.endpoints.count }), documents: \(documents.count)"
        : value.text
      return (
        name: value.setting.rawValue,
        value: value.origin == .standard ? text : "\(text) (\(value.origin))"
      )
    }
    event(.info, "configuration", fields: [("file", effective.file ?? "none")] + fields)
    for warning in effective.warnings {
      event(.warn, "configuration_warning", ["message": warning])
    }
  }
}
