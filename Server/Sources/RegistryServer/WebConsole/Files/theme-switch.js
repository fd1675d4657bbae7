// The button that chooses the colours: the system's, light, dark.

const names = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const next = { system: "light", light: "dark", dark: "system" };

export function startThemeSwitch() {
  const control = document.getElementById("theme");
  const show = () => { control.textContent = names[document.documentElement.dataset.theme ?? "system"]; };
  control.onclick = () => {
    const chosen = next[document.documentElement.dataset.theme ?? "system"];
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      if (chosen === "system") localStorage.removeItem("theme");
      else localStorage.setItem("theme", chosen);
    } catch { /* then it holds until the page is left */ }
    show();
  };
  show();
}
