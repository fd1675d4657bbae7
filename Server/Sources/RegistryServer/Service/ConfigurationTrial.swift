import CanonicalJSON
import Foundation
import HTTPServing
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Tries what a configuration names, as a start would, and starts nothing: keys and key sets, anchors and
/// vantage points, the listener's certificate and address, the store, the directory of copies.
///
/// - What would keep the server from starting is thrown; what it would warn of is kept in ``warnings``.
/// - A command that signs is run once.
/// - Nothing is made and nothing is changed. Of a store on disk that is not there yet the place is probed; a
///   database is connected to, and its tables are left to the server.
/// - An address that is in use is a warning: as a rule the server runs.
public struct ConfigurationTrial: Sendable {
  /// What a start would log as a warning.
  public let warnings: [String]

  /// Tries a configuration out. Waits for a database, a few seconds at most.
  ///
  /// - Parameter now: Unix time in seconds.
  /// - Throws: ``RegistryServiceError``, what ``RegistryService`` would throw.
  public init(
    _ configuration: ServerConfiguration, at now: Int64
  ) async throws(RegistryServiceError) {
    let told = Locked<[String]>([])
    let log = ServerLog(
      level: .warn, now: { 0 },
      sink: { line in
        guard let message = (try? JSONValue(parsing: line))?.objectValue?["message"]?.stringValue
        else { return }
        told.withLock { $0.append(message) }
      })
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      signer = try DocumentSigner(
        directory: configuration.tls.directory, publishing: configuration.publishing)
      try signer.tryCommands()
    } catch { throw .signer(error) }
    KeyCare.warn(of: configuration, signer: signer, log)
    let states = try await StoredDocuments.states(
      of: configuration.documents.map(\.file), in: configuration, signer)
    let left = try await StoredDocuments.left(in: configuration, signer)
    do throws(AnchorsError) { _ = try TLSEndpointProber(configuration.tls) } catch {
      throw .anchors(error)
    }
    _ = try AdminTokenKey(configuration, signer: signer, log: log)
    do throws(ReceiverError) { _ = try configuration.notify.receivers() } catch {
      throw .receiver(error)
    }
    var warnings: [String] = []
    do throws(HTTPServerError) {
      warnings += try Self.tryListener(of: configuration, at: now)
    } catch { throw .listening(error) }
    UnusedKeySets.warn(of: configuration, log)
    DescriptorLimit.warn(of: configuration, log)
    for document in configuration.documents {
      let state = states[document.file] ?? DocumentState()
      if let problem = signer.problem(of: document.file, after: state, at: now) {
        warnings.append(
          problem.isAhead
            ? "\(document.file): \(problem)"
            : "\(document.file) cannot be signed as it should be: \(problem)")
      }
    }
    warnings += left.filter { !$0.value.document.isEmpty }.keys.sorted()
      .map(LeftDocuments.message)
    let all = states.merging(left, uniquingKeysWith: { $1 })
    warnings += MovedHosts.messages(configuration.documents, all, in: Set(all.keys))
    for document in configuration.documents {
      let state = states[document.file] ?? DocumentState()
      warnings += DifferingTerms.messages(in: document, state)
      warnings += OverruledApprovals.messages(in: document, state, configuration.tls.approval)
      warnings += TakenOutEndpoints.ids(in: document, state).map {
        TakenOutEndpoints.message($0, document.file, state)
      }
    }
    warnings += [configuration.storage.leadershipWarning].compactMap(\.self)
    warnings += PublishingTrial.warnings(configuration, signer)
    self.warnings = told.withLock { $0 } + warnings
  }

  private static func tryListener(
    of configuration: ServerConfiguration, at now: Int64
  ) throws(HTTPServerError) -> [String] {
    let end = try configuration.server.listenerIdentity()?.ends
    var warnings = [end.flatMap { Condition.listenerEnd($0, at: now)?.message }].compactMap(\.self)
    let addresses = [
      configuration.listen, configuration.metricsListen, configuration.administration.listen,
    ]
    for address in addresses.compactMap(\.self) {
      do throws(HTTPServerError) {
        close(try ListeningSocket.open(address).descriptor)
      } catch {
        guard case .addressInUse = error else { throw error }
        warnings.append("\(address) is in use, by this server if it runs")
      }
    }
    return warnings
  }
}

