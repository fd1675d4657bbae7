import Foundation
import Pinning
import RegistryServer
import TestSupport
import Testing

@Suite struct RegistryServiceTests {
  @Test("signs what it saw and serves it")
  func servesSignedDocument() async throws {
    let server = try ScriptedService()
    server.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await server.service.start()
    await server.service.look(at: "www.example.com")
    let pins = try await server.pins(in: "www.example.com.json")
    #expect(pins == ["www.example.com": [pin(1)], "*.www.example.com": [pin(1)]])
    await server.service.stop()
  }
}
