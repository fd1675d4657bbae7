import Foundation
import RegistryServer
import SslPinningRules

/// `keys adopt` and `store reset`: what an operator does about the seals of the server's store.
enum StoreCommands {
  private static let unverified = Flag(
    "--unverified", "the key before is lost: believe what the store has, whoever wrote it")
  private static let take = Flag("--take", "believe what the record has, whoever wrote it")
  private static let anew = Flag("--anew", "begin from the last signed document, or from nothing")

  static let adopt = Command(
    "keys adopt", "have the server's store go by another prv.pem",
    argument: Argument(placeholder: "ID", help: "the id of prv.pem, as up tells it", count: .one),
    flags: [unverified.description] + ServerArguments.descriptions,
    notes: [
      "The store is sealed under the signing key, and a server with another one serves what there is, and\n"
        + "decides and signs nothing. Put the key before beside prv.pem as prv.old.pem, then adopt: what the\n"
        + "store has is verified by it, and sealed under both. Servers with either key read it, and those\n"
        + "with the new one alone go on. Once all have it, delete prv.old.pem.",
      "Apps that ship the key before refuse format 1 under another, and without key sets that it signed every\n"
        + "list: see docs/root-keys.md for a change that they follow.",
    ],
    run: runAdopt)

  static let reset = Command(
    "store reset", "go on after a broken seal in the server's store",
    argument: Argument(
      placeholder: "FILE", help: "the document, as keys names it; .store is the store's own record",
      count: .one),
    flags: [take.description, anew.description] + ServerArguments.descriptions,
    notes: [
      "A record that was edited, played back or removed decides nothing. Restore the store from a backup if\n"
        + "you can: that needs no reset. --anew keeps what the last signed document lists and denies, and\n"
        + "forgets what people decided beside it; --take believes the record as it stands, so look at it\n"
        + "first. Servers that run notice by themselves.",
      "For .store, --take finds out from the documents what it has to say; a document that is gone is held all\n"
        + "the same. --anew is for a store that was lost as a whole, or is to be a new one.",
    ],
    run: runReset)

  private static func runAdopt(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus
  {
    let text = invocation.arguments.first ?? ""
    guard let id = try? SPKIPin(base64: text) else {
      throw .usage("\(text) is no id of a key; hint: 44 characters of base64, as up tells it")
    }
    let isBeliever = invocation[unverified]
    try await with(invocation) { repair throws(StoreRepairError) in
      let names = try await repair.adopt(id, believingUnverified: isBeliever)
      let lost = await repair.documentsWithoutKeySets().joined(separator: ", ")
      if !lost.isEmpty {
        Terminal.say(
          "warning: \(lost): no key sets, so apps that ship another key refuse every list under this one, statements"
            + " too, and only a release helps; hint: if this is not meant, put the key before back and adopt that"
        )
      }
      return "the store goes by \(id.base64); sealed anew: "
        + (names.isEmpty ? "nothing" : names.joined(separator: ", "))
    }
    return .yes
  }

  private static func runReset(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus
  {
    let name = invocation.arguments.first ?? ""
    guard invocation[take] != invocation[anew] else {
      throw .usage("--take or --anew; hint: ssl-pinning store reset --help")
    }
    let reset: StoreRepair.Reset = invocation[take] ? .take : .anew
    try await with(invocation) { repair throws(StoreRepairError) in
      let now = Int64(Date().timeIntervalSince1970)
      return "\(name): " + (try await repair.reset(name, to: reset, at: now))
    }
    return .yes
  }

  /// Opens the store of the configuration, and prints what came of it.
  private static func with(
    _ invocation: Invocation, _ work: (StoreRepair) async throws(StoreRepairError) -> String
  ) async throws(CommandFailure) {
    let configuration = try ServerArguments.configuration(ServerArguments.sources(invocation))
      .configuration
    let repair: StoreRepair
    do throws(RegistryServiceError) { repair = try StoreRepair(configuration) } catch {
      throw Up.failure(error)
    }
    let outcome: Result<String, StoreRepairError>
    do throws(StoreRepairError) { outcome = .success(try await work(repair)) } catch {
      outcome = .failure(error)
    }
    await repair.close()
    switch outcome {
    case .success(let line): try Terminal.write(line: line)
    case .failure(.store(.seal(let fault))): throw .no("\(fault)")
    case .failure(.store(let error)): throw .couldNotFindOut("\(error)")
    case .failure(let error): throw .no("\(error)")
    }
  }
}
