import CanonicalJSON
import Pinning
import TLSTools

/// What clients could not use of a payload, and what would make old ones refuse it.
enum PayloadWarnings {
  private static let members: Set<String> = ["domainName", "key", "fqdn", "expire", "date"]

  static func say(of payload: JSONObject, beside terms: RegistryDocument.Terms?, _ name: String) {
    do throws(RegistryError) {
      for problem in try Registry(payload: payload, settings: terms?.hosts ?? []).problems {
        Console.say("warning: \(problem)")
      }
    } catch {
      Console.say("warning: clients will refuse \(name): \(error)")
    }
    let entries = payload["keys"]?.arrayValue?.compactMap(\.objectValue) ?? []
    let unknown = Set(entries.flatMap(\.keys)).subtracting(members)
      .union(Set(payload.keys).subtracting(["keys"]))
    guard !unknown.isEmpty else { return }
    Console.say(
      "warning: format-1 clients in the field leave out \(unknown.sorted().joined(separator: ", "))"
        + " before they check the signature, and refuse the document; hint: put it beside the payload"
    )
  }
}
