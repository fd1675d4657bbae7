import CSslPinningOpenSSL
import CSslPinningShims
import TLSTools
import Testing

@Suite("A server that sends messages without end")
struct EndlessTLSTests {
  /// Calls `body` with a client and a server of one connection, and what the client has to read.
  private func connected<R>(
    preparing prepare: (OpaquePointer?) -> Void,
    _ body: (_ client: OpaquePointer, _ server: OpaquePointer, _ down: OpaquePointer?) throws -> R
  ) throws -> R {
    let identity = try CertificateAuthority.makeRoot(name: "Root").issue(names: ["localhost"])
    let loaded = try LoadedIdentity(identity)
    let contexts = [TLS_client_method(), TLS_server_method()].map { SSL_CTX_new($0) }
    defer { for context in contexts { SSL_CTX_free(context) } }
    prepare(contexts[0])
    SSL_CTX_set_num_tickets(contexts[1], 10)
    let client = try #require(SSL_new(contexts[0]))
    defer { SSL_free(client) }
    let server = try #require(SSL_new(contexts[1]))
    defer { SSL_free(server) }
    let (up, down) = (BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()))
    BIO_up_ref(up)
    BIO_up_ref(down)
    SSL_set_bio(client, down, up)
    SSL_set_bio(server, up, down)
    SSL_set_connect_state(client)
    SSL_set_accept_state(server)
    try #require(loaded.use(on: server))
    for _ in 0..<4 {
      SSL_do_handshake(client)
      SSL_do_handshake(server)
    }
    try #require(SSL_is_init_finished(client) == 1 && SSL_is_init_finished(server) == 1)
    return try body(client, server, down)
  }

  /// How many bytes of ten session tickets are unread once a client has asked for data, of which there is none.
  private func unread(refusing: Bool) throws -> Int {
    try connected(preparing: refusing ? pp_tls_refuse_endless : { _ in }) { client, _, down in
      #expect(BIO_ctrl_pending(down) > 1000)
      var byte: UInt8 = 0
      let count = SSL_read(client, &byte, 1)
      #expect(SSL_get_error(client, count) == SSL_ERROR_WANT_READ)
      return BIO_ctrl_pending(down)
    }
  }

  @Test("is read to the end of them by OpenSSL alone")
  func control() throws { #expect(try unread(refusing: false) == 0) }

  @Test("is read one message at a time: in between, time-outs are looked at")
  func tickets() throws { #expect(try unread(refusing: true) > 1000) }

  @Test("ends its own connection alone: another one is read in the same turn")
  func neighbours() throws {
    try connected(preparing: pp_tls_read_in_turns) { flooded, flooding, _ in
      try connected(preparing: pp_tls_read_in_turns) { client, server, _ in
        pp_tls_begin_turn()
        var byte: UInt8 = 0
        func reads(_ client: OpaquePointer, _ server: OpaquePointer) -> Bool {
          guard SSL_write(server, &byte, 1) == 1 else { return false }
          return (0..<20).contains { _ in SSL_read(client, &byte, 1) == 1 }
        }
        #expect((0..<30_000).contains { _ in !reads(flooded, flooding) })
        #expect(reads(client, server))
      }
    }
  }

  @Test("is not read from for ever in one turn", arguments: [true, false])
  func turns(areMany: Bool) throws {
    let read = try connected(preparing: pp_tls_read_in_turns) { client, server, _ in
      pp_tls_begin_turn()
      var byte: UInt8 = 0
      // One of tickets is no data: it is asked for until there is some.
      return (0..<30_000).count { _ in
        if areMany { pp_tls_begin_turn() }
        guard SSL_write(server, &byte, 1) == 1 else { return false }
        return (0..<20).contains { _ in SSL_read(client, &byte, 1) == 1 }
      }
    }
    #expect(areMany ? read == 30_000 : (24_000..<25_000).contains(read))
  }
}
