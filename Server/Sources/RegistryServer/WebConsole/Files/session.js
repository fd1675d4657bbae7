// The administrator's token. It lives in this tab alone and goes with it.

const key = "token";

export function token() {
  return sessionStorage.getItem(key);
}

export function keepToken(value) {
  sessionStorage.setItem(key, value);
}

export function forgetToken() {
  sessionStorage.removeItem(key);
}
