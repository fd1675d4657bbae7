import CCurl
import COpenSSL
import CSQLite
import CZlib

/// A call into each library, so that each module is built and linked.
public func versionsOfOthers() -> [String] {
  [
    String(cString: sqlite3_libversion()), String(cString: curl_version()),
    String(cString: OpenSSL_version(0)), String(cString: zlibVersion()),
  ]
}
