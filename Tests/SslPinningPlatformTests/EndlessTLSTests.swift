import CSslPinningOpenSSL
import CSslPinningShims
import TLSTools
import Testing

@Suite("A server that sends messages without end")
struct EndlessTLSTests {
  /// How many bytes of ten session tickets are unread once a client has asked for data, of which there is none.
  private func unread(refusing: Bool) throws -> Int {
    let identity = try CertificateAuthority.makeRoot(name: "Root").issue(names: ["localhost"])
    let loaded = try LoadedIdentity(identity)
    let contexts = [TLS_client_method(), TLS_server_method()].map { SSL_CTX_new($0) }
    defer { for context in contexts { SSL_CTX_free(context) } }
    if refusing { pp_tls_refuse_endless(contexts[0]) }
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
    #expect(BIO_ctrl_pending(down) > 1000)
    var byte: UInt8 = 0
    let count = SSL_read(client, &byte, 1)
    #expect(SSL_get_error(client, count) == SSL_ERROR_WANT_READ)
    return BIO_ctrl_pending(down)
  }

  @Test("is read to the end of them by OpenSSL alone")
  func control() throws { #expect(try unread(refusing: false) == 0) }

  @Test("is read one message at a time: in between, time-outs are looked at")
  func tickets() throws { #expect(try unread(refusing: true) > 1000) }
}