extension StorageConfiguration {
  /// Whether the store could be opened, without making anything.
  ///
  /// - Returns: whether it is there, and of this version: so that opening it changes nothing.
  func tryOut() throws(StoreError) -> Bool {
    switch self {
    case .memory: return false
    case .sqlite(let path):
      guard access(path, F_OK) == 0 else {
        try Self.checkPlace(of: path)
        return false
      }
      guard access(path, R_OK | W_OK) == 0 else { throw .cannotOpen(path: path, errno: errno) }
      return try SQLiteSchema.check(try SQLiteConnection(path: path), path: path)
        == SQLiteSchema.newest
    case .fileSystem(let directory):
      let records = directory + "/records"
      guard access(records, F_OK) == 0 else {
        try Self.checkPlace(of: records)
        return false
      }
      guard access(records, R_OK | W_OK | X_OK) == 0 else {
        throw .cannotOpen(path: records, errno: errno)
      }
      return true
    case .postgres(let dsn, _, let isInsecure):
      let dsn = try PostgresDSN(dsn, isInsecure: isInsecure)
      return try PostgresSchema().isNewest(try PostgresConnection(dsn), place: dsn.place)
    case .redis(let dsn, _, let isInsecure):
      _ = try RedisConnection(try RedisDSN(dsn, isInsecure: isInsecure))
      return true
    }
  }

  /// That nobody could lead on a store that is there, without making anything; `nil` if nothing is known to keep a server from it.
  fileprivate var leadershipWarning: String? {
    let problem: StoreError?
    switch self {
    case .sqlite(let path): problem = SQLiteStore.leadershipProblem(path: path)
    case .fileSystem(let directory):
      problem = FileSystemStore.leadershipProblem(directory: directory)
    case .memory, .postgres, .redis: problem = nil
    }
    guard case .cannotOpen(let path, let reason)? = problem else { return nil }
    return
      "\(path) cannot be opened: \(reason): this server would never lead, and publish no changed"
      + " key; hint: it must be a file of the user that the server runs as"
  }

  /// Whether what is not there could be made: in the nearest directory above that is.
  static func checkPlace(of path: String) throws(StoreError) {
    var place = URL(filePath: path).standardizedFileURL
    var name: String
    repeat {
      place.deleteLastPathComponent()
      // Without the slash behind: a file that stands where a directory should is there.
      name = "/" + place.pathComponents.dropFirst().joined(separator: "/")
    } while access(name, F_OK) != 0 && place.pathComponents.count > 1
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: name, isDirectory: &isDirectory),
      isDirectory.boolValue
    else { throw .cannotOpen(path: path, reason: "\(name) is no directory") }
    guard access(name, W_OK | X_OK) == 0 else { throw .cannotOpen(path: path, errno: errno) }
  }
}

/// Tries what a configuration that is read again changes for the next start: signing and online keys, the
/// listeners' certificate and addresses, the store, who is notified.
///
/// What a start would refuse is refused now, while somebody probes, and not at a restart in the night. Nothing of it
/// is taken in force.
enum RestartTrial {
  /// Tries what differs. Waits for a database, a few seconds at most, on a thread of its own.
  ///
  /// - Throws: ``RegistryServiceError``, what a start would throw.
  static func tryOut(
    _ new: ServerConfiguration, over old: ServerConfiguration
  ) async throws(RegistryServiceError) {
    let refusal: RegistryServiceError? = await withCheckedContinuation { continuation in
      BackgroundThread.start("configuration") {
        do throws(RegistryServiceError) {
          try judge(new, over: old)
          continuation.resume(returning: nil)
        } catch { continuation.resume(returning: error) }
      }
    }
    if let refusal { throw refusal }
  }

  private static func judge(
    _ new: ServerConfiguration, over old: ServerConfiguration
  ) throws(RegistryServiceError) {
    do throws(DocumentSignerError) {
      let signer = try DocumentSigner(
        directory: new.tls.directory, publishing: new.publishing)
      if new.publishing.signing != old.publishing.signing { try signer.tryCommands() }
    } catch { throw .signer(error) }
    do throws(StoreError) { if new.storage != old.storage { _ = try new.storage.tryOut() } } catch {
      throw .store(error)
    }
    do throws(ReceiverError) { _ = try new.notify.receivers() } catch { throw .receiver(error) }
    do throws(HTTPServerError) {
      _ = try new.server.listenerIdentity()
      let addresses = [
        (new.listen, old.listen), (new.metricsListen, old.metricsListen),
        (new.administration.listen, old.administration.listen),
      ]
      for (address, before) in addresses {
        guard let address, address != before else { continue }
        do throws(HTTPServerError) {
          close(try ListeningSocket.open(address).descriptor)
        } catch {
          // This server may have the port itself, at another address.
          guard case .addressInUse = error else { throw error }
        }
      }
    } catch { throw .listening(error) }
  }
}

