import Foundation
import TLSTools
import TestSupport

/// A plugin with a libcurl of its own, compiled by the test, as an app may load it beside its sessions.
struct OtherLibcurl {
  enum Kind: String, CaseIterable, Sendable {
    /// Debian's other flavour: the same functions' names, other versions of them.
    case gnutls
    /// The flavour that Foundation uses, under another file's name, loaded for the plugin alone.
    case secondCopy
  }

  struct Failure: Error {
    let reason: String
  }

  private typealias Get = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int
  private typealias Name = @convention(c) () -> UnsafePointer<CChar>

  /// The TLS library behind it.
  let tlsLibrary: String
  private let easy: Get
  private let multi: Get
  private let anchors: String
  private let directory: TemporaryDirectory

  init(_ kind: Kind, trusting root: Certificate) async throws {
    directory = try TemporaryDirectory()
    anchors = try directory.write(root.pem, to: "root.pem").path(percentEncoded: false)
    let source = try directory.write(Self.source, to: "plugin.c")
    let plugin = directory.path("plugin.so")
    var arguments = ["-shared", "-fPIC", "-o", plugin, source.path(percentEncoded: false)]
    switch kind {
    case .gnutls: arguments += ["-l:libcurl-gnutls.so.4"]
    case .secondCopy:
      arguments += ["-DLIBRARY=\"\(try Self.secondCopy(in: directory))\"", "-ldl"]
    }
    let compiler = try await ChildProcess.run("clang", arguments)
    guard compiler.exitCode == 0 else { throw Failure(reason: compiler.stderr) }
    guard let handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL),
      let name = dlsym(handle, "plugin_tls"), let easy = dlsym(handle, "plugin_easy"),
      let multi = dlsym(handle, "plugin_multi")
    else { throw Failure(reason: String(cString: dlerror())) }
    tlsLibrary = String(cString: unsafeBitCast(name, to: Name.self)())
    self.easy = unsafeBitCast(easy, to: Get.self)
    self.multi = unsafeBitCast(multi, to: Get.self)
  }

  /// Gets a URL in both of libcurl's ways; the statuses, negative where that failed.
  func get(_ url: URL) async -> [Int] {
    let text = url.absoluteString
    return await withCheckedContinuation { continuation in
      Thread.detachNewThread { [easy, multi, anchors] in
        continuation.resume(returning: [easy(text, anchors), multi(text, anchors)])
      }
    }
  }

  /// A file of the same bytes that calls itself by another name, or the linker would know it.
  private static func secondCopy(in directory: TemporaryDirectory) throws -> String {
    guard let path = try MappedFile.path(at: dlsym(nil, "curl_version_info")) else {
      throw Failure(reason: "there is no libcurl")
    }
    var bytes = try Data(contentsOf: URL(filePath: path))
    let (name, other) = (Data("libcurl.so.4".utf8), Data("libcopy.so.4".utf8))
    while let range = bytes.range(of: name) { bytes.replaceSubrange(range, with: other) }
    return try directory.write([UInt8](bytes), to: "libcopy.so.4").path(percentEncoded: false)
  }

  private static let source = #"""
    #define CURL_DISABLE_TYPECHECK
    #include <curl/curl.h>
    #ifdef LIBRARY
    #include <dlfcn.h>
    static void *library;
    #define CALL(name) ((__typeof__(&name))dlsym(library, #name))
    #undef curl_easy_setopt
    #undef curl_easy_getinfo
    #define OPEN() (library || (library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)))
    #else
    #define CALL(name) name
    #define OPEN() 1
    #endif

    static size_t drop(char *bytes, size_t size, size_t count, void *context) {
      return size * count;
    }

    static CURL *prepare(const char *url, const char *anchors) {
      CURL *easy = OPEN() ? CALL(curl_easy_init)() : NULL;
      if (!easy) return NULL;
      CALL(curl_easy_setopt)(easy, CURLOPT_URL, url);
      CALL(curl_easy_setopt)(easy, CURLOPT_CAINFO, anchors);
      CALL(curl_easy_setopt)(easy, CURLOPT_NOSIGNAL, 1L);
      CALL(curl_easy_setopt)(easy, CURLOPT_TIMEOUT, 30L);
      CALL(curl_easy_setopt)(easy, CURLOPT_WRITEFUNCTION, drop);
      return easy;
    }

    static long finish(CURL *easy, long code) {
      long status = 0;
      CALL(curl_easy_getinfo)(easy, CURLINFO_RESPONSE_CODE, &status);
      CALL(curl_easy_cleanup)(easy);
      return code ? -code : status;
    }

    long plugin_easy(const char *url, const char *anchors) {
      CURL *easy = prepare(url, anchors);
      return easy ? finish(easy, CALL(curl_easy_perform)(easy)) : -1000;
    }

    long plugin_multi(const char *url, const char *anchors) {
      CURL *easy = prepare(url, anchors);
      CURLM *multi = easy ? CALL(curl_multi_init)() : NULL;
      if (!multi) return -1000;
      long code = -1;
      int running = 1, left;
      CURLMsg *message;
      CALL(curl_multi_setopt)(multi, CURLMOPT_MAXCONNECTS, 4L);
      CALL(curl_multi_add_handle)(multi, easy);
      while (running && !CALL(curl_multi_perform)(multi, &running))
        CALL(curl_multi_poll)(multi, NULL, 0, 100, NULL);
      while ((message = CALL(curl_multi_info_read)(multi, &left))) code = message->data.result;
      CALL(curl_multi_remove_handle)(multi, easy);
      CALL(curl_multi_cleanup)(multi);
      return finish(easy, code);
    }

    const char *plugin_tls(void) {
      return OPEN() ? CALL(curl_version_info)(CURLVERSION_NOW)->ssl_version : "";
    }
    """#
}
