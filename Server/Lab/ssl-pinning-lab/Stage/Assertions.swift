import Foundation
import SslPinning
import SslPinningRules

extension App {
  /// That the client works before anybody attacks it: otherwise its refusals would prove nothing.
  func mustBeServed(by site: Site) async throws { try await mustGet(site.url(), site.body) }

  /// That this body comes back over every way.
  func mustGet(_ url: URL, _ body: String) async throws {
    for dialer in dialers {
      let answer = await dialer.dial(url)
      try show(answer == .served(body), "\(dialer.name) beside the attack: \(answer.text)")
    }
  }

  /// That a refresh is refused, for the reason that the row is about.
  func mustRefuse(_ isExpected: (RegistryError) -> Bool) async throws {
    do { try await client.refresh() } catch {
      switch error {
      case .registryRefused(let reason), .malformed(let reason, _):
        return try show(isExpected(reason), "the document was refused for another reason: \(error)")
      default: throw Inconclusive("the document was refused for another reason: \(error)")
      }
    }
    throw Breach("the attacker's document was believed")
  }
}