/// What of a configuration would be published nowhere, or where it should not be.
enum PublishingTrial {
  /// What a person should look at; nothing keeps the server from starting.
  static func warnings(_ configuration: ServerConfiguration, _ signer: DocumentSigner) -> [String] {
    copies(configuration) + keySets(configuration, signer)
  }

  /// Whoever reads the copies would go on with old documents, or meet what is none of his business.
  private static func copies(_ configuration: ServerConfiguration) -> [String] {
    guard let directory = configuration.publishing.directory else { return [] }
    if let reason = unwritable(directory) {
      return ["publish.dir: \(reason): no copy of a document would be written"]
    }
    let above = sequence(first: configuration.tls.directory) { $0 + "/.." }.prefix(32)
    guard !above.contains(where: { isSame(directory, $0) }) else {
      return [
        "publish.dir is where web servers read, and tls.dir with prv.pem is in it; hint: another directory"
      ]
    }
    var status = stat()
    guard stat(directory, &status) == 0, status.st_mode & 0o011 == 0 else { return [] }
    return [
      "publish.dir: only the owner of \(directory) can read what is in it, and a web server is somebody else;"
        + " hint: chmod a+rx, or chgrp and chmod g+rx"
    ]
  }

  private static func unwritable(_ directory: String) -> String? {
    do throws(StoreError) {
      guard access(directory, F_OK) == 0 else {
        try StorageConfiguration.checkPlace(of: directory)
        return nil
      }
    } catch {
      guard case .cannotOpen(_, let reason) = error else { return "\(error)" }
      return "\(directory) cannot be made: \(reason)"
    }
    var status = stat()
    guard stat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      return "\(directory) is no directory"
    }
    return access(directory, W_OK | X_OK) == 0
      ? nil : "\(directory): \(String(cString: strerror(errno)).lowercased())"
  }

  private static func isSame(_ left: String, _ right: String) -> Bool {
    var (one, other) = (stat(), stat())
    return stat(left, &one) == 0 && stat(right, &other) == 0 && one.st_dev == other.st_dev
      && one.st_ino == other.st_ino
  }

  private static func keySets(
    _ configuration: ServerConfiguration, _ signer: DocumentSigner
  ) -> [String] {
    let directory = configuration.keySetsDirectory
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    let files = configuration.documents.map(\.file).filter(names.contains)
    guard let statements = signer.statements else {
      return files.isEmpty
        ? []
        : [
          "publish.statements is false, and \(directory) has key sets: nothing is signed under them; hint: true,"
            + " or remove them"
        ]
    }
    return files.filter { file in
      // What cannot be read is told as such.
      guard let first = (try? statements.storedKeySets(of: file))??.sets.first,
        let shipped = try? KeyRole(keys: [signer.key.trustKey.roleKey], threshold: 1)
      else { return false }
      return first.signers(of: shipped).isEmpty
    }.map {
      "prv.pem did not sign key set 1 of \($0): apps that ship its public half alone refuse the statements;"
        + " hint: keys sign-set --sign-with, if they do not ship rootKeys"
    }
  }
}

