import CSslPinningOpenSSL
import TLSTools
import Testing

/// A client and a server of OpenSSL with a connection in memory.
final class MemoryTLS {
  let client: OpaquePointer
  let server: OpaquePointer
  /// What the client has to read.
  let down: OpaquePointer?

  /// - Parameters:
  ///   - identity: what the server shows.
  ///   - prepareClient: sets up the client's context.
  ///   - prepareServer: sets up the server's.
  init(
    _ identity: ServerIdentity, client prepareClient: (OpaquePointer?) -> Void,
    server prepareServer: (OpaquePointer?) -> Void = { _ in }
  ) throws {
    let contexts = [TLS_client_method(), TLS_server_method()].map { SSL_CTX_new($0) }
    // Each side holds its own from then on.
    defer { for context in contexts { SSL_CTX_free(context) } }
    prepareClient(contexts[0])
    prepareServer(contexts[1])
    client = try #require(SSL_new(contexts[0]))
    server = try #require(SSL_new(contexts[1]))
    let up = BIO_new(BIO_s_mem())
    down = BIO_new(BIO_s_mem())
    BIO_up_ref(up)
    BIO_up_ref(down)
    SSL_set_bio(client, down, up)
    SSL_set_bio(server, up, down)
    SSL_set_connect_state(client)
    SSL_set_accept_state(server)
    try #require(LoadedIdentity(identity).use(on: server))
  }

  deinit {
    SSL_free(client)
    SSL_free(server)
  }

  /// Whether both shook hands.
  func shakes() -> Bool {
    for _ in 0..<4 {
      SSL_do_handshake(client)
      SSL_do_handshake(server)
    }
    return SSL_is_init_finished(client) == 1 && SSL_is_init_finished(server) == 1
  }
}
