/// What a failure report says of the app that made it.
package struct ReportedApp: Hashable, Sendable {
  package var bundleID: String
  package var version: String
  package var platform: String
  package var platformVersion: String
  package var vendorID: String?

  package init(
    bundleID: String, version: String, platform: String, platformVersion: String, vendorID: String?
  ) {
    self.bundleID = bundleID
    self.version = version
    self.platform = platform
    self.platformVersion = platformVersion
    self.vendorID = vendorID
  }
}
