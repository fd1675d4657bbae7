import Foundation
import SslPinningRules
import TestSupport
import Testing

/// What another implementation of `docs/registry-format.md` came to, beside this one.
///
/// `REGISTRY_CASES` names files in the form of `Vectors/registry/cases.json`, separated by colons; the
/// documents of `N.json` stand in `N.documents/`. It need not say `leaf` of every host, nor which
/// of a document's faults it met first: outcomes are compared as accepted or not.
@Suite("Another implementation of the registry format")
struct OtherImplementationTests {
  private static let files = (ProcessInfo.processInfo.environment["REGISTRY_CASES"] ?? "")
    .split(separator: ":").map(String.init)

  @Test(
    "agrees: accepted or refused, and what is believed afterwards",
    .enabled(if: !files.isEmpty, "REGISTRY_CASES names no cases of another implementation"),
    arguments: files, [false, true])
  func agrees(file: String, restarts: Bool) throws {
    let url = URL(filePath: file)
    let folder = url.deletingPathExtension().appendingPathExtension("documents")
    let cases = try JSONDecoder().decode([RegistryVector].self, from: Data(contentsOf: url))
    var (steps, disagreements, others) = (0, 0, 0)
    for vector in cases {
      guard let trust = try? vector.registryTrust() else {
        // Such as a key of format 1 that is no RSA key: no app starts with that.
        print("no such trust: \(vector.name)")
        continue
      }
      var client = RegistryVectorClient(trust: trust, folder: folder)
      for (index, step) in vector.steps.enumerated() {
        steps += 1
        let (outcome, text) = try client.take(step)
        if restarts { try client.restart(at: step.clock) }
        var found = try client.differences(from: step)
        if (outcome == "accepted") != (step.outcome == "accepted") {
          found.insert("\(outcome), not \(step.outcome)", at: 0)
        } else if outcome != step.outcome {
          others += 1
          print(
            "other word: \(vector.name), \(step.document): \(outcome), not \(step.outcome): \(text)"
          )
        }
        guard !found.isEmpty else { continue }
        disagreements += 1
        Issue.record(
          "\(vector.name), step \(index + 1), \(step.document): \(text): \(found.joined(separator: "; "))"
        )
        // What follows from it says nothing.
        break
      }
    }
    print(
      "\(url.lastPathComponent): \(steps) documents, \(disagreements) disagreements, \(others) other words"
    )
  }
}
