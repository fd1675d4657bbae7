import Foundation
import RegistryServer
import SslPinningRules

/// `store backup`, `restore`, `export` and `import`: the server's store into a file, and back into a store of any type.
enum StoreTransferCommands {
  static let all = [backup, restore, export, takeIn]

  private static let older = Flag(
    "--older", "take it although something newer is known here; what was decided since is lost")

  private static let backup = Command(
    "store backup", "copy the server's store into a file, while it runs",
    argument: file("to write"),
    flags: ServerArguments.descriptions,
    notes: [
      "The file has every document with what people decided about it, its history, and the failure reports. Of\n"
        + "sqlite it is SQLite's own online backup: a copy of registry.db alone lacks what was decided last.\n"
        + "It is written only if all of it is as a server with prv.pem wrote it, and replaces no file.",
      "prv.pem, online keys and key sets are in tls.dir, and not in it: keep both, in different places.",
    ],
    run: write)

  private static let restore = Command(
    "store restore", "put a backup in the place of what the server's store has",
    argument: file("of store backup or store export"),
    flags: [older.description] + ServerArguments.descriptions,
    notes: [
      "No server may work on the store meanwhile. Everything in the file is verified, and sealed anew under\n"
        + "prv.pem, newer than all that the store had: a server believes it at once.",
      "A file is refused that is older than the store, than what this server saw last (sealed-store in tls.dir)\n"
        + "or than the copies in publish.dir. A registry.db that is damaged is moved away first.",
    ],
    run: { invocation throws(CommandFailure) in try await read(invocation, mustBeEmpty: false) })

  private static let export = Command(
    "store export", "copy the server's store into a file, for a store of another type",
    argument: file("to write"), flags: ServerArguments.descriptions,
    notes: [
      "The same file as that of store backup. To move a store: stop the server, export, name the new storage in\n"
        + "the configuration, import, start. What a server decides after the export is not in the file."
    ],
    run: write)

  private static let takeIn = Command(
    "store import", "fill an empty store with what an export or a backup has",
    argument: file("of store export or store backup"),
    flags: [older.description] + ServerArguments.descriptions,
    notes: [
      "The store of the configuration, of any type but memory. Documents, denials, staged keys, added\n"
        + "endpoints, history and failure reports arrive; it stays the same store to servers that know it, and\n"
        + "clients see no version go back. One that has something is left as it is."
    ],
    run: { invocation throws(CommandFailure) in try await read(invocation, mustBeEmpty: true) })

  private static func file(_ purpose: String) -> Argument {
    Argument(placeholder: "FILE", help: "the file \(purpose)", count: .one)
  }

  private static func write(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let path = invocation.arguments.first ?? ""
    let summary = try await with(invocation, mustExist: true) {
      transfer throws(StoreTransferError) in try await transfer.backUp(to: path)
    }
    try Terminal.write(line: "\(path): \(told(summary))")
    return .yes
  }

  private static func read(
    _ invocation: Invocation, mustBeEmpty: Bool
  ) async throws(CommandFailure) -> ExitStatus {
    let path = invocation.arguments.first ?? ""
    let isOlderMeant = invocation[older]
    let summary = try await with(invocation, mustExist: false) {
      transfer throws(StoreTransferError) in
      try await transfer.restore(
        from: path, mustBeEmpty: mustBeEmpty, isOlderMeant: isOlderMeant,
        at: Int64(Date().timeIntervalSince1970))
    }
    try Terminal.write(line: "the store has what \(path) has: \(told(summary))")
    return .yes
  }

  private static func told(_ summary: StoreTransfer.Summary) -> String {
    "store \(summary.store), \(summary.entries) entries of history, documents: "
      + (summary.documents.isEmpty ? "none" : summary.documents.joined(separator: ", "))
      + (summary.leftOut.isEmpty
        ? "" : "; left out, because it cannot be read: \(summary.leftOut.joined(separator: ", "))")
  }

  /// Opens the store of the configuration.
  private static func with(
    _ invocation: Invocation, mustExist: Bool,
    _ work: (StoreTransfer) async throws(StoreTransferError) -> StoreTransfer.Summary
  ) async throws(CommandFailure) -> StoreTransfer.Summary {
    let configuration = try ServerArguments.configuration(ServerArguments.sources(invocation))
      .configuration
    let transfer: StoreTransfer
    do throws(RegistryServiceError) {
      transfer = try StoreTransfer(configuration, mustExist: mustExist)
    } catch { throw Up.failure(error) }
    let outcome: Result<StoreTransfer.Summary, StoreTransferError>
    do throws(StoreTransferError) { outcome = .success(try await work(transfer)) } catch {
      outcome = .failure(error)
    }
    await transfer.close()
    switch outcome {
    case .success(let summary): return summary
    case .failure(.store(.seal(let fault))): throw .no("\(fault)")
    case .failure(.store(let error)): throw .couldNotFindOut("\(error)")
    case .failure(let error): throw .no("\(error)")
    }
  }
}
