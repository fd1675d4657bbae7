#!/usr/bin/env python3
"""Numbers of JSON where `Int` has 32 bits, as on some watches: compiles the code that reads integers for a 32-bit
WebAssembly machine and runs it there. With `Int` for `Int64` in it, it must trap (the self-test, each time).

Skipped without node.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = [ROOT / "Sources/CanonicalJSON" / name for name in ("JSONNumber.swift", "Bytes.swift")]
SWIFTC = os.environ.get("SWIFT", "swift") + "c"
NUMBER = "var magnitude: Int64 = 0", "var magnitude = 0"
DIGIT = "+ Int64(digits[index]", "+ Int(digits[index]"

DRIVER = """
@_expose(wasm, "width") @_cdecl("width") public func width() -> Int32 { Int32(Int.bitWidth) }
@_expose(wasm, "nines") @_cdecl("nines") public func nines(_ count: Int32) -> Double {
  var text: [15 of UInt8] = .init(repeating: UInt8(ascii: "9"))
  return withUnsafeBytes(of: &text) { bytes in
    let digits = UnsafeBufferPointer(rebasing: bytes.bindMemory(to: UInt8.self)[..<Int(count)])
    return JSONNumber(shortInteger: Bytes(digits)).value
  }
}
"""

# What a system has and a bare machine lacks: memory, and the product of two numbers of 128 bits.
RUNNER = """
const module_ = new WebAssembly.Module(require("fs").readFileSync(process.argv[2]));
const env = {};
for (const each of WebAssembly.Module.imports(module_)) env[each.name] = () => 0;
const wide = (low, high) => (BigInt.asUintN(64, high) << 64n) | BigInt.asUintN(64, low);
let machine;
env.__multi3 = (to, ...halves) => {
  const product = BigInt.asUintN(128, wide(halves[0], halves[1]) * wide(halves[2], halves[3]));
  const memory = new DataView(machine.memory.buffer);
  memory.setBigUint64(to, BigInt.asUintN(64, product), true);
  memory.setBigUint64(to + 8, product >> 64n, true);
};
machine = new WebAssembly.Instance(module_, { env }).exports;
if (machine.width() != 32) throw new Error("Int has " + machine.width() + " bits");
for (let count = 1; count <= 15; count++) {
  let number;
  try { number = machine.nines(count); } catch (trap) { console.log("traps at " + count); process.exit(1); }
  if (number != Number("9".repeat(count))) { console.log(count + " nines are " + number); process.exit(1); }
}
"""


def built(folder, change):
    """The machine's program, with the sources as they are or changed; `None` if it cannot be made."""
    files = []
    for source in SOURCES:
        files.append(folder / source.name)
        files[-1].write_text(change(source.read_text()))
    (folder / "Driver.swift").write_text(DRIVER)
    program = folder / "narrow.o"
    done = subprocess.run(
        [SWIFTC, "-target", "wasm32-unknown-none-wasm", "-enable-experimental-feature", "Embedded",
         "-wmo", "-O", "-swift-version", "6", "-parse-as-library", "-module-name", "Narrow",
         *files, folder / "Driver.swift", "-c", "-o", program], capture_output=True, text=True)
    if done.returncode == 0:
        linker = Path(shutil.which(SWIFTC)).resolve().parent / "wasm-ld"
        done = subprocess.run(
            [linker, "--no-entry", "--allow-undefined", "--export-dynamic", program,
             "-o", folder / "narrow.wasm"], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip())
        return None
    return folder / "narrow.wasm"


def run(folder, change=lambda text: text):
    program = built(folder, change)
    if program is None:
        return None
    (folder / "run.js").write_text(RUNNER)
    return subprocess.run(["node", folder / "run.js", program], capture_output=True, text=True)


def main():
    if not shutil.which("node"):
        print("check-apple: 32-bit integers: skipped, node is not installed")
        return 0
    with tempfile.TemporaryDirectory() as place:
        found = run(Path(place))
        planted = run(Path(place), lambda text: text.replace(*NUMBER).replace(*DIGIT))
    if found is None or planted is None:
        print("check-apple: 32-bit integers: FAILED: cannot be compiled")
        return 1
    if "traps at 10" not in planted.stdout:
        print(f"check-apple: 32-bit integers: self-test: not noticed: {planted.stdout}{planted.stderr}")
        return 1
    if found.returncode:
        print(f"check-apple: 32-bit integers: FAILED: {found.stdout}{found.stderr}")
        return 1
    print("check-apple: 32-bit integers: ok, run on a 32-bit machine")
    return 0


if __name__ == "__main__":
    sys.exit(main())
