// Sets the colours that were chosen here before anything is painted. Not a module: those run later.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* a browser that keeps nothing shows the system's colours */ }
