/// All that is known of a document at one moment, to be shown.
struct DocumentSnapshot: Sendable {
  let file: String
  let settings: KeeperSettings
  let state: DocumentState
  /// The endpoints in force.
  let endpoints: [WatchedEndpoint]
  /// By the endpoints' ids.
  let lastLooks: [String: LastLook]
  let published: PublishedDocument?
}
