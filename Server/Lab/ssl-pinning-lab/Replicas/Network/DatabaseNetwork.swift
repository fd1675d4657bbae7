import TestSupport

/// The network between replicas and their database, which can be cut without a word to either side.
protocol DatabaseNetwork: Sendable {
  /// What was used, for the report.
  var explanation: String { get }
  /// Whether the database's kernel notices a cut too, and so gives a cut leader's lock away.
  var isNoticedByDatabase: Bool { get }
  /// Whether one way can be cut and the other left.
  var hasOneWayCuts: Bool { get }

  /// The database as a replica reaches it, counted from 0.
  func dsn(forReplica replica: Int) -> String
  /// The database as the drill itself reaches it, whatever is cut.
  var operatorDSN: String { get }
  /// Its server, to be restarted and killed.
  var database: PostgresServer { get }

  /// Loses, without a sound, everything that goes over a replica's way.
  func cut(_ replica: Int, _ direction: CutDirection) async throws
  /// Ends every cut of a replica's way.
  func restore(_ replica: Int) async throws
  /// Removes everything that was set up, the database included.
  func stop() async throws
}

/// Which of a replica's packets are lost.
enum CutDirection: Sendable {
  case both
  /// The database hears and its answers are lost: what it did, nobody knows.
  case answers
}
