"""TLS servers on loopback: an authority, its certificates, and nginx."""

import os
from contextlib import contextmanager

import tools

DOMAIN = "bench.test"
AUTHORITY = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"


def openssl(folder, *arguments):
    return tools.output("openssl", *arguments, cwd=folder)


def issue(folder, name, issuer, extensions):
    """NAME.key (P-256) and NAME.pem."""
    openssl(folder, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{name}.key")
    (folder / f"{name}.ext").write_text(extensions)
    openssl(folder, "req", "-new", "-key", f"{name}.key", "-subj", f"/CN=Bench {name}", "-out", f"{name}.csr")
    signer = ["-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key", "-CAcreateserial"]
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-days", "100", "-out", f"{name}.pem", "-extfile",
            f"{name}.ext", *(signer if issuer else ["-signkey", f"{name}.key"]))


def certificates(folder):
    """root.pem; site.pem for localhost and *.bench.test, with its chain in chain.pem."""
    issue(folder, "root", None, AUTHORITY)
    issue(folder, "issuer", "root", AUTHORITY)
    issue(folder, "site", "issuer",
          f"extendedKeyUsage=serverAuth\nsubjectAltName=DNS:localhost,DNS:*.{DOMAIN}\n")
    (folder / "chain.pem").write_text("".join((folder / f"{name}.pem").read_text() for name in ("site", "issuer")))


def pin(folder):
    key = openssl(folder, "x509", "-in", "site.pem", "-noout", "-pubkey")
    der = tools.output("openssl", "pkey", "-pubin", "-outform", "der", input=key)
    digest = tools.output("openssl", "dgst", "-sha256", "-binary", input=der)
    return tools.output("base64", "-w0", input=digest).decode()


@contextmanager
def nginx(folder, body, workers="auto"):
    """nginx with these servers. `TLS` in them stands for certificate and key; connections live as long as they like."""
    body = body.replace("TLS;", "ssl_certificate chain.pem; ssl_certificate_key site.key;")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(f"""daemon off;
{"user root;" if os.getuid() == 0 else ""}
worker_processes {workers};
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 8192; multi_accept on; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  ssl_protocols TLSv1.2 TLSv1.3;
  {temporary}
  {body}
}}
""")
    program = next((path for path in ("/usr/sbin/nginx", "/usr/bin/nginx") if os.access(path, os.X_OK)), "nginx")
    with tools.running(program, "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr") as process:
        tools.wait_until((folder / "nginx.pid").exists, "nginx did not start", process)
        yield process