/// What a store has of documents, for whoever stands beside the server. Makes nothing and changes nothing.
package enum StoredDocuments {
  /// What a store tells of the key sets of a document.
  package enum KeySets {
    /// It carries these; none if it has none, or was never published.
    case told([SignedKeySet])
    /// The store cannot tell.
    case unknown(reason: String)
  }

  /// The key sets that a document carries in the store.
  ///
  /// - Throws: ``RegistryServiceError``, if the store cannot be asked, or is not believed under these keys.
  package static func keySets(
    of file: String, in configuration: ServerConfiguration
  ) async throws(RegistryServiceError) -> KeySets {
    guard configuration.storage != .memory else {
      return .unknown(reason: "storage.type is memory, which keeps nothing")
    }
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      var publishing = PublishingConfiguration()
      publishing.signing = configuration.publishing.signing
      signer = try DocumentSigner(
        directory: configuration.tls.directory, publishing: publishing)
    } catch { throw .signer(error) }
    let (state, id) =
      try await opened(configuration, signer) { (store) throws(StoreError) in
        (try await read([file], of: store, configuration, signer)[file], store.id)
      } ?? (nil, nil)
    // A store that was emptied, or made anew, looks like one that never had the document.
    let seen = RegistryService.mark(configuration, writing: .never).seen
    guard state != nil || seen == nil || seen?.id == id else {
      return .unknown(
        reason:
          "\(configuration.tls.directory)/sealed-store tells of a store that is not there any more")
    }
    return .told(StatementSigner.published(in: state?.document ?? []))
  }

  /// The states of these documents, as far as there are any.
  ///
  /// - Throws: ``RegistryServiceError``; a seal that is not good is ``StoreError/seal(_:)``.
  static func states(
    of files: [String], in configuration: ServerConfiguration, _ signer: DocumentSigner
  ) async throws(RegistryServiceError) -> [String: DocumentState] {
    try await opened(configuration, signer) { (store) throws(StoreError) in
      try await read(files, of: store, configuration, signer)
    } ?? [:]
  }

  /// The states of documents that are not configured any more.
  static func left(
    in configuration: ServerConfiguration, _ signer: DocumentSigner
  ) async throws(RegistryServiceError) -> [String: DocumentState] {
    let files = Set(configuration.documents.map(\.file))
    return try await opened(configuration, signer) { (store) throws(StoreError) in
      _ = try await store.fault(of: [])
      var left: [String: DocumentState] = [:]
      for name in store.recordNames.subtracting(files) {
        // A broken seal of it keeps no server from starting.
        if let record = try? await store.standing(name) {
          left[name] = try? DocumentState(decoding: record.bytes, file: name)
        }
      }
      return left
    } ?? [:]
  }

  /// Asks the store; `nil` if there is none yet.
  private static func opened<Answer>(
    _ configuration: ServerConfiguration, _ signer: DocumentSigner,
    _ ask: (SealedStore) async throws(StoreError) -> Answer
  ) async throws(RegistryServiceError) -> Answer? {
    let keys = try RegistryService.sealKeys(of: signer, configuration)
    do throws(StoreError) {
      guard try configuration.storage.tryOut() else { return nil }
      let store = SealedStore(
        try configuration.storage.open(), keys: keys,
        mark: RegistryService.mark(configuration, writing: .never))
      do throws(StoreError) {
        let answer = try await ask(store)
        await store.close()
        return answer
      } catch {
        await store.close()
        throw error
      }
    } catch { throw .store(error) }
  }

  private static func read(
    _ files: [String], of store: SealedStore, _ configuration: ServerConfiguration,
    _ signer: DocumentSigner
  ) async throws(StoreError) -> [String: DocumentState] {
    let copies = LastCopies(
      store: store, directory: configuration.publishing.directory, signer: { signer })
    if let fault = try await store.fault(of: files) {
      // A server would begin it again.
      guard let seen = try await store.lost(files), try await copies.standIn(for: seen, files)
      else { throw .seal(fault) }
      return [:]
    }
    var states: [String: DocumentState] = [:]
    for file in files {
      let seen = copies.seen
      let record = try await store.standing(file)
      let found = await copies.find(file)
      let fault = copies.fault(of: found, file, beside: record, after: seen)
      // Another user may not read the copies: a server tells it if it cannot.
      if let fault, fault != .copySilent(of: file) { throw .seal(fault) }
      guard let record else { continue }
      states[file] = try DocumentState(decoding: record.bytes, file: file)
    }
    return states
  }
}

/// Files with key sets that no document uses: what was rotated there is in force nowhere, and whoever did it to
/// be rid of a stolen key is not.
enum UnusedKeySets {
  /// Warns of each, with the document that may have been meant, and if the configured directory is none.
  static func warn(of configuration: ServerConfiguration, _ log: ServerLog) {
    let directory = configuration.keySetsDirectory
    var isDirectory: ObjCBool = false
    if configuration.publishing.keySets != nil,
      !FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory)
        || !isDirectory.boolValue
    {
      log.event(
        .warn, "key_sets_missing",
        [
          "directory": directory,
          "message": "publish.key_sets is no directory (\(directory)), so no key sets are read; "
            + "hint: name the directory that keys rotate and keys sign-set write to",
        ])
    }
    let files = configuration.documents.map(\.file)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    for name in names.sorted() where !name.hasPrefix(".") && !files.contains(name) {
      let meant = files.first { $0.hasPrefix(name) } ?? Spelling.nearest(to: name, among: files)
      let hint =
        meant.map { "hint: was \($0) meant? keys rotate --registry-name \($0)" }
        ?? "hint: remove the file, or configure the document"
      log.event(
        .warn, "key_sets_unused",
        [
          "file": directory + "/" + name,
          "message": "no document is called \(name), so nothing is signed under its key sets; "
            + hint,
        ])
    }
  }
}
